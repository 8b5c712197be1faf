#include "policy/units.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "base/text.h"

namespace caisson::policy {

namespace {

struct Unit {
  std::string_view text;
  std::uint64_t bytes;
};

constexpr std::uint64_t kKilo = 1024;

constexpr Unit kSizeUnits[] = {
    {"", 1},
    {"B", 1},
    {"k", kKilo},
    {"K", kKilo},
    {"KiB", kKilo},
    {"m", kKilo* kKilo},
    {"M", kKilo* kKilo},
    {"MiB", kKilo* kKilo},
    {"g", kKilo* kKilo* kKilo},
    {"G", kKilo* kKilo* kKilo},
    {"GiB", kKilo* kKilo* kKilo},
    {"t", kKilo* kKilo* kKilo* kKilo},
    {"T", kKilo* kKilo* kKilo* kKilo},
    {"TiB", kKilo* kKilo* kKilo* kKilo},
};

struct TimeUnit {
  std::string_view text;
  double seconds;
};

constexpr TimeUnit kTimeUnits[] = {{"", 1}, {"ms", 0.001}, {"s", 1}, {"m", 60}, {"min", 60}, {"h", 3600}, {"d", 86400}};

constexpr double kMaxSeconds = 1e9;

/// Splits "1.5 GiB" into "1.5" and "GiB".
std::pair<std::string_view, std::string_view> splitUnit(std::string_view text) {
  std::size_t end = text.find_first_not_of("0123456789.");
  if (end == std::string_view::npos) end = text.size();
  std::string_view unit = text.substr(end);
  if (end > 0 && unit.size() > 1 && unit.starts_with(' ')) unit.remove_prefix(1);
  return {text.substr(0, end), unit};
}

std::optional<std::uint64_t> parseDigits(std::string_view digits) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

constexpr std::string_view kSizeForm = "expected a number with a unit, for example 512M or 1.5G";
constexpr std::string_view kSecondsForm = "expected a number with a unit, for example 90s, 30m or 2h";

std::unexpected<std::string> notASize(std::string_view text) {
  return std::unexpected("invalid size " + inQuotes(text) + ": " + std::string(kSizeForm));
}

std::unexpected<std::string> notWholeBytes(std::string_view text) {
  return std::unexpected("size " + inQuotes(text) + " is not a whole number of bytes");
}

std::unexpected<std::string> unknownUnit(std::string_view what, std::string_view text, std::string_view unit,
                                         std::string_view known) {
  return std::unexpected("invalid " + std::string(what) + " " + inQuotes(text) + ": unknown unit " + inQuotes(unit) +
                         ", expected " + std::string(known));
}

}  // namespace

std::expected<std::uint64_t, std::string> parseSize(std::string_view text) {
  if (text.empty()) return std::unexpected("empty size: " + std::string(kSizeForm));
  if (text[0] == '-') return std::unexpected("negative size " + inQuotes(text) + ": " + std::string(kSizeForm));
  const auto [number, unit_text] = splitUnit(text);
  const Unit* unit = nullptr;
  for (const Unit& candidate : kSizeUnits) {
    if (candidate.text == unit_text) unit = &candidate;
  }
  if (number.empty()) return notASize(text);
  if (unit == nullptr) return unknownUnit("size", text, unit_text, "k, M, G or T");

  const std::size_t dot = number.find('.');
  const std::string_view whole_digits = number.substr(0, dot);
  std::string_view fraction_digits = dot == std::string_view::npos ? std::string_view{} : number.substr(dot + 1);
  if (whole_digits.empty() || (dot != std::string_view::npos && fraction_digits.empty())) return notASize(text);
  if (fraction_digits.find('.') != std::string_view::npos) return notASize(text);
  while (fraction_digits.ends_with('0')) fraction_digits.remove_suffix(1);

  const auto whole = parseDigits(whole_digits);
  if (!whole || *whole > kMaxQuantity / unit->bytes) return std::unexpected("size " + inQuotes(text) + " is too large");
  std::uint64_t bytes = *whole * unit->bytes;
  if (!fraction_digits.empty()) {
    // Exact, so that "1.5G" is not rounded and "1.0001k" is rejected. 18 digits times a TiB stay below 2^128.
    if (fraction_digits.size() > 18) return notWholeBytes(text);
    unsigned __int128 scaled = parseDigits(fraction_digits).value_or(0);
    scaled *= unit->bytes;
    unsigned __int128 divisor = 1;
    for (std::size_t digit = 0; digit < fraction_digits.size(); ++digit) divisor *= 10;
    if (scaled % divisor != 0) return notWholeBytes(text);
    bytes += static_cast<std::uint64_t>(scaled / divisor);
    if (bytes > kMaxQuantity) return std::unexpected("size " + inQuotes(text) + " is too large");
  }
  return bytes;
}

std::expected<std::uint64_t, std::string> parseShare(std::string_view text) {
  const auto percent = parseDigits(text.substr(0, text.find('%')));
  if (!percent || !text.ends_with('%') || text.find('%') + 1 != text.size() || *percent < 1 || *percent > 100) {
    return std::unexpected("invalid share " + inQuotes(text) + ": expected 1% to 100%");
  }
  return shareOfMemory(*percent);
}

std::expected<double, std::string> parseSeconds(std::string_view text) {
  if (text.empty()) return std::unexpected("empty duration: " + std::string(kSecondsForm));
  if (text[0] == '-') return std::unexpected("negative duration " + inQuotes(text) + ": " + std::string(kSecondsForm));
  const auto [number, unit_text] = splitUnit(text);
  double value = 0;
  const auto [end, error] =
      std::from_chars(number.data(), number.data() + number.size(), value, std::chars_format::fixed);
  if (number.empty() || error != std::errc{} || end != number.data() + number.size()) {
    return std::unexpected("invalid duration " + inQuotes(text) + ": " + std::string(kSecondsForm));
  }
  for (const TimeUnit& unit : kTimeUnits) {
    if (unit.text != unit_text) continue;
    // Division gives the nearest double. 0.001 is not exact in binary, so multiplying could differ in the last bit.
    const double seconds = unit_text == "ms" ? value / 1000 : value * unit.seconds;
    if (!(seconds <= kMaxSeconds)) return std::unexpected("duration " + inQuotes(text) + " is too long");
    return seconds;
  }
  return unknownUnit("duration", text, unit_text, "ms, s, m, h or d");
}

std::string formatSize(std::uint64_t bytes) {
  if (isShare(bytes)) return std::to_string(percentOf(bytes)) + "% of the host's";
  static constexpr std::string_view kNames[] = {" bytes", " KiB", " MiB", " GiB", " TiB"};
  std::size_t unit = 0;
  while (bytes != 0 && bytes % kKilo == 0 && unit + 1 < std::size(kNames)) {
    bytes /= kKilo;
    ++unit;
  }
  return std::to_string(bytes) + std::string(kNames[unit]);
}

std::string formatNumber(double number) {
  // Not std::to_chars: its tables for floating point are 130 KB of the launcher.
  char buffer[64];
  if (std::floor(number) == number && std::abs(number) < 1e15) {
    std::snprintf(buffer, sizeof buffer, "%.0f", number);
    return buffer;
  }
  for (int digits = 1; digits <= 17; ++digits) {
    std::snprintf(buffer, sizeof buffer, "%.*g", digits, number);
    if (std::strtod(buffer, nullptr) == number) break;
  }
  return buffer;
}

std::string formatSeconds(double seconds) {
  if (std::isinf(seconds)) return "none";
  if (seconds > 0 && seconds < 1 && std::floor(seconds * 1000) == seconds * 1000) {
    return formatNumber(seconds * 1000) + " ms";
  }
  return formatNumber(seconds) + " s";
}

}  // namespace caisson::policy
