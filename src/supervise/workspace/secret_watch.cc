#include "supervise/workspace/secret_watch.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "base/path_parts.h"
#include "host/denied_matches.h"
#include "isolation/child.h"
#include "policy/rules/secret_files.h"
#include "sys/root_dir.h"

namespace caisson::supervise {
namespace {

constexpr auto kBeginAfter = std::chrono::milliseconds(20);
constexpr auto kRetryAfter = std::chrono::milliseconds(500);
constexpr auto kSearchUnwatchedEvery = std::chrono::seconds(5);
/// A helper that takes longer hangs in the kernel, on a file system that does not answer.
constexpr auto kMaskTimeout = std::chrono::seconds(5);
constexpr int kMaxRounds = 8;
constexpr std::size_t kMaxWatches = 4000;  // of the user's, whose editor needs some as well
constexpr std::size_t kMaxNamed = 5;
/// After a scan, wait this many times as long as it took: scans take at most a tenth of the time.
constexpr int kPauseFactor = 9;
constexpr std::uint32_t kEvents = IN_CREATE | IN_MOVED_TO | IN_CLOSE_WRITE | IN_ONLYDIR | IN_EXCL_UNLINK;

/// Whether a name in a directory can be a secret or lead to one.
bool matters(std::string_view name, bool directory) {
  return directory || policy::mayBeSecret(name) || name == "config" || name == "config.worktree";
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMaxNamed); ++i) text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kMaxNamed) text += " and " + std::to_string(names.size() - kMaxNamed) + " more";
  return text;
}

}  // namespace

bool layerHides(int layer, const std::string& path) {
  const long opened = isolation::openBeneath(layer, path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (opened < 0) return opened == -ENOTDIR;  // the layer has a file or a whiteout above it
  const sys::Fd entry(static_cast<int>(opened));
  struct stat status{};
  if (::fstat(entry.get(), &status) != 0 || !S_ISDIR(status.st_mode)) return true;
  const long listed = isolation::openBeneath(layer, path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (listed < 0) return false;
  const sys::Fd directory(static_cast<int>(listed));
  char value = 0;
  return ::fgetxattr(directory.get(), "user.overlay.opaque", &value, 1) == 1 && value == 'y';
}

SecretWatch::SecretWatch(sys::EventLoop& loop, host::ScanCache& cache, Options options)
    : loop_(loop), cache_(cache), options_(std::move(options)) {
  for (const std::string& path : options_.masked) masked_[path] = inodeOf(path);
}

SecretWatch::~SecretWatch() {
  for (const auto timer : {timer_, mask_timer_, retry_timer_}) loop_.cancel(timer);
  if (inotify_) loop_.remove(inotify_.get());
  if (mask_) loop_.remove(mask_->descriptor());
}

void SecretWatch::beginSoon() {
  timer_ = loop_.at(Clock::now() + kBeginAfter, [this] {
    timer_ = 0;
    begin();
  });
}

void SecretWatch::begin() {
  if (std::exchange(watching_, true)) return;
  inotify_ = sys::Fd(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (inotify_) loop_.on(inotify_.get(), POLLIN, [this](short) { onEvents(); });
  scan();
}

void SecretWatch::pause() {
  if (!std::exchange(watching_, false)) return;
  loop_.cancel(std::exchange(timer_, 0));
  if (inotify_) loop_.remove(inotify_.get());
  inotify_.reset();
  watched_.clear();
  directories_.clear();
  loop_.cancel(std::exchange(retry_timer_, 0));
  missing_.clear();  // begin() searches again
}

void SecretWatch::scan() {
  const auto start = Clock::now();
  plan::WorkspaceScan found;
  bool added = true;
  for (int round = 0; added && round < kMaxRounds; ++round) {
    auto root = sys::RootDir::share(options_.directory->get(), {.known_as = options_.workspace});
    if (root) found = host::scanWorkspace(*std::move(root), options_.workspace, options_.scan, &cache_);
    added = addWatches();
  }
  next_scan_ = Clock::now() + (Clock::now() - start) * kPauseFactor;
  for (const std::string& path : found.hidden()) consider(path);
  // Files with a secret in a part of them are hidden completely.
  for (const plan::ReplacedFile& file : found.redacted) consider(file.path);
  maskNext();
  // Directories still kept appearing, or some have no watch: no event reports files there, so look again later.
  if (added || !all_watched_) scheduleScan(std::max(next_scan_, Clock::now() + kSearchUnwatchedEvery));
}

bool SecretWatch::addWatches() {
  const std::map<std::string, std::uint64_t> searched = cache_.index.paths();
  dropWatches(searched);
  all_watched_ = true;
  bool added = false;
  for (const auto& [path, inode] : searched) {
    const auto known = directories_.find(path);
    // Another directory may have its name by now.
    if (known != directories_.end() && known->second.inode.second == inode) continue;
    const auto now = watch(options_.directory->get(), path);
    if (!now) {
      unwatched_.insert(path.empty() ? "." : path);
      all_watched_ = false;
      continue;
    }
    // A renamed directory keeps its watch.
    forget(now->watch);
    watched_[now->watch] = path;
    directories_[path] = *now;
    added = true;
  }
  return added;
}

std::optional<SecretWatch::Directory> SecretWatch::watch(int root, const std::string& path) {
  if (!inotify_ || watched_.size() >= kMaxWatches) return std::nullopt;
  const long opened = isolation::openBeneath(root, path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (opened < 0) return std::nullopt;
  const sys::Fd directory(static_cast<int>(opened));
  struct stat status{};
  if (::fstat(directory.get(), &status) != 0) return std::nullopt;
  const std::string name = "/proc/self/fd/" + std::to_string(directory.get());
  const int watch = ::inotify_add_watch(inotify_.get(), name.c_str(), kEvents);
  if (watch < 0) return std::nullopt;
  return Directory{watch, {status.st_dev, status.st_ino}};
}

void SecretWatch::forget(int watch) {
  const auto path = watched_.find(watch);
  if (path == watched_.end()) return;
  const auto directory = directories_.find(path->second);
  if (directory != directories_.end() && directory->second.watch == watch) directories_.erase(directory);
  watched_.erase(path);
}

void SecretWatch::dropWatches(const std::map<std::string, std::uint64_t>& searched) {
  std::erase_if(directories_, [&](const auto& one) {
    const auto& [path, directory] = one;
    if (searched.contains(path)) return false;
    ::inotify_rm_watch(inotify_.get(), directory.watch);
    watched_.erase(directory.watch);
    return true;
  });
}

void SecretWatch::onEvents() {
  alignas(inotify_event) char buffer[16384];
  bool wanted = false;
  std::vector<std::string> replaced;
  for (int piece = 0; piece < kMaxRounds; ++piece) {  // other programs may write faster than this reads
    const ssize_t got = ::read(inotify_.get(), buffer, sizeof(buffer));
    if (got <= 0) break;
    for (ssize_t at = 0; at < got;) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer + at);
      at += static_cast<ssize_t>(sizeof(inotify_event)) + event->len;
      if ((event->mask & IN_Q_OVERFLOW) != 0) {  // any file may be another one now
        for (auto& [path, inode] : masked_) inode.reset();
        wanted = true;
      }
      const auto directory = watched_.find(event->wd);
      if (directory == watched_.end()) continue;
      if ((event->mask & IN_IGNORED) != 0) {  // the directory is gone
        forget(event->wd);
        continue;
      }
      if (event->len == 0) continue;
      const std::string path = join(directory->second, event->name);
      if (!matters(event->name, (event->mask & IN_ISDIR) != 0) && !masked_.contains(path) &&
          !host::mayMatch(options_.scan.denied, event->name)) {
        continue;
      }
      if ((event->mask & (IN_CREATE | IN_MOVED_TO)) != 0 && masked_.erase(path) > 0) replaced.push_back(path);
      wanted = true;
    }
  }
  hide(replaced);
  if (wanted) scheduleScan(next_scan_);
}

void SecretWatch::scheduleScan(Clock::time_point earliest) {
  if (timer_ != 0 && earliest >= timer_due_) return;
  loop_.cancel(std::exchange(timer_, 0));
  if (earliest <= Clock::now()) return scan();
  timer_due_ = earliest;
  timer_ = loop_.at(earliest, [this] {
    timer_ = 0;
    scan();
  });
}

std::optional<SecretWatch::Inode> SecretWatch::inodeOf(const std::string& path) const {
  const long opened = isolation::openBeneath(options_.directory->get(), path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (opened < 0) return std::nullopt;
  const sys::Fd file(static_cast<int>(opened));
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return std::nullopt;
  return Inode{status.st_dev, status.st_ino};
}

void SecretWatch::hide(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) consider(path);
  maskNext();
}

void SecretWatch::forgetMasks() {
  masked_.clear();
  missing_.clear();
  // The mask that is being made may be lost as well: make it again.
  if (mask_) pending_.push_back(masking_);
}

void SecretWatch::consider(const std::string& path) {
  for (std::size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    if (masked_.contains(path.substr(0, slash))) return;
  }
  const auto known = masked_.find(path);
  if (known != masked_.end() && known->second && known->second == inodeOf(path)) return;
  if (path == masking_ || std::ranges::find(pending_, path) != pending_.end()) return;
  if (options_.exposes(path)) pending_.push_back(path);
}

void SecretWatch::maskNext() {
  while (!mask_ && !pending_.empty()) {
    masking_ = std::move(pending_.front());
    pending_.pop_front();
    masking_inode_ = inodeOf(masking_);
    auto started = options_.mask(masking_);
    if (!started) {
      if (started.error().sys_errno != ESRCH) failed_.insert(masking_);  // else nothing runs any more
      masking_.clear();
      continue;
    }
    mask_.emplace(std::move(*started));
    loop_.on(mask_->descriptor(), POLLIN, [this](short) { onMasked(mask_->finish()); });
    mask_timer_ = loop_.at(Clock::now() + kMaskTimeout, [this] { onMasked(ETIMEDOUT); });
  }
}

void SecretWatch::onMasked(int error) {
  loop_.cancel(std::exchange(mask_timer_, 0));
  loop_.remove(mask_->descriptor());
  mask_.reset();
  const std::string path = std::exchange(masking_, {});
  missing_.erase(path);
  if (error == 0) {
    masked_[path] = masking_inode_;
    failed_.erase(path);
    if (std::ranges::find(found_, path) == found_.end()) found_.push_back(path);
    if (const auto now = inodeOf(path); now && now != masking_inode_) consider(path);  // replaced meanwhile
  } else if (error == ENOENT || error == ENOTDIR || error == ELOOP) {
    // An overlay caches that the name was missing, and may show the file once the kernel drops that cache: retry.
    missing_.insert(path);
    if (retry_timer_ == 0) retry_timer_ = loop_.at(Clock::now() + kRetryAfter, [this] { retryMissing(); });
  } else {
    failed_.insert(path);
  }
  maskNext();
  if (!pending() && options_.settled) options_.settled();
}

void SecretWatch::retryMissing() {
  retry_timer_ = 0;
  for (const std::string& path : std::exchange(missing_, {})) {
    if (inodeOf(path)) consider(path);
  }
  maskNext();
}

void SecretWatch::report(std::vector<std::string>& notices, std::vector<std::string>& warnings, std::size_t known) {
  if (found_.size() > known) {
    notices.push_back("appeared and were hidden while the program ran, since they look like secrets or are denied: " +
                      listed({found_.begin() + static_cast<std::ptrdiff_t>(known), found_.end()}));
  }
  if (!failed_.empty()) {
    warnings.push_back("secret files that appeared while the program ran could not be hidden: " +
                       listed({failed_.begin(), failed_.end()}));
  }
  if (!unwatched_.empty() && !std::exchange(unwatched_reported_, true)) {
    notices.push_back("searched for new secret files only every 5 seconds: " +
                      listed({unwatched_.begin(), unwatched_.end()}));
  }
}

}  // namespace caisson::supervise
