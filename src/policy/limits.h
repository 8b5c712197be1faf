// Ceilings of a policy. A value above a ceiling is an error, never clipped, unless a person typed it (Policy::typed).
// An owner's configuration may change a ceiling, so ceilings are values, not constants.
#pragma once

#include <cstdint>
#include <limits>

#include "policy/model.h"
#include "policy/units.h"

namespace caisson::policy {

struct Ceilings {
  double cpus = 2;
  std::uint64_t memory = 2 * kGiB;
  std::uint64_t swap = 2 * kGiB;
  std::uint64_t processes = 500;
  std::uint64_t open_files = 4096;
  double wall_seconds = 600;
  std::uint64_t output = 1 * kGiB;  ///< bytes of each stream
  std::uint64_t host_memory = 0;    ///< to compare shares with sizes; 0: unknown
};

/// The ceilings of a level.
constexpr Ceilings ceilingsOf(Level level) {
  Ceilings ceilings;
  if (level != Level::full) {
    ceilings.wall_seconds = 300;
    ceilings.output = 10 * kMiB;
  }
  return ceilings;
}

/// The ceilings of a policy: those of its level; with resources.ceilings = `dev`, those of `dev` except for swap and
/// output.
constexpr Ceilings ceilingsOf(const Policy& policy) {
  Ceilings ceilings = ceilingsOf(policy.isolation.level);
  if (policy.resources.ceilings != CeilingSet::dev) return ceilings;
  ceilings.cpus = kAllCpus;
  ceilings.memory = shareOfMemory(50);
  ceilings.processes = 4096;
  ceilings.open_files = 16384;
  ceilings.wall_seconds = 3600;
  return ceilings;
}

/// resources.wall_seconds = "none".
inline constexpr double kNoTimeLimit = std::numeric_limits<double>::infinity();

/// The level's default for an unset key; effectiveWallSeconds() also considers the ceilings of `dev`.
constexpr double defaultWallSeconds(Level level) { return level == Level::full ? 120 : 60; }
constexpr std::uint64_t defaultOutput(Level level) { return level == Level::full ? 10 * kMiB : 1 * kMiB; }

/// The time limit in force: the policy's, else the default of its level. `dev` has none on the command line; servers
/// set one for the commands of a model.
constexpr double effectiveWallSeconds(const Policy& policy) {
  const bool dev = policy.resources.ceilings == CeilingSet::dev;
  return policy.resources.wall_seconds.value_or(dev ? kNoTimeLimit : defaultWallSeconds(policy.isolation.level));
}
/// The output limit in force, in bytes.
constexpr std::uint64_t effectiveOutput(const Policy& policy) {
  return policy.resources.output.value_or(defaultOutput(policy.isolation.level));
}

}  // namespace caisson::policy
