#include "surface/document.h"

#include <iterator>
#include <span>

#include "base/never_allowed_calls.h"
#include "plan/ioctl_lists.h"
#include "plan/syscall_lists.h"

namespace caisson::surface {
namespace {

using plan::rules::CallFamily;
using plan::rules::IoctlClass;

std::string names(std::span<const std::string_view> list) {
  std::string text;
  for (const std::string_view name : list) text += (text.empty() ? "`" : " `") + std::string(name) + "`";
  return text;
}

std::string families() {
  std::string text = "| family | why payloads need it | calls |\n|---|---|---|\n";
  for (const CallFamily& family : plan::rules::kFamilies) {
    text += "| " + std::string(family.name) + " | " + std::string(family.reason) + " | " + names(family.calls) + " |\n";
  }
  return text;
}

std::string requests() {
  std::string text = "| class | why payloads need it | requests |\n|---|---|---|\n";
  for (const IoctlClass& each : plan::rules::kIoctlClasses) {
    std::string list;
    for (const auto& request : each.requests) list += (list.empty() ? "`" : " `") + std::string(request.name) + "`";
    text += "| " + std::string(each.name) + " | " + std::string(each.reason) + " | " + list + " |\n";
  }
  return text;
}

}  // namespace

std::string describeLists() {
  return "### Allowed calls\n\nA name that an architecture lacks is skipped there. Some calls are allowed only with "
         "some "
         "arguments, see above.\n\n" +
         families() + "\n### Allowed ioctl requests\n\nAll others answer ENOTTY.\n\n" + requests() +
         "\n### Calls that no policy can allow\n\nRefused with EPERM and recorded:\n\n" + names(kForbiddenCalls) +
         "\n\nAnswered with ENOSYS, as a kernel without them does; programs have a second way (`io_uring_*` is "
         "recorded):\n\n" +
         names(kAbsentCalls) + "\n";
}

}  // namespace caisson::surface
