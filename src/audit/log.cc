#include "audit/log.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "audit/files.h"
#include "audit/syncer.h"
#include "base/version.h"
#include "sys/file_lock.h"
#include "sys/no_file_size_signal.h"
#include "sys/state_home.h"

namespace caisson::audit {
namespace {

constexpr const char* kNoUnseenRuns = "nothing runs unseen: free some space, or set CAISSON_HOME to another directory";
constexpr std::int64_t kSecond = 1'000'000'000;

std::int64_t now(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return time.tv_sec * kSecond + time.tv_nsec;
}

class Unlock {
 public:
  explicit Unlock(int file) : file_(file) {}
  ~Unlock() { ::flock(file_, LOCK_UN); }
  Unlock(const Unlock&) = delete;
  Unlock& operator=(const Unlock&) = delete;

 private:
  int file_;
};

bool writeAt(int file, const void* data, std::size_t size, std::uint64_t offset) {
  const auto* bytes = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t done = ::pwrite(file, bytes, size, static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    bytes += done;
    offset += static_cast<std::uint64_t>(done);
    size -= static_cast<std::size_t>(done);
  }
  return true;
}

}  // namespace

Result<Log> Log::open() {
  const std::string home = sys::stateHome();
  if (home.empty()) {
    return fail(plainError(Stage::state, "audit log", "",
                           "neither CAISSON_HOME nor HOME is set, so there is no place for it",
                           "set CAISSON_HOME to a directory you can write"));
  }
  return open(home + "/audit");
}

Result<Log> Log::open(const std::string& directory, Settings settings) {
  Log log;
  log.path_ = directory;
  log.settings_ = settings;
  auto opened = sys::openPrivateDirectory(directory);
  if (!opened) return fail(opened.error());
  log.directory_ = std::move(*opened);
  auto head = openOwn(log.directory_.get(), directory, kHeadName, O_RDWR | O_CREAT);
  if (!head) return fail(head.error());
  log.head_file_ = std::move(*head);
  return log;
}

Log::~Log() {
  handOver();
  if (counted_) addMetrics(directory_.get(), path_, *counted_);
}

Error Log::failed(std::string_view call, std::string_view name, int sys_errno) const {
  return sysError(
      Stage::state, call, path_ + "/" + std::string(name), sys_errno,
      sys_errno == ENOSPC || sys_errno == EDQUOT || sys_errno == EFBIG || sys_errno == EIO || sys_errno == EROFS
          ? kNoUnseenRuns
          : "");
}

void Log::note(EventType type, Severity severity, Fields fields) {
  first_.push_back({type, severity, {}, std::move(fields)});
}

Result<void> Log::lock(bool wait) {
  const auto timeout = wait ? sys::kLockTimeout : std::chrono::milliseconds(0);
  auto locked = sys::lockFile(head_file_.get(), sys::LockKind::exclusive, timeout, path_ + "/" + kHeadName);
  if (!locked) return locked;
  // A long-lived writer must not continue in a log that was removed or replaced: its records would be lost.
  struct stat held{}, shown{};
  if (::fstat(head_file_.get(), &held) == 0 &&
      ::fstatat(directory_.get(), kHeadName, &shown, AT_SYMLINK_NOFOLLOW) == 0 && held.st_ino == shown.st_ino &&
      held.st_dev == shown.st_dev) {
    return {};
  }
  ::flock(head_file_.get(), LOCK_UN);
  return fail(plainError(Stage::state, "audit", path_ + "/" + kHeadName, "the log was removed or replaced",
                         "restore it; `caisson audit verify` tells what is missing"));
}

Result<void> Log::appendWithDeferred(std::span<const Event> events) {
  const Unlock unlock(head_file_.get());
  const sys::NoFileSizeSignal no_signal;
  first_.clear();
  if (deferred_.empty()) return events.empty() ? Result<void>{} : appendLocked(events);
  std::vector<Event> all = deferred_;
  all.insert(all.end(), events.begin(), events.end());
  auto written = appendLocked(all);
  if (written) deferred_.clear();
  return written;
}

Result<void> Log::tryAppend(std::span<const Event> events) {
  if (events.empty() && deferred_.empty()) return {};
  if (auto locked = lock(false); !locked) return locked;
  return appendWithDeferred(events);
}

void Log::flush(bool wait) {
  if (!deferred_.empty() && lock(wait)) (void)appendWithDeferred({});
}

Result<void> Log::append(std::span<const Event> events) {
  const bool critical = std::any_of(events.begin(), events.end(),
                                    [](const Event& event) { return event.severity == Severity::critical; });
  const bool wait = !defer_ || critical || deferred_.size() + events.size() > kMaxDeferred;
  auto locked = lock(wait);
  if (!locked && !wait && locked.error().sys_errno == EWOULDBLOCK) {
    deferred_.insert(deferred_.end(), events.begin(), events.end());
    return {};
  }
  if (!locked) return locked;
  auto written = appendWithDeferred(events);
  if (!written && !wait) {  // for example a full disk: flush() retries
    deferred_.insert(deferred_.end(), events.begin(), events.end());
    return {};
  }
  return written;
}

Result<void> Log::appendLocked(std::span<const Event> events) {
  if (auto read = readHead(); !read) return read;
  if (auto opened = openCurrent(); !opened) return opened;
  if (head_.end >= settings_.rotate_bytes) {
    if (::fdatasync(current_.get()) != 0) return fail(failed("fdatasync", logName(head_.file), errno));
    if (auto next = openNext(head_.file + 1); !next) return next;
    planPruning();
  }
  if (head_.end == 0) noteBeginning();
  if (const std::int64_t time = now(CLOCK_REALTIME); time + kSecond < head_.last_time_ns) {
    note(EventType::clock_set_back, Severity::warn,
         Fields().text("last", timeText(head_.last_time_ns)).text("now", timeText(time)));
  }
  const bool critical = std::any_of(events.begin(), events.end(),
                                    [](const Event& event) { return event.severity == Severity::critical; });
  if (auto written = writeLines(events, critical || !first_.empty()); !written) return written;
  removePruned();
  owes_sync_ = true;
  if (!counted_) counted_ = std::make_unique<Metrics>();
  for (const Event& event : events) count(*counted_, event, static_cast<std::uint64_t>(head_.last_time_ns / kSecond));
  return {};
}

Result<void> Log::readHead() {
  HeadBytes bytes{};
  const ssize_t got = ::pread(head_file_.get(), bytes.data(), bytes.size(), 0);
  if (got < 0) return fail(failed("pread", kHeadName, errno));
  if (got == 0) return startChain("there were log files but no head");
  const auto decoded = decode(bytes);  // valid even if a writer died when only one slot was written
  // Not a damaged one: a new chain would hide where the log of the other version ends.
  if (const int format = decoded ? 0 : otherFormat(bytes); format != 0) {
    return fail(unknownFormat(path_ + "/" + kHeadName, {.found = format, .oldest = kHeadFormat, .newest = kHeadFormat},
                              "use the caisson that wrote the log, or move " + path_ + " away to begin a new log"));
  }
  if (!decoded) return startChain("the head was unreadable");
  head_ = *decoded;
  return {};
}

Result<void> Log::writeHead(bool durable) {
  ++head_.writes;
  const auto slot = encode(head_);
  if (!writeAt(head_file_.get(), slot.data(), slot.size(), slotOf(head_) * kSlotBytes)) {
    return fail(failed("pwrite", kHeadName, errno));
  }
  if (durable && ::fdatasync(head_file_.get()) != 0) return fail(failed("fdatasync", kHeadName, errno));
  return {};
}

Result<void> Log::writeLines(std::span<const Event> events, bool durable) {
  const std::int64_t time = now(CLOCK_REALTIME);
  const int pid = ::getpid();
  Link link = head_.link;
  std::string lines;
  lines.reserve(768 * (events.size() + first_.size()));
  for (const Event& event : first_) appendLine(lines, link, event, time, pid);
  for (const Event& event : events) appendLine(lines, link, event, time, pid);
  if (!writeAt(current_.get(), lines.data(), lines.size(), head_.end)) {
    const int error = errno;
    (void)!::ftruncate(current_.get(), static_cast<off_t>(head_.end));  // else the next writer truncates it
    return fail(failed("pwrite", logName(head_.file), error));
  }
  const Head before = head_;
  head_.link = link;
  head_.end += lines.size();
  head_.last_time_ns = time;
  Result<void> written;
  if (durable && ::fdatasync(current_.get()) != 0) {
    written = fail(failed("fdatasync", logName(head_.file), errno));
  } else {
    written = writeHead(durable);
  }
  if (!written) {  // or the next writer would take over lines that the caller appends again
    head_ = before;
    (void)!::ftruncate(current_.get(), static_cast<off_t>(head_.end));
  }
  return written;
}

void Log::handOver() {
  if (!owes_sync_ || !directory_) return;  // no directory: moved from
  owes_sync_ = false;
  // A run adds its metrics once, when it has ended; for a short run this is on the critical path. A server that creates
  // sessions starts no program itself and adds them at once.
  if (counted_ && (counted_->lifetime.count > 0 || counted_->of(EventType::sandbox_execute) == 0)) {
    addMetrics(directory_.get(), path_, *std::exchange(counted_, nullptr));
  }
  sys::Fd lock(::openat(directory_.get(), kSyncName, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
  // If it is held, a syncer is running. Before it releases the lock it checks for newer events, under the head's lock.
  if (lock && ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return;
  if (lock && startSyncer(directory_.get(), lock.get())) return;
  ::fdatasync(current_.get());
  ::fdatasync(head_file_.get());
}

}  // namespace caisson::audit
