#include "supervise/workspace/secret_watch.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "base/path_text.h"
#include "host/enclosing_search.h"
#include "isolation/child.h"
#include "supervise/workspace/watched_events.h"
#include "sys/file_identity.h"
#include "sys/root_dir.h"

namespace caisson::supervise {
namespace {

constexpr auto kBeginAfter = std::chrono::milliseconds(20);
constexpr auto kScanAfterMasks = std::chrono::milliseconds(1);
constexpr auto kRetryAfter = std::chrono::milliseconds(500);
constexpr auto kSearchUnwatchedEvery = std::chrono::seconds(5);
/// A helper that takes longer hangs in the kernel, on a file system that does not answer.
constexpr auto kMaskTimeout = std::chrono::seconds(5);
constexpr int kMaxRounds = 8;
constexpr std::size_t kMaxWatches = 4000;  // of the user's, whose editor needs some as well
constexpr std::size_t kMaxNamed = 5;
/// After a scan, wait this many times as long as it took: scans take at most a tenth of the time.
constexpr int kPauseFactor = 9;
constexpr std::size_t kMaxAround = 500;

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMaxNamed); ++i)
    text += (i == 0 ? "" : ", ") + displayedPath(names[i]);
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
  for (const std::string& path : options_.masked) masked_[path] = identityOf(path);
}

SecretWatch::~SecretWatch() {
  for (const auto timer : {timer_, mask_timer_, retry_timer_, judge_timer_, moves_timer_}) loop_.cancel(timer);
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
  unmasked_.clear();  // begin() searches again
  loop_.cancel(std::exchange(judge_timer_, 0));
  unjudged_.clear();
  loop_.cancel(std::exchange(moves_timer_, 0));
  moving_.clear();
  moved_.clear();
  around_.clear();
  around_watches_.clear();
}

void SecretWatch::scan() {
  const auto start = Clock::now();
  plan::WorkspaceScan found;
  bool added = true;
  for (int round = 0; added && round < kMaxRounds; ++round) {
    auto root = sys::RootDir::share(options_.directory->get(), {.known_as = options_.workspace});
    if (root) found = host::searchEnclosed(*std::move(root), options_.workspace, options_.scan, &cache_);
    added = addWatches();
    watchAround(found.judged_from);
  }
  scan_took_ = Clock::now() - start;
  next_scan_ = Clock::now() + scan_took_ * kPauseFactor;
  hidden_ = found.hidden();
  // Files with a secret in a part of them are hidden completely.
  for (const plan::ReplacedFile& file : found.redacted) hidden_.push_back(file.path);
  for (const std::string& path : hidden_) consider(path);
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
    if (known != directories_.end() && known->second.identity.inode == inode) continue;
    const auto now = watch(options_.directory->get(), path, kWatchedEvents);
    if (!now) {
      unwatched_.insert(path.empty() ? "." : path);
      all_watched_ = false;
      continue;
    }
    remember(path, *now);
    added = true;
  }
  return added;
}

void SecretWatch::watchAround(const std::string& enclosing) {
  if (enclosing.empty() || !cache_.around) return;
  const auto root = sys::openWithoutLinks(enclosing);
  if (!root) return;
  const std::string own = options_.workspace.substr(enclosing.size() + 1);
  std::map<std::string, std::uint64_t> searched = cache_.around->index.paths();
  std::erase_if(searched, [&](const auto& one) { return one.first == own || one.first.starts_with(own + "/"); });
  const auto add = [&](const std::string& path, std::uint64_t inode) {
    const auto known = around_.find(path);
    if (known != around_.end() && known->second.identity.inode == inode) return;
    const auto now = around_.size() < kMaxAround ? watch(root->get(), path, kAroundEvents) : std::nullopt;
    if (!now) {
      all_watched_ = false;
      return;
    }
    around_[path] = *now;
    around_watches_.insert(now->watch);
  };
  // Links on the way to the workspace are the likely ones.
  for (const auto& [path, inode] : searched) {
    if (path.empty() || own.starts_with(path + "/")) add(path, inode);
  }
  for (const auto& [path, inode] : searched) add(path, inode);
}

std::optional<SecretWatch::Directory> SecretWatch::watch(int root, const std::string& path, std::uint32_t events) {
  if (!inotify_ || watched_.size() >= kMaxWatches) return std::nullopt;
  const long opened = isolation::openBeneath(root, path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (opened < 0) return std::nullopt;
  const sys::Fd directory(static_cast<int>(opened));
  const auto described = describeOpen(directory.get());
  if (!described) return std::nullopt;
  const std::string name = "/proc/self/fd/" + std::to_string(directory.get());
  const int watch = ::inotify_add_watch(inotify_.get(), name.c_str(), events);
  if (watch < 0) return std::nullopt;
  return Directory{watch, described->identity};
}

void SecretWatch::remember(const std::string& path, const Directory& directory) {
  forget(directory.watch);  // a renamed directory keeps its watch
  watched_[directory.watch] = path;
  directories_[path] = directory;
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

void SecretWatch::scheduleScan(Clock::time_point earliest) {
  if (timer_ != 0 && earliest >= timer_due_) return;
  loop_.cancel(std::exchange(timer_, 0));
  if (earliest <= Clock::now()) return scan();
  timer_due_ = earliest;
  timer_ = loop_.at(earliest, [this] {
    timer_ = 0;
    if (pending_.hasFirst()) {
      scan_waits_ = true;
    } else {
      scan();
    }
  });
}

std::optional<SecretWatch::Described> SecretWatch::describeOpen(int descriptor) {
  struct statx status{};
  constexpr unsigned kWanted = STATX_TYPE | STATX_NLINK | STATX_INO | STATX_CTIME;
  if (::statx(descriptor, "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT, kWanted, &status) != 0) return std::nullopt;
  const std::int64_t changed_ns = status.stx_ctime.tv_sec * 1'000'000'000 + status.stx_ctime.tv_nsec;
  return Described{{makedev(status.stx_dev_major, status.stx_dev_minor), status.stx_ino, changed_ns},
                   status.stx_mode & static_cast<std::uint32_t>(S_IFMT),
                   status.stx_nlink};
}

std::optional<SecretWatch::Described> SecretWatch::describe(const std::string& path) const {
  const long opened = isolation::openBeneath(options_.directory->get(), path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (opened < 0) return std::nullopt;
  return describeOpen(sys::Fd(static_cast<int>(opened)).get());
}

std::optional<SecretWatch::Identity> SecretWatch::identityOf(const std::string& path) const {
  const auto described = describe(path);
  return described ? std::optional(described->identity) : std::nullopt;
}

void SecretWatch::hide(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) consider(path);
  maskNext();
}

void SecretWatch::forgetMasks() {
  masked_.clear();
  unmasked_.clear();
  moved_.clear();
  old_names_.clear();
  // The masks that are being made may be lost as well: make them again.
  for (const std::string& path : batch_) queue(path);
}

void SecretWatch::forgetMasksOf(const std::string& path) {
  masked_.erase(path);
  masked_.erase(masked_.lower_bound(path + "/"), masked_.lower_bound(path + "0"));  // '0' follows '/'
  for (auto& [masked, identity] : masking_) {
    if (masked == path || masked.starts_with(path + "/")) identity.reset();
  }
}

std::set<std::string> SecretWatch::waiting() const {
  std::set<std::string> paths = pending_.all();
  for (const auto& [path, identity] : masking_) paths.insert(path);
  return paths;
}

bool SecretWatch::waitsFor(const std::set<std::string>& paths) const {
  return std::ranges::any_of(paths,
                             [&](const std::string& path) { return isMasking(path) || pending_.contains(path); });
}

std::vector<std::string> SecretWatch::shown() const {
  std::vector<std::string> paths;
  std::ranges::copy_if(failed_, std::back_inserter(paths), [&](const std::string& path) {
    if (options_.writes && options_.writes(path)) return false;
    return old_names_.contains(path) || (identityOf(path) && !masks(path) && options_.exposes(path));
  });
  return paths;
}

bool SecretWatch::masks(const std::string& path) const {
  const auto known = masked_.find(path);
  return known != masked_.end() && known->second && known->second == identityOf(path);
}

void SecretWatch::consider(const std::string& path) {
  hideOldNamesOf(path);
  for (std::size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    if (masked_.contains(path.substr(0, slash))) return;
  }
  if (masks(path) || isMasking(path) || pending_.contains(path)) return;
  if (options_.exposes(path)) queue(path);
}

void SecretWatch::maskNext() {
  while (!mask_ && !pending_.empty()) {
    batch_ = pending_.pop(kMaxMasksAtOnce);
    for (const std::string& path : batch_) masking_[path] = identityOf(path);
    auto started = options_.mask(batch_);
    if (!started) {
      masking_.clear();
      for (const std::string& path : std::exchange(batch_, {})) {
        if (started.error().sys_errno == ESRCH) continue;  // nothing runs any more
        failed_.insert(path);
        retryLater(path);
      }
      continue;
    }
    mask_.emplace(std::move(*started));
    loop_.on(mask_->descriptor(), POLLIN, [this](short) { onMasked(mask_->finish(batch_.size())); });
    mask_timer_ =
        loop_.at(Clock::now() + kMaskTimeout, [this] { onMasked(std::vector<int>(batch_.size(), ETIMEDOUT)); });
  }
}

void SecretWatch::onMasked(const std::vector<int>& errors) {
  loop_.cancel(std::exchange(mask_timer_, 0));
  loop_.remove(mask_->descriptor());
  mask_.reset();
  const std::vector<std::string> paths = std::exchange(batch_, {});
  const auto identities = std::exchange(masking_, {});
  for (std::size_t i = 0; i < paths.size(); ++i) onMasked(paths[i], identities.at(paths[i]), errors[i]);
  maskNext();
  // What the sandbox itself makes must not delay a search.
  if (!pending_.hasFirst() && std::exchange(scan_waits_, false) && watching_) {
    scheduleScan(Clock::now() + kScanAfterMasks);
  }
  if (options_.progressed) options_.progressed();
}

void SecretWatch::onMasked(const std::string& path, const std::optional<Identity>& identity, int error) {
  unmasked_.erase(path);
  if (error == 0) {
    masked_[path] = identity;
    failed_.erase(path);
    if (named_.insert(path).second) (old_names_.contains(path) ? hidden_old_names_ : found_).push_back(path);
    // Replaced meanwhile. A file that is written all the time stays the same.
    const auto now = identityOf(path);
    if (now && (!identity || !identity->sameFile(*now))) consider(path);
  } else if (error == ENOENT || error == ENOTDIR || error == ELOOP) {
    // An overlay caches that the name was missing, and may show the file once the kernel drops that cache: retry.
    if (old_names_.erase(path) == 0) retryLater(path);
  } else {
    failed_.insert(path);
    retryLater(path);
  }
}

void SecretWatch::retryLater(const std::string& path) {
  unmasked_.insert(path);
  if (retry_timer_ == 0) retry_timer_ = loop_.at(Clock::now() + kRetryAfter, [this] { retryUnmasked(); });
}

void SecretWatch::retryUnmasked() {
  retry_timer_ = 0;
  for (const std::string& path : std::exchange(unmasked_, {})) {
    if (identityOf(path)) consider(path);
  }
  maskNext();
}

void SecretWatch::report(std::vector<std::string>& notices, std::vector<std::string>& warnings, std::size_t known) {
  if (found_.size() > known) {
    notices.push_back("appeared and were hidden while the program ran, since they look like secrets or are denied: " +
                      listed({found_.begin() + static_cast<std::ptrdiff_t>(known), found_.end()}));
  }
  if (!hidden_old_names_.empty()) {
    notices.push_back("moved by the host while the program ran, and hidden under the old names: " +
                      listed(std::exchange(hidden_old_names_, {})));
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
