// Times for people and other programs: RFC 3339 in UTC.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace caisson {

/// "2026-11-17T12:34:56Z". `seconds`: since 1970.
std::string utcText(std::int64_t seconds);

/// The same with milliseconds: "2026-11-17T12:34:56.789Z".
std::string utcText(std::chrono::system_clock::time_point time);

}  // namespace caisson
