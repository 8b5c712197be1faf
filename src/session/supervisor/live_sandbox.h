// A session's running sandbox in its supervisor: pid 1 and the socket to it, the cgroup, the egress.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>

#include "broker/start.h"
#include "egress/process.h"
#include "plan/hidden_names.h"
#include "plan/plan.h"
#include "session/init/init_protocol.h"
#include "session/store/metadata.h"
#include "session/store/session_paths.h"
#include "session/supervisor/command_cgroups.h"
#include "session/supervisor/launcher.h"
#include "supervise/disk/disk_directories.h"
#include "supervise/launch.h"
#include "supervise/limits/disk_watch.h"
#include "supervise/workspace/direct_parts.h"
#include "sys/cgroup.h"
#include "sys/event_loop.h"

namespace caisson::session {

class LiveSandbox {
 public:
  struct Handlers {
    /// A reply of pid 1, with its descriptor if any. Not called for replies that a function of this class waits for.
    std::function<void(const InitReply&, sys::Fd)> reply;
    std::function<void(const egress::Report&)> egress_report;
    std::function<void()> exited;  ///< pid 1 exited, and with it every process of the sandbox
  };

  /// Builds the sandbox and returns when pid 1 can spawn commands and the egress is ready. The caller holds the
  /// session's lock. `directory` and `launcher` must outlive the result.
  static Result<std::unique_ptr<LiveSandbox>> start(const SessionPaths& paths, const sys::RootDir& directory,
                                                    const Metadata& metadata, const plan::Plan& plan,
                                                    sys::EventLoop& loop, Launcher& launcher, Handlers handlers);
  /// Calls kill().
  ~LiveSandbox();
  LiveSandbox(const LiveSandbox&) = delete;
  LiveSandbox& operator=(const LiveSandbox&) = delete;

  [[nodiscard]] pid_t init() const { return launched_.init; }
  [[nodiscard]] const plan::Plan& plan() const { return plan_; }
  /// Its user namespace, if the plan maps subordinate ids beside the payload's; else -1.
  [[nodiscard]] int userNamespace() const { return launched_.user_namespace.get(); }
  [[nodiscard]] const sys::Cgroup& cgroup() const { return cgroup_; }
  [[nodiscard]] CommandCgroups& commandCgroups() { return *command_cgroups_; }
  /// The overlay's upper directory; -1 if the workspace is not an overlay.
  [[nodiscard]] int upper() const { return upper_.get(); }
  /// Which size-limited directories of the plan pid 1 opened, and copies of their descriptors: both for
  /// LimitWatch::addSized().
  [[nodiscard]] std::uint32_t sizedMask() const { return sized_mask_; }
  [[nodiscard]] std::vector<sys::Fd> sizedDirectories() const;
  /// The descriptor of the size-limited directory at `target`, a path inside. Valid until this object is destroyed,
  /// also after kill(). -1 if there is none.
  [[nodiscard]] int sizedDirectory(std::string_view target) const;
  /// When to measure the disk next; shared, so that each new SessionLimits continues where the last one stopped.
  [[nodiscard]] supervise::DiskWatch::Pace& diskPace() const { return *disk_pace_; }
  [[nodiscard]] supervise::ClosedSizes& closedSizes() const { return *closed_sizes_; }
  /// The size-limited directories on disk, in the order of the plan.
  [[nodiscard]] const std::vector<sys::Fd>& diskDirectories() const { return disk_directories_.descriptors; }
  /// What pid 1 reported when the sandbox was built; results list the weaker rungs in it.
  [[nodiscard]] const isolation::Message& prepared() const { return prepared_; }
  [[nodiscard]] const std::vector<std::string>& unmapped() const { return launched_.unmapped; }
  /// The listeners that pid 1 made inside for the plan's host ports, in their order. Call once.
  [[nodiscard]] std::vector<sys::Fd> takeHostListeners() { return std::move(host_listeners_); }
  [[nodiscard]] bool hasEgress() const { return egress_.has_value(); }
  /// Describes what the egress captures.
  [[nodiscard]] std::string capture() const { return egress_ ? egress_->capture() : std::string(); }

  /// Returns 0, or the errno with which pid 1 could not be reached.
  [[nodiscard]] int send(const InitRequest& request, std::span<const int> descriptors = {}) const;
  /// Sends a request whose reply carries a descriptor, and waits for it, at most a second: pid 1 never blocks. Other
  /// replies that arrive meanwhile go to the handler. `call`: for the error.
  Result<sys::Fd> askForDescriptor(InitRequest request, std::string_view call);
  /// Fetches descriptor `number` of pid 1, and closes it there.
  Result<sys::Fd> fetch(int number);
  /// The workspace's directory as the sandbox's programs see it.
  [[nodiscard]] Result<sys::Fd> openWorkspace() const;
  /// The root directory as the sandbox's programs see it.
  [[nodiscard]] Result<sys::Fd> openRoot() const;
  /// The Landlock rules of the commands, as a ruleset that another thread can enter; -1: commands have no domain. An
  /// error if pid 1 could not send them.
  [[nodiscard]] Result<int> landlockRules() const;
  /// Whether any process except pid 1 runs.
  [[nodiscard]] bool busy() const;

  /// Whether the mounted mask layer hides this path of the workspace, or replaces its content. hide() adds to it with
  /// the next changeLayers(); mask() does not. No layer hides what is shown directly.
  [[nodiscard]] bool hides(const std::string& path) const;
  /// Parts of the workspace that are shown directly.
  [[nodiscard]] const supervise::DirectParts& directParts() const;
  /// Adds a whiteout for the path to the store's mask layer. Takes effect with the next changeLayers().
  Result<void> hide(const sys::RootDir& store, const std::string& path);
  /// Hides paths of the workspace now, also while processes run, until the next changeLayers(). Does not wait: the
  /// result reports when the masks are in place.
  Result<supervise::LiveMask> mask(const std::vector<std::string>& paths) const;
  /// Whether the workspace can be remounted: it is an overlay, and nothing is mounted below it.
  [[nodiscard]] bool canChangeLayers() const;
  /// Stops pid 1 from spawning until resume() or changeLayers(). False: a process runs, and nothing changed. After an
  /// error of pause(), resume() or changeLayers() the sandbox is unusable.
  Result<bool> pause();
  Result<void> resume() { return startSpawnThread(); }
  /// Remounts the workspace of a paused sandbox over other layers, and resumes it; /tmp, the home and everything else
  /// stay. The directories of the new upper layer must exist.
  Result<void> changeLayers(const std::vector<std::string>& frozen, const std::string& upper, sys::Fd upper_directory);

  /// Tells the egress that all its reports so far are recorded, so that new connections may carry data. Nothing without
  /// an egress.
  void confirmRecorded();
  /// Makes the egress report its totals after all pending reports; they arrive in Handlers::egress_report.
  void requestEgressTotals();

  /// What is left of a sandbox whose last process was pid 1: the kernel removes its mounts, which takes longer the more
  /// files it has accessed.
  struct Remains {
    pid_t init = -1;
    sys::Fd pidfd;  ///< readable once it is gone
    sys::Cgroup cgroup;
  };

  /// Kills pid 1 and so every process, reaps it, and collects the last reports of the egress. False: pid 1 has not
  /// exited 10 s after SIGKILL. True if it was reaped before.
  bool kill();
  /// kill() for a paused sandbox: returns before pid 1 is reaped, as soon as the layers can be mounted again. The
  /// caller reaps it. Nothing if pid 1 survives.
  std::optional<Remains> killPaused();

 private:
  LiveSandbox(plan::Plan plan, sys::EventLoop& loop, Launcher& launcher, Handlers handlers)
      : plan_(std::move(plan)), loop_(loop), launcher_(launcher), handlers_(std::move(handlers)) {}
  /// Does the work of start(), except for the handlers.
  Result<void> build(const SessionPaths& paths, const sys::RootDir& directory, const Metadata& metadata);
  /// Waits until pid 1 is ready or reports a failure, at most 30 s. Sets what it sends meanwhile: the upper directory,
  /// size-limited directories, listeners.
  Result<void> awaitReady();
  /// Lets a paused pid 1 spawn: it starts a new thread, which enters a Landlock domain with rules for the current
  /// mounts and from which all commands are born. A domain cannot be left, so each change of mounts needs a new thread.
  Result<void> startSpawnThread();
  /// Waits for a reply of this type while nothing runs in the sandbox: at most 10 s, under extreme load. Other replies
  /// go to the handler. `sent`: gets the descriptor of the reply.
  Result<InitReply> awaitReply(InitReplyType type, sys::Fd* sent = nullptr);
  /// Registers the handlers of pid 1 and of the egress with the event loop.
  void watch();
  /// Call when pid 1 is dead: handles its last replies, removes the handlers, and collects the egress's last reports.
  void stopWatching();
  /// The socket to pid 1 is readable: handles all waiting replies.
  void onControl();
  /// The egress sent reports, or exited: then the sandbox is killed, which must not continue without it.
  void onEgress();

  plan::Plan plan_;
  mutable std::optional<supervise::DirectParts> direct_;
  mutable std::optional<plan::HiddenNames> hidden_;  ///< of the plan's mask layer
  std::set<std::string> unmounted_;                  ///< names in it that take effect with the next changeLayers()
  const sys::RootDir* directory_ = nullptr;          ///< of the session
  sys::EventLoop& loop_;
  Launcher& launcher_;
  Handlers handlers_;
  supervise::Launched launched_;
  sys::Cgroup cgroup_;                             // removed after the last process in it is gone
  std::optional<CommandCgroups> command_cgroups_;  // inside the one above
  std::optional<broker::Started> broker_;
  std::optional<egress::Process> egress_;
  std::vector<sys::Fd> host_listeners_;
  sys::Fd upper_;
  sys::Fd landlock_rules_;  ///< of the current domain
  sys::Fd layer_;  ///< a layer as the sandbox's mount of the store shows it, once the first upper one was replaced
  std::uint32_t sized_mask_ = 0;
  std::vector<sys::Fd> sized_;  ///< one per bit of the mask
  supervise::DiskDirectories disk_directories_;
  std::unique_ptr<supervise::DiskWatch::Pace> disk_pace_ = std::make_unique<supervise::DiskWatch::Pace>();
  std::unique_ptr<supervise::ClosedSizes> closed_sizes_ =
      std::make_unique<supervise::ClosedSizes>([this](int directory, const supervise::TreeBounds& bounds) {
        return launcher_.measure(directory, bounds, launched_.user_namespace.get());
      });
  isolation::Message prepared_{};
  bool reaped_ = false;  ///< pid 1 was reaped, or left to the caller of killPaused()
};

}  // namespace caisson::session
