#include "cli/learn/options.h"

#include "cli/output.h"

namespace caisson::cli {

Result<bool> wantsLearning(const Arguments& arguments, const policy::Policy& policy) {
  const bool learn = arguments.has(kLearn);
  if (learn && policy.isolation.level != policy::Level::full) {
    return fail(usageError("--learn", "learning needs level full: the others do not see enough", "leave --level out"));
  }
  const auto what = arguments.value(kTrace);
  if (!what) return learn;
  if (*what != "files") return fail(usageError("--trace", "unknown: what can be traced is `files`", "--trace files"));
  if (policy.isolation.level == policy::Level::none)
    return fail(usageError("--trace", "level none has no filter that could show anything", "leave --level out"));
  return true;
}

}  // namespace caisson::cli
