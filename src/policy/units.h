// Parses and formats sizes and durations.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace caisson::policy {

/// The maximum of sizes and counts: file offsets and the integers of every format are signed 64-bit.
inline constexpr std::uint64_t kMaxQuantity = INT64_MAX;

/// A share of the host's memory as a size: above every size. The plan replaces it by bytes.
inline constexpr std::uint64_t kShareBit = 1ULL << 63;
constexpr std::uint64_t shareOfMemory(std::uint64_t percent) { return kShareBit | percent; }
constexpr bool isShare(std::uint64_t size) { return (size & kShareBit) != 0; }
/// The percent of a share; only if isShare().
constexpr std::uint64_t percentOf(std::uint64_t share) { return share & ~kShareBit; }
/// `size` in bytes on a machine with `whole` bytes. A share of an unknown whole (0) stays as it is.
constexpr std::uint64_t resolveShare(std::uint64_t size, std::uint64_t whole) {
  return isShare(size) && whole != 0 ? whole / 100 * percentOf(size) : size;
}
/// "50%": 1 to 100 percent, as shareOfMemory(). The error is a complete reason that quotes the text.
std::expected<std::uint64_t, std::string> parseShare(std::string_view text);

/// resources.cpus = "all": more processors than any kernel has.
inline constexpr double kAllCpus = 1e6;

/// "1024", "512M", "512MiB", "1.5G", "100k": binary multiples. The error is a complete reason that quotes the text.
std::expected<std::uint64_t, std::string> parseSize(std::string_view text);

/// "90", "90s", "2m", "1h", "1d", "500ms"; at most 10^9 seconds. The error is a complete reason that quotes the text.
std::expected<double, std::string> parseSeconds(std::string_view text);

/// "512 MiB" where that is exact, else "1000 bytes"; "50% of the host's" for a share.
std::string formatSize(std::uint64_t bytes);
/// The shortest text that reads back as the same number.
std::string formatNumber(double number);
/// "90 s", "500 ms"; "none" for infinity.
std::string formatSeconds(double seconds);

}  // namespace caisson::policy
