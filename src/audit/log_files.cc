// File management of the log: starts chains and files, recovers what a dead writer left, prunes old files.
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "audit/files.h"
#include "audit/log.h"
#include "audit/reader.h"

namespace caisson::audit {
namespace {

// No line is longer. A writer that died while it wrote its deferred events may have left many lines.
constexpr std::size_t kRecoveryBlock = 1U << 20U;

std::uint64_t sizeOf(int file) {
  struct stat status;
  return ::fstat(file, &status) == 0 && status.st_size > 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

bool fillRandom(Digest& key) {
  std::size_t have = 0;
  while (have < key.size()) {
    const ssize_t got = ::getrandom(key.data() + have, key.size() - have, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    have += static_cast<std::size_t>(got);
  }
  if (have == key.size()) return true;
  const sys::Fd device(::open("/dev/urandom", O_RDONLY | O_CLOEXEC));
  return ::read(device.get(), key.data(), key.size()) == static_cast<ssize_t>(key.size());
}

}  // namespace

Result<void> Log::startChain(std::string_view why) {
  auto numbers = logNumbers(directory_.get());
  // Ignore empty files, which a start that died has left.
  std::erase_if(numbers, [&](std::uint32_t number) {
    struct stat status;
    return ::fstatat(directory_.get(), logName(number).c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISREG(status.st_mode) && status.st_size == 0;
  });
  head_ = {};
  head_.writes = 1;
  head_.chain = head_.file = head_.oldest = numbers.empty() ? 1 : numbers.back() + 1;
  if (!fillRandom(head_.link.key)) return fail(failed("getrandom", "", errno));
  const std::string name = keyName(head_.chain);
  (void)::unlinkat(directory_.get(), name.c_str(), 0);  // left by a start that died before it wrote a head
  auto key = openOwn(directory_.get(), path_, name, O_WRONLY | O_CREAT | O_EXCL);
  if (!key) return fail(key.error());
  const std::string text = hex(head_.link.key) + "\n";
  if (::write(key->get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) || ::fsync(key->get()) != 0)
    return fail(failed("write", name, errno));
  if (!numbers.empty()) head_.oldest = numbers.front();
  chain_reason_ = why;
  return openNext(head_.file);
}

void Log::noteBeginning() {
  Event first{EventType::log_started, Severity::info, {}, Fields().number("chain", head_.chain)};
  if (head_.link.seq > 0) {
    first.type = EventType::log_continued;
    first.fields = Fields().number("previous_seq", head_.link.seq).text("previous_hash", hex(head_.link.hash));
  } else if (head_.oldest != head_.chain) {
    first.type = EventType::log_head_lost;
    first.severity = Severity::critical;
    first.fields.text("reason", chain_reason_.empty() ? "not known" : chain_reason_);
  }
  first_.insert(first_.begin(), std::move(first));
}

Result<void> Log::openNext(std::uint32_t number) {
  constexpr std::uint32_t kTries = 1000;
  // Readers do not find a number beyond the last.
  for (std::uint32_t tries = 0; tries < kTries && number <= kLastNumber; ++tries, ++number) {
    auto file = openOwn(directory_.get(), path_, logName(number), O_RDWR | O_CREAT);
    if (!file) return fail(file.error());
    if (sizeOf(file->get()) != 0) continue;  // not ours: `audit verify` reports it
    if (::fsync(directory_.get()) != 0) return fail(failed("fsync", "", errno));
    current_ = std::move(*file);
    current_number_ = head_.file = number;
    head_.end = 0;
    return writeHead(true);
  }
  return fail(plainError(Stage::state, "audit log", path_, "there is no free file name", "move the log files away"));
}

Result<void> Log::openCurrent() {
  const std::string name = logName(head_.file);
  if (current_number_ != head_.file || !current_) {
    auto file = openOwn(directory_.get(), path_, name, O_RDWR);
    if (!file && file.error().sys_errno != ENOENT) return fail(file.error());
    current_ = file ? std::move(*file) : sys::Fd();
    current_number_ = head_.file;
  }
  struct stat status{};
  if (current_ && ::fstat(current_.get(), &status) != 0) return fail(failed("fstat", name, errno));
  // A file that was unlinked while open counts as missing.
  const bool gone = !current_ || status.st_nlink == 0;
  const std::uint64_t size = gone ? 0 : static_cast<std::uint64_t>(status.st_size);
  if (gone || size < head_.end) {
    const std::uint64_t expected = head_.end;
    if (auto next = openNext(head_.file + 1); !next) return next;
    note(EventType::log_tail_lost, Severity::critical,
         Fields().text("file", name).flag("missing", gone).number("expected_bytes", expected).number("bytes", size));
    return {};
  }
  return size > head_.end ? recover(size) : Result<void>{};
}

Result<void> Log::recover(std::uint64_t size) {
  const std::string name = logName(head_.file);
  std::string remains;
  std::string_view left;
  int adopted = 0;
  for (int before = -1; before < adopted && head_.end < size;) {
    before = adopted;
    remains.resize(std::min<std::uint64_t>(size - head_.end, kRecoveryBlock));
    const ssize_t got = ::pread(current_.get(), remains.data(), remains.size(), static_cast<off_t>(head_.end));
    if (got < 0) return fail(failed("pread", name, errno));
    remains.resize(static_cast<std::size_t>(got));
    left = remains;
    for (std::size_t end = left.find('\n'); end != std::string_view::npos; end = left.find('\n')) {
      if (!follows(left.substr(0, end + 1), head_.link)) break;
      head_.end += end + 1;
      left.remove_prefix(end + 1);
      ++adopted;
    }
  }
  const std::uint64_t cut = size - head_.end;
  if (cut > 0 && ::ftruncate(current_.get(), static_cast<off_t>(head_.end)) != 0)
    return fail(failed("ftruncate", name, errno));
  Fields fields;
  fields.text("file", name).number("lines_taken_over", adopted).number("bytes_cut", cut);
  if (cut > 0) fields.text("cut_starts_with", left.substr(0, 200));
  note(EventType::log_recovered, Severity::warn, std::move(fields));
  return {};
}

void Log::planPruning() {
  const auto numbers = logNumbers(directory_.get());
  std::uint64_t total = 0;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> sizes;
  for (const std::uint32_t number : numbers) {
    struct stat status;
    if (number < head_.oldest ||
        ::fstatat(directory_.get(), logName(number).c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
      continue;
    sizes.emplace_back(number, static_cast<std::uint64_t>(status.st_size));
    total += sizes.back().second;
  }
  std::uint32_t oldest = head_.oldest;
  for (std::size_t at = 0; at + 1 < sizes.size() && total > settings_.total_bytes; ++at) {
    total -= sizes[at].second;
    oldest = sizes[at + 1].first;
  }
  if (oldest == head_.oldest) return;
  note(EventType::log_pruned, Severity::info, Fields().number("from_file", head_.oldest).number("oldest_kept", oldest));
  head_.oldest = oldest;
}

void Log::removePruned() const {
  // Also removes files whose removal an earlier writer recorded before it died.
  if (std::none_of(first_.begin(), first_.end(), [](const Event& e) { return e.type == EventType::log_pruned; }))
    return;
  for (const std::uint32_t number : logNumbers(directory_.get()))
    if (number < head_.oldest) (void)::unlinkat(directory_.get(), logName(number).c_str(), 0);
}

}  // namespace caisson::audit
