#include "supervise/workspace/direct_parts.h"

#include <variant>

#include "base/path_parts.h"
#include "plan/searched_tree.h"

namespace caisson::supervise {

DirectParts::DirectParts(const plan::Plan& plan) {
  if (!plan.watched) return;
  const std::string above = plan.watched->target + "/";
  for (const plan::Step& step : plan.steps) {
    const auto* bind = std::get_if<plan::Bind>(&step);
    if (bind == nullptr || !bind->target.starts_with(above)) continue;
    if (bind->source.starts_with(plan::kRedactedFiles)) {
      redacted_.insert(bind->target.substr(above.size()));
      continue;
    }
    if (bind->inside) continue;  // a part of the layer, read-only or pinned
    all_.insert(bind->target.substr(above.size()));
    if (bind->writable) writable_.insert(bind->target.substr(above.size()));
  }
}

bool DirectParts::holds(const std::string& path) const { return isInOneOf(path, all_); }

std::vector<std::string> DirectParts::redacted() const {
  std::vector<std::string> found;
  for (const std::string& path : redacted_) {
    if (holds(path)) found.push_back(path);
  }
  return found;
}

bool DirectParts::writes(const std::string& path) const { return isInOneOf(path, writable_); }

}  // namespace caisson::supervise
