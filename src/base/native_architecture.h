// The architecture of this program, as seccomp names it.
#pragma once

#include <linux/audit.h>

#include <cstdint>

namespace caisson {

inline constexpr std::uint32_t kNativeArchitecture =
#if defined(__x86_64__)
    AUDIT_ARCH_X86_64;
#else
    AUDIT_ARCH_AARCH64;
#endif

}  // namespace caisson
