// The supported architectures, and that of this program.
#pragma once

#include <linux/audit.h>

#include <cstdint>
#include <string_view>

namespace caisson {

/// The value is the architecture's number in seccomp.
enum class Architecture : std::uint32_t { x86_64 = AUDIT_ARCH_X86_64, aarch64 = AUDIT_ARCH_AARCH64 };

inline constexpr Architecture kArchitectures[] = {Architecture::x86_64, Architecture::aarch64};

inline constexpr Architecture kNative =
#if defined(__x86_64__)
    Architecture::x86_64;
#else
    Architecture::aarch64;
#endif

inline constexpr auto kNativeArchitecture = static_cast<std::uint32_t>(kNative);

constexpr std::string_view architectureName(Architecture architecture) {
  return architecture == Architecture::x86_64 ? "x86_64" : "aarch64";
}

}  // namespace caisson
