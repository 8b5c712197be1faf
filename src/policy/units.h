// Parses and formats sizes and durations.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace caisson::policy {

/// The maximum of sizes and counts: file offsets and the integers of every format are signed 64-bit.
inline constexpr std::uint64_t kMaxQuantity = INT64_MAX;

/// "1024", "512M", "512MiB", "1.5G", "100k": binary multiples. The error says what is wrong with the text.
std::expected<std::uint64_t, std::string> parseSize(std::string_view text);

/// "90", "90s", "2m", "1h", "500ms".
std::expected<double, std::string> parseSeconds(std::string_view text);

/// "512 MiB" where that is exact, else "1000 bytes".
std::string formatSize(std::uint64_t bytes);
/// The shortest text that reads back as the same number.
std::string formatNumber(double number);
/// "90 s", "500 ms".
std::string formatSeconds(double seconds);

}  // namespace caisson::policy
