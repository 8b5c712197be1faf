// Reading the log: lines into entries, files in their order. Everything read is suspect: any process of this user could
// have written it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "audit/event.h"
#include "base/error.h"
#include "sys/fd.h"

namespace caisson::audit {

/// One line, parsed. The chain is not checked here (check.h does that).
struct Entry {
  std::uint64_t seq = 0;
  std::string time;   ///< as written: "2026-11-15T05:11:04.123456Z", which sorts as text
  std::string event;  ///< a newer caisson may have kinds that this one does not know
  Severity severity = Severity::info;
  std::string sandbox;
  std::int64_t pid = 0;
  std::string data;  ///< a JSON object
};

/// Nothing if the line is not one of the log.
std::optional<Entry> parseEntry(std::string_view line);

/// Cuts text into lines, however it arrives. A line that is too long to be one of the log is dropped and counted.
class LineCutter {
 public:
  /// Calls `take` with each line that is complete, its end included.
  void add(std::string_view text, const std::function<void(std::string_view)>& take);
  [[nodiscard]] const std::string& rest() const { return rest_; }  ///< what has no line end yet
  [[nodiscard]] std::uint64_t dropped() const { return dropped_; }

 private:
  std::string rest_;
  std::uint64_t dropped_ = 0;
  bool skipping_ = false;
};

/// The log files as they are at one moment: opened together while no writer was at work.
struct LogFile {
  std::uint32_t number = 0;
  std::string name;
  sys::Fd file;
  std::uint64_t size = 0;
  std::string problem;  ///< why it could not be opened, or empty
};

/// Numbers of the log files in the directory, in order.
std::vector<std::uint32_t> logNumbers(int directory);
/// The same for the keys that chains began with.
std::vector<std::uint32_t> keyNumbers(int directory);

/// Where the log of this user is, whether it exists or not. Empty when there is no place for one.
std::string logDirectory();

/// Follows the log over its files from the start. An absent log is an empty one.
class Reader {
 public:
  static Result<Reader> open(const std::string& directory);
  /// Passes on what was added since the last call. Lines that are not the log's are counted in `foreign`.
  Result<void> read(const std::function<void(Entry&&, std::string_view line)>& take);
  [[nodiscard]] std::uint64_t foreign() const { return foreign_; }

 private:
  Result<void> readFile(const std::function<void(Entry&&, std::string_view line)>& take);

  std::string path_;
  sys::Fd directory_;
  std::uint32_t number_ = 0;
  sys::Fd file_;
  std::uint64_t offset_ = 0;
  LineCutter cutter_;
  std::uint64_t foreign_ = 0;
};

}  // namespace caisson::audit
