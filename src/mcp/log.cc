#include "mcp/log.h"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <ctime>

#include "base/time_text.h"

namespace caisson::mcp {
namespace {

constexpr std::array<std::string_view, 5> kNames{"debug", "info", "warning", "error", "off"};

LogLevel threshold() {
  const char* name = std::getenv("CAISSON_LOG");
  return name == nullptr ? LogLevel::info : logLevelOf(name).value_or(LogLevel::info);
}

std::string now() {
  timespec time{};
  ::clock_gettime(CLOCK_REALTIME, &time);
  return utcText(std::chrono::system_clock::time_point(std::chrono::seconds(time.tv_sec) +
                                                       std::chrono::nanoseconds(time.tv_nsec)));
}

}  // namespace

std::optional<LogLevel> logLevelOf(std::string_view name) {
  for (std::size_t at = 0; at < kNames.size(); ++at)
    if (kNames[at] == name) return static_cast<LogLevel>(at);
  return std::nullopt;
}

void writeLog(LogLevel level, std::string_view message, const Json& fields) {
  static const LogLevel least = threshold();
  if (level < least || level == LogLevel::off) return;
  Json line = fields;
  line["time"] = now();
  line["level"] = kNames[static_cast<std::size_t>(level)];
  line["message"] = message;
  const std::string text = writeJson(line) + "\n";
  // One write, so that lines of several threads don't interleave. A failed write to the log is ignored.
  static_cast<void>(::write(STDERR_FILENO, text.data(), text.size()));
}

}  // namespace caisson::mcp
