// How much is kept below CAISSON_HOME of what payloads left: it counts with what commits replaced.
#pragma once

#include <cstdint>

namespace caisson::supervise {

/// Files that runs moved out of a workspace, since the host would execute them (file_quarantine.h). On the disk.
std::uint64_t quarantinedBytes();
/// Caches that were set aside after an escape attempt (discardCache()). On the disk.
std::uint64_t evidenceBytes();

}  // namespace caisson::supervise
