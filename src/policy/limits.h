// Ceilings of a policy (P7). A value above a ceiling is an error, never clipped. An owner's configuration may change a
// ceiling, so ceilings are values, not constants.
#pragma once

#include <cstdint>
#include <limits>

#include "policy/model.h"

namespace caisson::policy {

struct Ceilings {
  double cpus = 2;
  std::uint64_t memory = 2 * kGiB;
  std::uint64_t swap = 2 * kGiB;
  std::uint64_t processes = 500;
  std::uint64_t open_files = 4096;
  double wall_seconds = 600;
  std::uint64_t output = 1 * kGiB;
};

/// The ceilings of a level, from SPEC.
constexpr Ceilings ceilingsOf(Level level) {
  Ceilings ceilings;
  if (level != Level::full) {
    ceilings.wall_seconds = 300;
    ceilings.output = 10 * kMiB;
  }
  return ceilings;
}

/// resources.wall_seconds = "none".
inline constexpr double kNoTimeLimit = std::numeric_limits<double>::infinity();

/// The level's default for an unset key.
constexpr double defaultWallSeconds(Level level) { return level == Level::full ? 120 : 60; }
constexpr std::uint64_t defaultOutput(Level level) { return level == Level::full ? 10 * kMiB : 1 * kMiB; }

constexpr double effectiveWallSeconds(const Policy& policy) {
  return policy.resources.wall_seconds.value_or(defaultWallSeconds(policy.isolation.level));
}
constexpr std::uint64_t effectiveOutput(const Policy& policy) {
  return policy.resources.output.value_or(defaultOutput(policy.isolation.level));
}

}  // namespace caisson::policy
