#include "audit/reader.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <concepts>

#include "audit/chain.h"
#include "audit/files.h"
#include "audit/head.h"
#include "base/json_value.h"
#include "sys/state_home.h"

namespace caisson::audit {
namespace {

constexpr std::size_t kChunk = 256 * 1024;

bool take(const JsonValue& object, std::string_view key, std::string& to) {
  auto found = object.textAt(key);
  if (found) to = std::move(*found);
  return found.has_value();
}

template <std::integral T>
bool take(const JsonValue& object, std::string_view key, T& to) {
  const auto found = object.integerAt(key);
  if (found) to = static_cast<T>(*found);
  return found.has_value();
}

/// The numbers in the directory's file names, ascending; none if it cannot be read.
std::vector<std::uint32_t> numbersOf(int directory, std::uint32_t (*number_of)(std::string_view)) {
  std::vector<std::uint32_t> numbers;
  const int copy = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* stream = copy >= 0 ? ::fdopendir(copy) : nullptr;
  if (stream == nullptr) return numbers;
  while (const dirent* entry = ::readdir(stream))
    if (const std::uint32_t number = number_of(entry->d_name); number != 0) numbers.push_back(number);
  ::closedir(stream);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

}  // namespace

std::optional<Entry> parseEntry(std::string_view line) {
  SealedLine sealed;
  if (!splitLine(line, sealed)) return std::nullopt;
  const auto object = JsonValue::parse(line);
  if (!object) return std::nullopt;
  Entry entry;
  std::string severity;
  if (!take(*object, "seq", entry.seq) || !take(*object, "time", entry.time) || !take(*object, "event", entry.event) ||
      !take(*object, "severity", severity) || !take(*object, "sandbox", entry.sandbox) ||
      !take(*object, "pid", entry.pid))
    return std::nullopt;
  const auto known = severityNamed(severity);
  const auto data = object->find("data");
  if (!known || !data || !data->isObject()) return std::nullopt;
  entry.severity = *known;
  entry.data = data->written();
  return entry;
}

void LineCutter::add(std::string_view text, const std::function<void(std::string_view)>& take) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view piece = text.substr(0, end == std::string_view::npos ? text.size() : end + 1);
    text.remove_prefix(piece.size());
    const bool complete = end != std::string_view::npos;
    if (skipping_ || rest_.size() + piece.size() > kMaxLine + 1) {
      if (!skipping_) ++dropped_;
      skipping_ = !complete;
      rest_.clear();
      continue;
    }
    if (complete && rest_.empty()) {
      take(piece);
      continue;
    }
    rest_ += piece;
    if (!complete) continue;
    take(rest_);
    rest_.clear();
  }
}

std::vector<std::uint32_t> logNumbers(int directory) { return numbersOf(directory, numberOfLog); }
std::vector<std::uint32_t> keyNumbers(int directory) { return numbersOf(directory, numberOfKey); }

std::string logDirectory() {
  const std::string home = sys::stateHome();
  return home.empty() ? "" : home + "/audit";
}

Result<Reader> Reader::open(const std::string& directory) {
  Reader reader;
  reader.path_ = directory;
  auto opened = sys::openPrivateDirectory(directory);
  if (!opened) return fail(opened.error());
  reader.directory_ = std::move(*opened);
  return reader;
}

Result<void> Reader::readFile(const std::function<void(Entry&&, std::string_view line)>& take) {
  std::string buffer(kChunk, '\0');
  for (;;) {
    const ssize_t got = ::pread(file_.get(), buffer.data(), buffer.size(), static_cast<off_t>(offset_));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(sysError(Stage::state, "pread", path_ + "/" + logName(number_), errno));
    if (got == 0) return {};
    offset_ += static_cast<std::uint64_t>(got);
    cutter_.add(std::string_view(buffer).substr(0, static_cast<std::size_t>(got)), [&](std::string_view line) {
      if (auto entry = parseEntry(line)) {
        take(std::move(*entry), line);
      } else {
        ++foreign_;
      }
    });
  }
}

Result<void> Reader::read(const std::function<void(Entry&&, std::string_view line)>& take) {
  if (file_) {
    if (auto done = readFile(take); !done) return done;
  }
  for (const std::uint32_t number : logNumbers(directory_.get())) {
    if (number <= number_) continue;
    if (file_) {  // what was added after the last read, before the next file was started
      if (auto done = readFile(take); !done) return done;
    }
    auto file = openOwn(directory_.get(), path_, logName(number), O_RDONLY);
    if (!file) return fail(file.error());
    file_ = std::move(*file);
    number_ = number;
    offset_ = 0;
    cutter_ = {};
    if (auto done = readFile(take); !done) return done;
  }
  return {};
}

}  // namespace caisson::audit
