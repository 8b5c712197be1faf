// The built-in filter, compiled at build time: a launch that does not adapt it has no cost.
#include <array>

#include "plan/syscall_emit.h"
#include "plan/syscall_rules.h"
#include "plan/syscalls.h"

namespace caisson::plan {
namespace {

constexpr std::vector<sock_filter> program() {
  SyscallFilter filter;
  filter.unlisted = rules::kUnlisted;
  filter.rules = rules::builtinRules().take();
  return bpf::emitProgram(filter);
}

constexpr std::size_t kLength = program().size();
static_assert(kLength <= bpf::kMaxProgram);

constexpr std::array<sock_filter, kLength> makeProgram() {
  std::array<sock_filter, kLength> result{};
  const std::vector<sock_filter> code = program();
  std::copy(code.begin(), code.end(), result.begin());
  return result;
}

constexpr std::array<sock_filter, kLength> kProgram = makeProgram();

constexpr std::size_t countAllowed() {
  SyscallFilter filter;
  filter.rules = rules::builtinRules().take();
  return filter.allowed();
}

constexpr std::size_t kAllowedCount = countAllowed();

}  // namespace

std::span<const sock_filter> builtinProgram() { return kProgram; }
std::size_t builtinAllowed() { return kAllowedCount; }

}  // namespace caisson::plan
