// Secret files that the host creates in the workspace of a session.
//
// While nothing runs, they are hidden through the mask layer before the next command (layers.cc). While anything runs,
// and for clients that read files, they are masked in the running sandbox: inotify reports them, and the launcher's
// helper process mounts over them.
#include <algorithm>

#include "plan/denied_paths.h"
#include "plan/workspace.h"
#include "session/supervisor/supervisor.h"

namespace caisson::session {
namespace {

constexpr auto kCheckIdleEvery = std::chrono::seconds(2);
/// A command or a reader waits no longer than this for masks.
constexpr auto kMasksTimeout = std::chrono::seconds(1);

}  // namespace

host::ScanOptions Supervisor::scanOptions() const {
  host::ScanOptions options;
  options.secrets = !metadata_.policy.filesystem.workspace.show_secrets;
  options.shown = plan::shownFiles(metadata_.policy.filesystem.workspace, metadata_.workspace);
  options.denied = plan::deniedPatterns(metadata_.policy);
  options.index = metadata_.policy.filesystem.workspace.protected_files;
  options.keep_index = true;
  return options;
}

std::vector<std::string> Supervisor::newSecrets() {
  std::vector<std::string> found;
  const auto& watched = sandbox_->plan().watched;
  if (!watched || metadata_.workspace.empty()) return found;
  auto root = sys::RootDir::share(watched->opened->get(), {.known_as = watched->path});
  if (!root) return found;
  const auto scan = host::scanWorkspace(*std::move(root), watched->path, scanOptions(), &scan_cache_);
  for (const std::string& secret : scan.hidden()) {
    if (!sandbox_->hides(secret)) found.push_back(secret);
  }
  // Files with a secret in a part of them are hidden completely: secrecy matters more than their other content.
  for (const plan::ReplacedFile& file : scan.redacted) {
    if (!sandbox_->hides(file.path)) found.push_back(file.path);
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
  options.scan = scanOptions();
  options.exposes = [this](const std::string& path) { return !sandbox_->hides(path) && !ownLayersHide(path); };
  options.mask = [this](const std::string& path) { return sandbox_->mask(path); };
  options.settled = [this] { onMasksSettled(); };
  secret_watch_.emplace(loop_, scan_cache_, std::move(options));
}

void Supervisor::hideAtOnce(const std::vector<std::string>& secrets) {
  if (secrets.empty()) return;
  if (!secret_watch_) makeSecretWatch();
  secret_watch_->hide(secrets);
}

void Supervisor::afterMasks(std::function<void()> action) {
  if (!secret_watch_ || !secret_watch_->pending()) return action();
  after_masks_.push_back(std::move(action));
  if (masks_timer_ == 0) {
    masks_timer_ = loop_.at(Clock::now() + kMasksTimeout, [this] {
      masks_timer_ = 0;
      onMasksSettled();
    });
  }
}

void Supervisor::onMasksSettled() {
  loop_.cancel(std::exchange(masks_timer_, 0));
  for (const auto& action : std::exchange(after_masks_, {})) action();
}

void Supervisor::checkSecretWatch() {
  secret_timer_ = 0;
  if (!sandbox_ || !sandbox_->plan().watched || metadata_.workspace.empty()) return;
  if (commands_.empty() && !sandbox_->busy()) {
    if (!secret_watch_) return;
    // Releasing the watches takes some 20 ms: not between two commands.
    secret_timer_ = loop_.at(Clock::now() + kCheckIdleEvery, [this, last = last_number_] {
      if (last != last_number_) return checkSecretWatch();
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
  onMasksSettled();
}

}  // namespace caisson::session
