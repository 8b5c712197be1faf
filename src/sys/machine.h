// Facts about the whole machine.
#pragma once

#include <sys/sysinfo.h>

#include <cstdint>

namespace caisson::sys {

/// Bytes of memory; 0: unknown.
inline std::uint64_t machineMemory() {
  struct sysinfo machine{};
  return ::sysinfo(&machine) == 0 ? static_cast<std::uint64_t>(machine.totalram) * machine.mem_unit : 0;
}

}  // namespace caisson::sys
