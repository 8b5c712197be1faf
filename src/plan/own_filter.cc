#include "plan/own_filter.h"

#include <sys/mman.h>

#include <cerrno>

namespace caisson::plan {

rules::Rules allowCalls(std::initializer_list<std::span<const std::string_view>> lists, Architecture architecture) {
  rules::Rules allowed(architecture);
  for (const auto& list : lists) {
    for (const std::string_view name : list) allowed.add(name, kAllow);
  }
  for (const std::string_view name : {"mmap", "mprotect"}) {
    allowed.set(name, kAllow, {{{rules::anyBit(2, PROT_EXEC)}, refuse(EPERM)}});
  }
  return allowed;
}

void allowAbort(rules::Rules& rules, std::uint32_t self) {
  rules.set("tgkill", refuse(EPERM), {{{rules::equals(0, self)}, kAllow}});
}

SyscallFilter denyUnlisted(rules::Rules rules) {
  SyscallFilter filter;
  filter.architecture = rules.architecture();
  filter.rules = rules.take();
  filter.unlisted = refuse(EPERM);
  return filter;
}

}  // namespace caisson::plan
