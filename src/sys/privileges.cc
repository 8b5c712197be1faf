#include "sys/privileges.h"

#include <sys/prctl.h>

#include "sys/kernel_abi.h"
#include "sys/raw_syscall.h"

namespace caisson::sys {
namespace {

constexpr int kCapabilityBits = 64;

Error privilegeError(std::string_view call, std::string_view object, long result) {
  return sysError(Stage::identity, call, object, static_cast<int>(-result));
}

}  // namespace

Result<void> dropCapabilities(const CapabilityDrop& drop) {
  struct {
    std::uint32_t version;
    int pid;
  } const header{kCapabilityVersion3, 0};
  struct {
    std::uint32_t effective, permitted, inheritable;
  } sets[2] = {};
  if (drop.keep != 0) {
    if (const long got = raw(SYS_capget, &header, sets); got < 0) {
      return fail(privilegeError("capget", drop.object, got));
    }
  }
  // The bounding set first: shrinking it needs a capability that the last step may drop.
  for (int capability = 0; drop.bounding && capability < kCapabilityBits; ++capability) {
    if ((drop.keep >> capability & 1U) != 0) continue;
    if (raw(SYS_prctl, PR_CAPBSET_DROP, capability, 0, 0, 0) != 0) break;  // past the last one, or not root
  }
  if (drop.ambient) raw(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  for (int half = 0; half < 2; ++half) {
    sets[half].permitted &= static_cast<std::uint32_t>(drop.keep >> (32 * half));
    sets[half].effective = sets[half].permitted;
    sets[half].inheritable = 0;
  }
  if (const long set = raw(SYS_capset, &header, sets); set < 0) return fail(privilegeError("capset", drop.object, set));
  return {};
}

Result<void> forbidNewPrivileges(std::string_view object) {
  const long set = raw(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  return set < 0 ? fail(privilegeError("prctl", object, set)) : Result<void>();
}

}  // namespace caisson::sys
