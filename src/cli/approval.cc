#include "cli/approval.h"

#include <fcntl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "cli/output.h"
#include "cli/policy_options.h"
#include "policy/model.h"
#include "sys/fd.h"

namespace caisson::cli {
namespace {

struct Approvable {
  std::string_view name;
  std::string_view meaning;  ///< what a person agrees to
};

constexpr std::string_view kLevelNone = "level:none";
constexpr Approvable kApprovables[] = {
    {kLevelNone, "the command runs with no isolation at all: it can read, change and send whatever you can"},
};

const Approvable* findApprovable(std::string_view name) {
  for (const Approvable& one : kApprovables)
    if (one.name == name) return &one;
  return nullptr;
}

Error unknownApproval(std::string_view name) {
  std::string known;
  for (const Approvable& one : kApprovables) known += (known.empty() ? "" : ", ") + std::string(one.name);
  return usageError("--approve " + std::string(name), "not something that can be approved; expected " + known);
}

/// One line from the terminal; true only for a plain yes.
bool ask(const sys::Fd& terminal, const Approvable& what) {
  std::string question = "caisson: approval needed: " + std::string(what.name) + "\n  ";
  question += std::string(what.meaning) + ".\n  Allow it for this one run? [y/N] ";
  if (writeAll(terminal.get(), question) != 0) return false;
  // What was typed or pasted before the question was shown is no answer to it.
  ::tcflush(terminal.get(), TCIFLUSH);
  std::string answer;
  char next = 0;
  while (answer.size() < 16) {
    const ssize_t got = ::read(terminal.get(), &next, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0 || next == '\n') break;
    answer += next;
  }
  return answer == "y" || answer == "Y" || answer == "yes";
}

}  // namespace

Result<std::vector<std::string>> namedApprovals(const Arguments& arguments) {
  std::vector<std::string> approvals;
  for (const Given& given : arguments.given) {
    if (given.option->name != kApprove.name) continue;
    if (findApprovable(given.value) == nullptr) return fail(unknownApproval(given.value));
    approvals.emplace_back(given.value);
  }
  return approvals;
}

Result<std::vector<std::string>> obtainApprovals(const Arguments& arguments, const policy::Policy& policy) {
  auto approvals = namedApprovals(arguments);
  if (!approvals) return approvals;
  const bool needed = policy.isolation.level == policy::Level::none;
  if (!needed && approvals->empty()) return approvals;

  const sys::Fd terminal(::open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!approvals->empty() && !terminal)
    return fail(usageError("--approve " + approvals->front(),
                           "counts as an owner's answer only on a terminal, and there is none here",
                           "run it from a terminal"));
  if (needed && std::ranges::find(*approvals, kLevelNone) == approvals->end()) {
    if (!terminal || !ask(terminal, *findApprovable(kLevelNone)))
      return fail(usageError("level none", "needs an owner's approval, which was not given",
                             "add --approve level:none on a terminal, or use --level full"));
    approvals->emplace_back(kLevelNone);
  }
  return approvals;
}

}  // namespace caisson::cli
