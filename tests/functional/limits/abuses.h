// The table of abuses: the attempt, its limits, and the accepted ways of being stopped.
#pragma once

#include <cstdint>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace caisson::test {

struct Abuse {
  std::string_view name;
  std::vector<std::string> command;        ///< verb and arguments of the payload
  std::string_view policy;                 ///< TOML that extends the default profile
  std::vector<std::string_view> limits;    ///< names in the result; any of these
  std::vector<std::string_view> refusals;  ///< "call: ERRNO", where the kernel denies it and the program continues
  std::string_view workspace = ".:overlay";
  std::uint64_t most_left = 0;  ///< bytes that may be in the workspace afterwards
};

std::span<const Abuse> abuses();

inline void PrintTo(const Abuse& abuse, std::ostream* to) { *to << abuse.name; }

}  // namespace caisson::test
