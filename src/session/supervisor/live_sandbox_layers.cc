// The layers of a running sandbox: what they hide, and how they change while it runs.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "isolation/compile.h"
#include "plan/nested_paths.h"
#include "plan/workspace.h"
#include "session/supervisor/live_sandbox.h"

namespace caisson::session {
namespace {

using sys::Fd;

template <class Plan>
auto overlayOf(Plan& plan) -> decltype(std::get_if<plan::MountOverlay>(&plan.steps.front())) {
  for (auto& step : plan.steps) {
    if (auto* overlay = std::get_if<plan::MountOverlay>(&step)) return overlay;
  }
  return nullptr;
}

}  // namespace

bool LiveSandbox::hides(const std::string& path) const {
  const plan::MountOverlay* overlay = overlayOf(plan_);
  if (overlay == nullptr || directParts().holds(path)) return false;
  const auto same = [&](const plan::ReplacedFile& file) { return file.path == path; };
  if (!hidden_) hidden_.emplace(overlay->whiteouts);
  return hidden_->hides(path) || std::ranges::any_of(overlay->replaced, same);
}

const supervise::DirectParts& LiveSandbox::directParts() const {
  if (!direct_) direct_.emplace(plan_);
  return *direct_;
}

Result<void> LiveSandbox::hide(const sys::RootDir& store, const std::string& path) {
  const std::string masked = "mask/" + path;
  const std::size_t slash = masked.rfind('/');
  if (auto made = store.makeDirs(masked.substr(0, slash), 0755); !made) return made;
  const auto parent = store.enter(masked.substr(0, slash));
  if (!parent) return fail(parent.error());
  // A whiteout: a character device 0:0, which needs no privilege.
  if (::mknodat(parent->descriptor(), masked.c_str() + slash + 1, S_IFCHR, 0) != 0 && errno != EEXIST) {
    return fail(sysError(Stage::mounts, "mknod", path, errno));
  }
  unmounted_.insert(path);
  return {};
}

Result<supervise::LiveMask> LiveSandbox::mask(const std::vector<std::string>& paths) const {
  return launcher_.mask(launched_.pidfd.get(), directParts().maskTarget(plan_, paths));
}

bool LiveSandbox::canChangeLayers() const {
  if (!upper_) return false;
  const plan::MountOverlay* overlay = overlayOf(plan_);
  if (overlay == nullptr) return false;
  // Mounts below the workspace would be lost with the old overlay. A copy of it elsewhere would keep the old layers:
  // the program could write to one that is frozen, and read what a new one hides.
  return std::none_of(plan_.steps.begin(), plan_.steps.end(), [&](const plan::Step& step) {
    const auto* bind = std::get_if<plan::Bind>(&step);
    if (bind != nullptr && plan::isCopy(*bind) && plan::below(bind->source, overlay->target)) return true;
    return std::visit(
        [&](const auto& one) {
          if constexpr (requires { one.target; }) {
            return one.target.size() > overlay->target.size() && one.target.starts_with(overlay->target + "/");
          } else {
            return false;
          }
        },
        step);
  });
}

Result<bool> LiveSandbox::pause() {
  InitRequest request;
  request.type = InitRequestType::pause;
  if (const int error = send(request); error != 0) {
    return fail(sysError(Stage::supervise, "send", "pid 1 of the session", error));
  }
  auto paused = awaitReply(InitReplyType::paused);
  if (!paused) return fail(paused.error());
  return paused->error == 0;
}

Result<void> LiveSandbox::changeLayers(const std::vector<std::string>& frozen, const std::string& upper,
                                       Fd upper_directory) {
  plan::MountOverlay* overlay = overlayOf(plan_);
  if (!layer_) layer_ = std::move(upper_);  // pid 1 opened the first upper layer on the sandbox's mount of the store
  overlay->frozen = frozen;
  overlay->upper = upper;
  const OverlayOptions options{.target = overlay->target,
                               .lower = isolation::lowerNames(*overlay),
                               .upper = upper,
                               .work = upper + ".work",
                               .executable = overlay->executable,
                               .uid = plan_.identity.inside_uid,
                               .gid = plan_.identity.inside_gid};
  if (auto mounted = launcher_.remount(launched_.pidfd.get(), layer_.get(), options); !mounted) return mounted;
  upper_ = std::move(upper_directory);
  for (const std::string& path : unmounted_) {
    overlay->whiteouts.push_back(path);
    if (hidden_) hidden_->add(path);
  }
  unmounted_.clear();
  return startSpawnThread();
}

}  // namespace caisson::session
