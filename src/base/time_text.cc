#include "base/time_text.h"

#include <ctime>

namespace caisson {
namespace {

/// Without the zone.
std::string dateAndTime(std::int64_t seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  char text[40];
  return {text, std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts)};
}

}  // namespace

std::string utcText(std::int64_t seconds) { return dateAndTime(seconds) + "Z"; }

std::string utcText(std::chrono::system_clock::time_point time) {
  using std::chrono::milliseconds;
  const auto whole = std::chrono::floor<std::chrono::seconds>(time.time_since_epoch());
  const auto rest = std::chrono::floor<milliseconds>(time.time_since_epoch() - whole);
  return dateAndTime(whole.count()) + "." + std::to_string(1000 + rest.count()).substr(1) + "Z";
}

}  // namespace caisson
