#include "supervise/secret_watch.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "isolation/child.h"
#include "plan/secrets.h"

namespace caisson::supervise {
namespace {

constexpr auto kBeginAfter = std::chrono::milliseconds(20);
constexpr auto kRetryAfter = std::chrono::milliseconds(500);
constexpr int kMaxRetries = 20;
constexpr std::size_t kMaxWatches = 4000;  // of the user's, whose editor needs some as well
constexpr std::size_t kMaxNamed = 5;
/// Scans take at most this part of the time.
constexpr int kPauseFactor = 9;
constexpr std::uint32_t kEvents =
    IN_CREATE | IN_MOVED_TO | IN_CLOSE_WRITE | IN_ONLYDIR | IN_DONT_FOLLOW | IN_EXCL_UNLINK;

/// Whether a name in a directory can be a secret or lead to one.
bool matters(std::string_view name, bool directory) {
  return directory || plan::looksSecret(name) || plan::mayHoldKey(name) || name == "config" ||
         name == "config.worktree";
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMaxNamed); ++i) text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kMaxNamed) text += " and " + std::to_string(names.size() - kMaxNamed) + " more";
  return text;
}

}  // namespace

SecretWatch::SecretWatch(sys::EventLoop& loop, const plan::Plan& plan, pid_t init, int upper)
    : loop_(loop), plan_(plan), init_(init), upper_(upper) {
  // A layer hides a name whatever file bears it; a mask is on one file.
  const bool by_layer = plan.workspace_overlay || plan.workspace_masked;
  (by_layer ? hidden_ : masked_).insert(plan.watched->hidden.begin(), plan.watched->hidden.end());
}

SecretWatch::~SecretWatch() {
  loop_.cancel(timer_);
  if (inotify_) loop_.remove(inotify_.get());
  if (mask_) loop_.remove(mask_->descriptor());
}

void SecretWatch::begin() {
  timer_ = loop_.at(Clock::now() + kBeginAfter, [this] {
    timer_ = 0;
    watchTree();
  });
}

void SecretWatch::watchTree() {
  inotify_ = sys::Fd(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (inotify_) loop_.on(inotify_.get(), POLLIN, [this](short) { onEvents(); });
  scan();
}

/// A directory is searched again once it is watched: what appeared in between is in no event.
void SecretWatch::scan() {
  const auto start = Clock::now();
  plan::WorkspaceScan found;
  do {
    found = scanWorkspace(plan_.watched->path, {}, &cache_);
  } while (addWatches());
  next_scan_ = Clock::now() + (Clock::now() - start) * kPauseFactor;
  for (const std::string& path : found.secrets) consider(path);
  // Its other content is of less use than its secrecy.
  for (const plan::ReplacedFile& file : found.redacted) consider(file.path);
  maskNext();
}

/// True: there are new ones.
bool SecretWatch::addWatches() {
  bool added = false;
  for (const auto& [path, directory] : cache_.directories) {
    if (directories_.contains(path)) continue;
    const std::string whole = path.empty() ? plan_.watched->path : plan_.watched->path + "/" + path;
    const int watch =
        inotify_ && watched_.size() < kMaxWatches ? ::inotify_add_watch(inotify_.get(), whole.c_str(), kEvents) : -1;
    if (watch < 0) {
      unwatched_.insert(path.empty() ? "." : path);
      continue;
    }
    watched_[watch] = path;
    directories_.insert(path);
    added = true;
  }
  return added;
}

void SecretWatch::onEvents() {
  alignas(inotify_event) char buffer[16384];
  bool wanted = false;
  for (;;) {
    const ssize_t got = ::read(inotify_.get(), buffer, sizeof(buffer));
    if (got <= 0) break;
    for (ssize_t at = 0; at < got;) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer + at);
      at += static_cast<ssize_t>(sizeof(inotify_event)) + event->len;
      if ((event->mask & IN_Q_OVERFLOW) != 0) wanted = true;
      const auto directory = watched_.find(event->wd);
      if (directory == watched_.end()) continue;
      if ((event->mask & IN_IGNORED) != 0) {  // the directory is gone
        directories_.erase(directory->second);
        watched_.erase(directory);
        continue;
      }
      if (event->len == 0 || !matters(event->name, (event->mask & IN_ISDIR) != 0)) continue;
      const std::string path = directory->second.empty() ? event->name : directory->second + "/" + event->name;
      if ((event->mask & (IN_CREATE | IN_MOVED_TO)) != 0) masked_.erase(path);
      wanted = true;
    }
  }
  if (wanted) scheduleScan(next_scan_);
}

void SecretWatch::scheduleScan(Clock::time_point earliest) {
  if (timer_ != 0) return;
  if (earliest <= Clock::now()) return scan();
  timer_ = loop_.at(earliest, [this] {
    timer_ = 0;
    scan();
  });
}

void SecretWatch::consider(const std::string& path) {
  const auto above = [&](const std::string& name) {
    return path.starts_with(name) && (path.size() == name.size() || path[name.size()] == '/');
  };
  if (std::ranges::any_of(hidden_, above) || std::ranges::any_of(masked_, above)) return;
  if (path == masking_ || std::ranges::find(pending_, path) != pending_.end()) return;
  // The sandbox's own file of that name is what it sees, whatever the host has.
  const long own = upper_ < 0 ? -1 : isolation::openBeneath(upper_, path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (own < 0) return pending_.push_back(path);
  ::close(static_cast<int>(own));
}

void SecretWatch::maskNext() {
  while (!mask_ && !pending_.empty()) {
    masking_ = std::move(pending_.front());
    pending_.pop_front();
    auto started = LiveMask::start(init_, plan_.identity, plan_.watched->target, masking_);
    if (!started) {
      if (started.error().sys_errno != ESRCH) failed_.insert(masking_);  // else nothing runs any more
      masking_.clear();
      continue;
    }
    mask_.emplace(std::move(*started));
    loop_.on(mask_->descriptor(), POLLIN, [this](short) { onMasked(); });
  }
}

void SecretWatch::onMasked() {
  loop_.remove(mask_->descriptor());
  const int error = mask_->finish();
  mask_.reset();
  const std::string path = std::move(masking_);
  masking_.clear();
  if (error == 0) {
    masked_.insert(path);
    failed_.erase(path);
    if (std::ranges::find(found_, path) == found_.end()) found_.push_back(path);
  } else if (error == ENOENT) {
    // An overlay may remember that the name was missing, and later forget that.
    if (++missing_[path] <= kMaxRetries) scheduleScan(Clock::now() + kRetryAfter);
  } else {
    failed_.insert(path);
  }
  maskNext();
}

void SecretWatch::report(std::vector<std::string>& notices, std::vector<std::string>& warnings) const {
  if (!found_.empty()) {
    notices.push_back("appeared and were hidden while the program ran, since they look like secrets: " +
                      listed(found_));
  }
  if (!failed_.empty()) {
    warnings.push_back("secret files that appeared while the program ran could not be hidden: " +
                       listed({failed_.begin(), failed_.end()}));
  }
  if (!unwatched_.empty()) {
    notices.push_back("not watched for new secret files: " + listed({unwatched_.begin(), unwatched_.end()}));
  }
}

}  // namespace caisson::supervise
