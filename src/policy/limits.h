// How much a policy may ask for (P7). A request above a ceiling is refused, never clipped; an owner's configuration
// may raise one, which is why ceilings are values and not constants of the checks.
#pragma once

#include <cstdint>

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

/// The ceilings SPEC gives a level.
constexpr Ceilings ceilingsOf(Level level) {
  Ceilings ceilings;
  if (level != Level::full) {
    ceilings.wall_seconds = 300;
    ceilings.output = 10 * kMiB;
  }
  return ceilings;
}

/// What is in force when the policy leaves the key unset: the level's default.
constexpr double defaultWallSeconds(Level level) { return level == Level::full ? 120 : 60; }
constexpr std::uint64_t defaultOutput(Level level) { return level == Level::full ? 10 * kMiB : 1 * kMiB; }

constexpr double effectiveWallSeconds(const Policy& policy) {
  return policy.resources.wall_seconds.value_or(defaultWallSeconds(policy.isolation.level));
}
constexpr std::uint64_t effectiveOutput(const Policy& policy) {
  return policy.resources.output.value_or(defaultOutput(policy.isolation.level));
}

}  // namespace caisson::policy
