// A session's running sandbox in its supervisor: pid 1 and the socket to it, the cgroup, the egress.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <span>

#include "broker/start.h"
#include "egress/process.h"
#include "plan/plan.h"
#include "session/init/init_protocol.h"
#include "session/store/metadata.h"
#include "session/store/session_paths.h"
#include "session/supervisor/command_cgroups.h"
#include "session/supervisor/launcher.h"
#include "supervise/disk/disk_directories.h"
#include "supervise/launch.h"
#include "supervise/limits/disk_watch.h"
#include "sys/cgroup.h"
#include "sys/event_loop.h"

namespace caisson::session {

class LiveSandbox {
 public:
  struct Handlers {
    std::function<void(const InitReply&, sys::Fd)> reply;  ///< of pid 1, except to ask()
    std::function<void(const egress::Report&)> egress_report;
    std::function<void()> exited;  ///< pid 1 exited, and with it every process of the sandbox
  };

  /// Builds it. Waits for pid 1, which runs no payload yet; the caller holds the session's lock.
  static Result<std::unique_ptr<LiveSandbox>> start(const SessionPaths& paths, const sys::RootDir& directory,
                                                    const Metadata& metadata, const plan::Plan& plan,
                                                    sys::EventLoop& loop, Launcher& launcher, Handlers handlers);
  /// Kills all remaining processes.
  ~LiveSandbox();
  LiveSandbox(const LiveSandbox&) = delete;
  LiveSandbox& operator=(const LiveSandbox&) = delete;

  [[nodiscard]] pid_t init() const { return launched_.init; }
  [[nodiscard]] const plan::Plan& plan() const { return plan_; }
  [[nodiscard]] const sys::Cgroup& cgroup() const { return cgroup_; }
  [[nodiscard]] CommandCgroups& commandCgroups() { return *command_cgroups_; }
  /// The overlay's upper directory, and copies of the size-limited directories for LimitWatch::addSized.
  [[nodiscard]] int upper() const { return upper_.get(); }
  [[nodiscard]] std::uint32_t sizedMask() const { return sized_mask_; }
  [[nodiscard]] std::vector<sys::Fd> sizedDirectories() const;
  /// The descriptor of the size-limited directory at `target`, valid after the end too; -1 if there is none.
  [[nodiscard]] int sizedDirectory(std::string_view target) const;
  /// Of the watches of all its commands.
  [[nodiscard]] supervise::DiskWatch::Pace& diskPace() const { return *disk_pace_; }
  [[nodiscard]] supervise::ClosedSizes& closedSizes() const { return *closed_sizes_; }
  /// The size-limited directories on disk, in the order of the plan.
  [[nodiscard]] const std::vector<sys::Fd>& diskDirectories() const { return disk_directories_.descriptors; }
  /// Changes since start() that a result must report ("layers", warnings).
  [[nodiscard]] bool hasTimeNamespace() const { return time_namespace_; }
  /// The listeners that pid 1 made inside for the plan's host ports.
  [[nodiscard]] std::vector<sys::Fd> takeHostListeners() { return std::move(host_listeners_); }
  [[nodiscard]] bool hasEgress() const { return egress_.has_value(); }
  /// Describes what the egress captures.
  [[nodiscard]] std::string capture() const { return egress_ ? egress_->capture() : std::string(); }

  /// Returns 0, or the errno with which pid 1 could not be reached.
  [[nodiscard]] int send(const InitRequest& request, std::span<const int> descriptors = {}) const;
  /// Sends and waits for the reply, at most a second: pid 1 never blocks.
  Result<sys::Fd> askForDescriptor(InitRequest request, std::string_view call);
  /// Fetches a descriptor from pid 1, and closes it there.
  Result<sys::Fd> fetch(int number);
  /// The workspace's directory as the sandbox's programs see it.
  [[nodiscard]] Result<sys::Fd> openWorkspace() const;
  /// Whether any process except pid 1 runs.
  [[nodiscard]] bool busy() const;

  /// Whether the workspace's overlay hides this path, or shows it with other content.
  [[nodiscard]] bool hides(const std::string& path) const;
  /// Hides a path through the store's mask layer, from the next changeLayers() on.
  Result<void> hide(const sys::RootDir& store, const std::string& path);
  /// Hides a path of the workspace at once, until the next changeLayers(), also while processes run.
  Result<supervise::LiveMask> mask(const std::string& path) const;
  [[nodiscard]] bool canChangeLayers() const;
  /// Stops pid 1 from spawning until resume() or changeLayers(). False: a process runs, and nothing changed. After an
  /// error the sandbox is unusable; the same holds for the next two.
  Result<bool> pause();
  Result<void> resume() { return enterDomain(); }
  /// Remounts the workspace of a paused sandbox over other layers; /tmp, the home and everything else stay. The
  /// directories of the new upper layer must exist.
  Result<void> changeLayers(const std::vector<std::string>& frozen, const std::string& upper, sys::Fd upper_directory);

  /// Everything the egress reported so far is recorded (egress::Process::confirmRecorded).
  void confirmRecorded();
  /// Makes the egress report its totals after all pending reports.
  void requestEgressTotals();

  /// What is left of a sandbox whose last process was pid 1: the kernel removes its mounts, which takes longer the more
  /// files it has accessed.
  struct Remains {
    pid_t init = -1;
    sys::Fd pidfd;  ///< readable once it is gone
    sys::Cgroup cgroup;
  };

  /// Kills pid 1 and so every process, and collects the last reports of the egress. False: it survives SIGKILL.
  bool kill();
  /// The same for a paused sandbox: returns as soon as its layers can be mounted again.
  std::optional<Remains> killPaused();

 private:
  LiveSandbox(plan::Plan plan, sys::EventLoop& loop, Launcher& launcher, Handlers handlers)
      : plan_(std::move(plan)), loop_(loop), launcher_(launcher), handlers_(std::move(handlers)) {}
  Result<void> build(const SessionPaths& paths, const sys::RootDir& directory, const Metadata& metadata);
  Result<void> awaitReady();
  Result<void> enterDomain();
  Result<InitReply> awaitReply(InitReplyType type);
  void watch();
  void stopWatching();
  void onControl();
  void onEgress();

  plan::Plan plan_;
  const sys::RootDir* directory_ = nullptr;  ///< of the session
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
  sys::Fd layer_;  ///< a layer as the sandbox's mount of the store shows it, once the first upper one was replaced
  std::uint32_t sized_mask_ = 0;
  std::vector<sys::Fd> sized_;
  supervise::DiskDirectories disk_directories_;
  std::unique_ptr<supervise::DiskWatch::Pace> disk_pace_ = std::make_unique<supervise::DiskWatch::Pace>();
  std::unique_ptr<supervise::ClosedSizes> closed_sizes_ = std::make_unique<supervise::ClosedSizes>(
      [this](int directory, const supervise::TreeBounds& bounds) { return launcher_.measure(directory, bounds); });
  bool time_namespace_ = true;
  bool reaped_ = false;
};

}  // namespace caisson::session
