// Reads the log: parses lines into entries, files in order. The input is untrusted: any process of this user could have
// written it.
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

/// One parsed line. Does not verify the chain (check.h does).
struct Entry {
  std::uint64_t seq = 0;
  std::string time;   ///< verbatim: "2026-11-15T05:11:04.123456Z", which sorts as text
  std::string event;  ///< a newer caisson may write types unknown here
  Severity severity = Severity::info;
  std::string sandbox;
  std::int64_t pid = 0;
  std::string data;  ///< a JSON object; deceptive characters are not escaped here
};

/// nullopt if it is not a line of the log.
std::optional<Entry> parseEntry(std::string_view line);

/// Splits a stream of text into lines. Drops and counts lines that are too long for the log.
class LineCutter {
 public:
  /// Calls `take` with each complete line, including its line end.
  void add(std::string_view text, const std::function<void(std::string_view)>& take);
  [[nodiscard]] const std::string& rest() const { return rest_; }  ///< text without a line end yet
  [[nodiscard]] std::uint64_t dropped() const { return dropped_; }

 private:
  std::string rest_;
  std::uint64_t dropped_ = 0;
  bool skipping_ = false;  ///< inside a line that is too long
};

/// One log file. All files of a set are opened together while no writer is active, so they are consistent.
struct LogFile {
  std::uint32_t number = 0;
  std::string name;
  sys::Fd file;
  std::uint64_t size = 0;
  std::string problem;  ///< why it could not be opened, or empty
};

/// Numbers of the log files in the directory, ascending; none if it cannot be read.
std::vector<std::uint32_t> logNumbers(int directory);
/// Same, for the keys that chains started with.
std::vector<std::uint32_t> keyNumbers(int directory);

/// The path of this user's log, whether it exists or not. Empty if there is no state directory.
std::string logDirectory();

/// Reads the log across its files from the start.
class Reader {
 public:
  /// Creates the directory if it is missing; the log is then empty.
  static Result<Reader> open(const std::string& directory);
  /// Calls `take` with every complete line that was added since the last call. Counts invalid lines in foreign(); skips
  /// lines that are too long.
  Result<void> read(const std::function<void(Entry&&, std::string_view line)>& take);
  [[nodiscard]] std::uint64_t foreign() const { return foreign_; }

 private:
  /// Reads the rest of the current file.
  Result<void> readFile(const std::function<void(Entry&&, std::string_view line)>& take);

  std::string path_;
  sys::Fd directory_;
  std::uint32_t number_ = 0;
  sys::Fd file_;
  std::uint64_t offset_ = 0;  ///< of the next byte to read in it
  LineCutter cutter_;
  std::uint64_t foreign_ = 0;
};

}  // namespace caisson::audit
