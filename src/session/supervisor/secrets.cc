// Secret files that the host creates in the workspace of a session.
//
// While nothing runs, they are hidden through the mask layer before the next command (layers.cc). While anything runs,
// and for clients that read files, they are masked in the running sandbox: inotify reports them, and the launcher's
// helper process mounts over them.
#include <algorithm>
#include <iterator>

#include "host/enclosing_search.h"
#include "session/layers/hidden_host_files.h"
#include "session/supervisor/supervisor.h"

namespace caisson::session {
namespace {

constexpr auto kCheckIdleEvery = std::chrono::seconds(2);
/// A command or a reader waits no longer than this for masks in directories that the sandbox writes itself.
constexpr auto kWrittenMasksTimeout = std::chrono::seconds(1);

Error notHidden(const std::vector<std::string>& shown) {
  return plainError(Stage::mounts, "mask", shown.front(),
                    (shown.size() > 1 ? "this and " + std::to_string(shown.size() - 1) + " other files look"
                                      : std::string("the file looks")) +
                        " like a secret, and could not be hidden from what runs in the session",
                    "end the session's commands, or try again");
}

}  // namespace

Result<std::vector<std::string>> Supervisor::newSecrets() {
  std::vector<std::string> found;
  const auto& watched = sandbox_->plan().watched;
  if (!watched || metadata_.workspace.empty()) return found;
  auto root = sys::RootDir::share(watched->opened->get(), {.known_as = watched->path});
  if (!root) return caisson::fail(root.error());
  const auto scan = host::searchEnclosed(*std::move(root), watched->path, searchOptions(metadata_), &scan_cache_);
  const auto shows = [&](const std::string& path) {
    if (sandbox_->hides(path)) return false;
    // Other paths are hidden by a layer instead, now that nothing runs.
    return !sandbox_->directParts().holds(path) || !secret_watch_ || !secret_watch_->masks(path);
  };
  for (const std::string& secret : scan.hidden()) {
    if (shows(secret)) found.push_back(secret);
  }
  // Files with a secret in a part of them are hidden completely: secrecy matters more than their other content.
  for (const plan::ReplacedFile& file : scan.redacted) {
    if (shows(file.path)) found.push_back(file.path);
  }
  return found;
}

bool Supervisor::ownLayersHide(const std::string& path) const {
  const auto store = paths_.stores().enter(metadata_.family);
  if (!store) return false;
  const auto hides = [&](const std::string& layer) {
    const auto directory = store->enter(layer);
    return directory && supervise::layerHides(directory->descriptor(), path);
  };
  return hides(metadata_.upper) || std::ranges::any_of(metadata_.frozen, hides);
}

void Supervisor::makeSecretWatch() {
  supervise::SecretWatch::Options options;
  options.workspace = sandbox_->plan().watched->path;
  options.directory = sandbox_->plan().watched->opened;
  options.scan = searchOptions(metadata_);
  options.exposes = [this](const std::string& path) {
    return sandbox_->directParts().holds(path) || (!sandbox_->hides(path) && !ownLayersHide(path));
  };
  options.keeps_names = [this](const std::string& path) { return !sandbox_->directParts().holds(path); };
  options.writes = [this](const std::string& path) { return sandbox_->directParts().writes(path); };
  options.mask = [this](const std::vector<std::string>& paths) { return sandbox_->mask(paths); };
  options.progressed = [this] { onMasks(); };
  options.masked = sandbox_->directParts().redacted();
  secret_watch_.emplace(loop_, scan_cache_, std::move(options));
}

void Supervisor::hideAtOnce(const std::vector<std::string>& secrets) {
  if (secrets.empty()) return;
  if (!secret_watch_) makeSecretWatch();
  secret_watch_->hide(secrets);
}

void Supervisor::afterMasks(std::function<void(const Result<void>&)> action) {
  if (secret_watch_) secret_watch_->hide(secret_watch_->shown());  // what failed before
  after_masks_.push_back({secret_watch_ ? secret_watch_->waiting() : std::set<std::string>(), std::move(action)});
  if (masks_timer_ == 0 && secret_watch_ && secret_watch_->waitsFor(after_masks_.back().paths)) {
    masks_timer_ = loop_.at(Clock::now() + kWrittenMasksTimeout, [this] {
      masks_timer_ = 0;
      dropWrittenMasks();
    });
  }
  onMasks();
}

void Supervisor::onMasks() {
  const auto waits = [this](const AfterMasks& one) { return secret_watch_ && secret_watch_->waitsFor(one.paths); };
  const auto done = std::ranges::stable_partition(after_masks_, waits);
  std::vector<AfterMasks> ready(std::make_move_iterator(done.begin()), std::make_move_iterator(done.end()));
  after_masks_.erase(done.begin(), done.end());
  if (after_masks_.empty()) loop_.cancel(std::exchange(masks_timer_, 0));
  for (const AfterMasks& one : ready) {
    const auto shown = secret_watch_ ? secret_watch_->shown() : std::vector<std::string>();
    one.action(shown.empty() ? Result<void>() : caisson::fail(notHidden(shown)));
  }
}

void Supervisor::dropWrittenMasks() {
  for (AfterMasks& one : after_masks_) {
    std::erase_if(one.paths,
                  [this](const std::string& path) { return sandbox_ && sandbox_->directParts().writes(path); });
  }
  onMasks();
}

void Supervisor::checkSecretWatch() {
  secret_timer_ = 0;
  if (!sandbox_ || !sandbox_->plan().watched || metadata_.workspace.empty()) return;
  if (canFreeze(0)) {  // the overlay is mounted anew if the host moved files
    if (!secret_watch_) return;
    // Releasing the watches takes some 20 ms: not between two commands.
    secret_timer_ = loop_.at(Clock::now() + kCheckIdleEvery, [this, last = last_number_] {
      if (last != last_number_ || !canFreeze(0)) return checkSecretWatch();
      secret_timer_ = 0;
      if (secret_watch_) secret_watch_->pause();
    });
    return;
  }
  if (!secret_watch_) makeSecretWatch();
  secret_watch_->begin();
  secret_timer_ = loop_.at(Clock::now() + kCheckIdleEvery, [this] { checkSecretWatch(); });
}

void Supervisor::endSecretWatch() {
  loop_.cancel(std::exchange(secret_timer_, 0));
  secret_watch_.reset();
  mount_used_ = false;
  onMasks();
}

}  // namespace caisson::session
