#include "session/supervisor/live_sandbox.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "isolation/child.h"
#include "isolation/compile.h"
#include "plan/workspace.h"
#include "session/layers/root_layers.h"
#include "session/layers/steps.h"
#include "session/network/network.h"
#include "session/program.h"
#include "session/sandbox.h"
#include "supervise/control_channel.h"
#include "supervise/explain_failure.h"
#include "supervise/limits/cgroup.h"
#include "supervise/limits/limit_watch.h"
#include "supervise/network/credentials.h"
#include "supervise/network/egress.h"
#include "supervise/processes/process_tree.h"
#include "supervise/workspace/changes.h"
#include "sys/deadline.h"
#include "sys/descriptor_path.h"
#include "sys/process_start.h"
#include "sys/raw_syscall.h"
#include "sys/receive.h"

namespace caisson::session {
namespace {

using sys::Fd;
using Clock = std::chrono::steady_clock;

static_assert(kSpawnDescriptors + kMaxCgroups <= isolation::kMaxSent);

constexpr auto kStartTimeout = std::chrono::seconds(30);
constexpr auto kReplyTimeout = std::chrono::seconds(1);   // of askForDescriptor()
constexpr auto kPauseTimeout = std::chrono::seconds(10);  // of awaitReply()
constexpr unsigned kLockPauseUs = 50;
constexpr auto kSandboxKillTimeout = std::chrono::seconds(10);  // after SIGKILL to pid 1

constexpr const char* kInMemory = "in-memory";

/// An error if the session's layers were in memory and are gone. An empty store in their place would look like the
/// session without its changes.
Result<void> checkMemoryStore(const SessionPaths& paths, const Metadata& metadata) {
  if (paths.whyInMemory().empty()) return {};
  auto directory = paths.sessions().enter(metadata.id);
  if (!directory) return fail(directory.error());
  const bool used = directory->openFile(kInMemory, {.flags = O_RDONLY}).has_value();
  const bool kept = paths.stores().enter(metadata.family).has_value();
  if (used && !kept) {
    return fail(plainError(Stage::state, "session", metadata.id,
                           "its changes were in memory and are gone: the machine or container was restarted",
                           "caisson session destroy " + metadata.id +
                               "; keep sessions by setting CAISSON_HOME to a directory on a volume"));
  }
  return directory->writeFileAtomic(kInMemory, "", 0600);
}

/// Creates the directory of the layers, owned by the sandbox's user if that is not the caller.
Result<std::string> prepareStore(const SessionPaths& paths, const Metadata& metadata, const plan::Plan& plan) {
  if (auto checked = checkMemoryStore(paths, metadata); !checked) return fail(checked.error());
  if (auto made = paths.stores().makeDirs(metadata.family, 0700); !made) return fail(made.error());
  auto store = paths.stores().openFile(metadata.family, {.flags = O_RDONLY, .types = {sys::FileType::directory}});
  if (!store) return fail(store.error());
  if (plan.identity.parent_writes_maps &&
      ::fchown(store->get(), plan.identity.outside_uid, plan.identity.outside_gid) != 0) {
    return fail(sysError(Stage::state, "fchown", metadata.family, errno));
  }
  auto path = sys::canonicalPath(store->get());
  if (!path) return path;
  if (auto fit = checkFeatures(*path, store->get()); !fit) return fail(fit.error());
  return path;
}

}  // namespace

Result<std::unique_ptr<LiveSandbox>> LiveSandbox::start(const SessionPaths& paths, const sys::RootDir& directory,
                                                        const Metadata& metadata, const plan::Plan& plan,
                                                        sys::EventLoop& loop, Launcher& launcher, Handlers handlers) {
  std::unique_ptr<LiveSandbox> sandbox(new LiveSandbox(plan, loop, launcher, std::move(handlers)));
  sandbox->directory_ = &directory;
  if (auto built = sandbox->build(paths, directory, metadata); !built) return fail(built.error());
  sandbox->watch();
  return sandbox;
}

static supervise::BrokerOptions brokerOptions() {
  return {.program = sys::kOwnProgram, .for_session = true, .forget_variables = true};
}

Result<void> LiveSandbox::build(const SessionPaths& paths, const sys::RootDir& directory, const Metadata& metadata) {
  auto alive = lockFileWithin(directory, kAliveFile, kUntilAskersAreGone);
  if (!alive) return fail(alive.error());
  auto program = initProgram();
  if (!program) return fail(program.error());
  auto store = prepareStore(paths, metadata, plan_);
  if (!store) return fail(store.error());
  auto directories = prepareDiskDirectories(paths, directory, metadata, plan_);
  if (!directories) return fail(directories.error());
  disk_directories_ = std::move(*directories);
  step("start: prepared");
  auto cgroup = supervise::makeCgroup(plan_, plan_.cgroup ? sys::CgroupBase::find() : sys::CgroupBase(), metadata.id,
                                      plan_.cpu_seconds.has_value());
  if (!cgroup) return fail(cgroup.error());
  cgroup_ = std::move(*cgroup);

  egress::Link link;
  if (plan_.egress) {
    auto made = egress::makeLink();
    if (!made) return fail(made.error());
    link = std::move(*made);
  }
  if (plan_.egress && !plan_.egress->network.credentials.empty()) {
    auto started = supervise::startBroker(plan_, brokerOptions());
    if (!started) return fail(started.error());
    broker_ = std::move(*started);
  }
  supervise::InitProgramOptions init_program;
  init_program.program = program->get();
  init_program.arguments = {"caisson-init"};
  init_program.descriptor = alive->get();
  // The child inherits the flag, and a process that is not dumpable may not write its own id maps.
  ::prctl(PR_SET_DUMPABLE, 1);
  auto launched = supervise::launch(plan_, cgroup_,
                                    {.store = *store,
                                     .directories = disk_directories_.paths,
                                     .egress_link = link.sandbox.get(),
                                     .init_program = &init_program});
  ::prctl(PR_SET_DUMPABLE, 0);
  if (!launched) return fail(launched.error());
  launched_ = std::move(*launched);
  link.sandbox.reset();
  step("start: cloned");
  if (auto released = supervise::release(launched_, cgroup_); !released) return released;
  command_cgroups_.emplace(
      cgroup_, plan_.identity.change_user ? std::optional<uid_t>(plan_.identity.outside_uid) : std::nullopt);
  if (auto ready = awaitReady(); !ready) return ready;
  if (auto entered = startSpawnThread(); !entered) return entered;
  if (plan_.egress) {
    auto started = startEgress(plan_, directory, {std::move(link.egress), broker_ ? std::move(broker_->egress) : Fd()},
                               launched_.pidfd.get());
    if (!started) return fail(started.error());
    egress_ = std::move(*started);
  }
  const InitRecord record{ProcessId::of(launched_.init), ProcessId::of(::getpid()), metadata.mountedLayers()};
  if (auto written = writeInitRecord(directory, record); !written) return written;
  step("start: recorded");
  return {};
}

Result<void> LiveSandbox::awaitReady() {
  const auto deadline = Clock::now() + kStartTimeout;
  for (;;) {
    pollfd wait{launched_.control.get(), POLLIN, 0};
    const int ready = ::poll(&wait, 1, sys::millisecondsUntil(deadline));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      return fail(plainError(Stage::launch, "wait", "pid 1 of the session", "it did not start in 30 s",
                             "the host may be overloaded; try again"));
    }
    supervise::Arrival arrival;
    isolation::Message& message = arrival.message;
    const auto bytes = std::as_writable_bytes(std::span(&message, 1));
    const ssize_t got = sys::receiveMessage(launched_.control.get(), bytes, arrival.descriptors, MSG_DONTWAIT);
    if (got == -EAGAIN) continue;
    if (got == static_cast<ssize_t>(sizeof(InitReply))) return {};
    if (got == static_cast<ssize_t>(sizeof(message)) && message.kind == isolation::MessageKind::prepared) {
      prepared_ = message;
      if ((message.descriptors & isolation::kFetch) != 0) {
        isolation::Message go{};
        go.kind = isolation::MessageKind::go;
        ::send(launched_.control.get(), &go, sizeof(go), MSG_NOSIGNAL);
        continue;
      }
      Fd* next = arrival.descriptors;
      if ((message.descriptors & 1) != 0) upper_ = std::move(*next++);
      sized_mask_ = message.sized;
      for (std::uint32_t bits = message.sized; bits != 0 && next != std::end(arrival.descriptors); bits &= bits - 1) {
        sized_.push_back(std::move(*next++));
      }
      continue;
    }
    if (got == static_cast<ssize_t>(sizeof(message)) && message.kind == isolation::MessageKind::host_ports) {
      for (Fd& listener : arrival.descriptors) {
        if (listener) host_listeners_.push_back(std::move(listener));
      }
      continue;
    }
    if (got == static_cast<ssize_t>(sizeof(message)) && message.kind == isolation::MessageKind::failure) {
      Error error = supervise::errorOf(message);
      supervise::explainFailure(error, plan_);
      return fail(error);
    }
    return fail(plainError(Stage::launch, "wait", "pid 1 of the session", "it exited without a message",
                           "the host may be out of memory; see the kernel's log"));
  }
}

Result<void> LiveSandbox::startSpawnThread() {
  plan::Plan rules = plan_;
  rules.steps.clear();
  auto compiled = isolation::BlockSpace().compile(rules);
  if (!compiled) return fail(compiled.error());
  InitRequest request;
  request.type = InitRequestType::enter;
  request.address = compiled->address;
  request.bytes = compiled->bytes;
  const int descriptors[] = {compiled->file.get()};
  if (const int error = send(request, descriptors); error != 0) {
    return fail(sysError(Stage::launch, "send", "pid 1 of the session", error));
  }
  landlock_rules_.reset();
  auto entered = awaitReply(InitReplyType::entered, &landlock_rules_);
  if (!entered) return fail(entered.error());
  return {};
}

Result<InitReply> LiveSandbox::awaitReply(InitReplyType type, Fd* sent) {
  const auto deadline = Clock::now() + kPauseTimeout;
  for (;;) {
    pollfd wait{launched_.control.get(), POLLIN, 0};
    const int ready = ::poll(&wait, 1, sys::millisecondsUntil(deadline));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return fail(sysError(Stage::supervise, "wait", "pid 1 of the session", ETIMEDOUT));
    isolation::Message message{};
    Fd descriptor[1];
    static_assert(sizeof(InitReply) < sizeof(message));
    const ssize_t got = sys::receiveMessage(launched_.control.get(), std::as_writable_bytes(std::span(&message, 1)),
                                            descriptor, MSG_DONTWAIT);
    if (got == -EAGAIN) continue;
    if (got == static_cast<ssize_t>(sizeof(message))) {
      Error error = supervise::errorOf(message);
      supervise::explainFailure(error, plan_);
      return fail(error);
    }
    InitReply reply;
    if (got != static_cast<ssize_t>(sizeof(reply))) {
      return fail(plainError(Stage::supervise, "wait", "pid 1 of the session", "it exited"));
    }
    std::memcpy(static_cast<void*>(&reply), &message, sizeof(reply));
    if (reply.type == type) {
      if (sent != nullptr) *sent = std::move(descriptor[0]);
      return reply;
    }
    handlers_.reply(reply, std::move(descriptor[0]));
  }
}

LiveSandbox::~LiveSandbox() {
  if (kill()) supervise::finishCaches(disk_directories_);
  if (launched_.control) loop_.remove(launched_.control.get());
}

void LiveSandbox::watch() {
  loop_.on(launched_.control.get(), POLLIN, [this](short) { onControl(); });
  loop_.on(launched_.pidfd.get(), POLLIN, [this](short) {
    onControl();  // the last exits may have been reported together with the end
    loop_.remove(launched_.pidfd.get());
    handlers_.exited();
  });
  if (egress_) loop_.on(egress_->descriptor(), POLLIN, [this](short) { onEgress(); });
}

void LiveSandbox::onControl() {
  for (;;) {
    InitReply reply;
    Fd descriptor[1];
    const ssize_t got = sys::receiveMessage(launched_.control.get(), std::as_writable_bytes(std::span(&reply, 1)),
                                            descriptor, MSG_DONTWAIT);
    if (got == -EAGAIN) return;
    if (got != static_cast<ssize_t>(sizeof(reply))) return loop_.remove(launched_.control.get());
    handlers_.reply(reply, std::move(descriptor[0]));
  }
}

void LiveSandbox::onEgress() {
  if (egress_->receive(handlers_.egress_report)) return;
  loop_.remove(egress_->descriptor());
  // A session with a network must not continue without its egress.
  sys::raw(SYS_pidfd_send_signal, launched_.pidfd.get(), SIGKILL, nullptr, 0);
}

void LiveSandbox::confirmRecorded() {
  if (egress_) egress_->confirmRecorded();
}

void LiveSandbox::requestEgressTotals() {
  if (egress_) egress_->requestTotals();
}

int LiveSandbox::sizedDirectory(std::string_view target) const {
  const std::vector<std::string> targets = supervise::sizedTargets(plan_, sized_mask_);
  const auto at = static_cast<std::size_t>(std::ranges::find(targets, target) - targets.begin());
  return at < std::min(targets.size(), sized_.size()) ? sized_[at].get() : -1;
}

std::vector<Fd> LiveSandbox::sizedDirectories() const {
  std::vector<Fd> copies;
  for (const Fd& one : sized_) copies.emplace_back(::fcntl(one.get(), F_DUPFD_CLOEXEC, 3));
  return copies;
}

int LiveSandbox::send(const InitRequest& request, std::span<const int> descriptors) const {
  const long sent =
      isolation::sendRecord(launched_.control.get(), &request, sizeof(request), descriptors.data(), descriptors.size());
  return sent < 0 ? static_cast<int>(-sent) : 0;
}

Result<Fd> LiveSandbox::askForDescriptor(InitRequest request, std::string_view call) {
  static std::uint32_t last = 0;
  request.command = ++last;
  if (const int error = send(request); error != 0) return fail(sysError(Stage::supervise, call, "session", error));
  const auto deadline = Clock::now() + kReplyTimeout;
  for (;;) {
    pollfd wait{launched_.control.get(), POLLIN, 0};
    const int ready = ::poll(&wait, 1, sys::millisecondsUntil(deadline));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return fail(sysError(Stage::supervise, call, "session", ETIMEDOUT, "destroy the session"));
    InitReply reply;
    Fd descriptor[1];
    const ssize_t got = sys::receiveMessage(launched_.control.get(), std::as_writable_bytes(std::span(&reply, 1)),
                                            descriptor, MSG_DONTWAIT);
    if (got == -EAGAIN) continue;
    if (got != static_cast<ssize_t>(sizeof(reply))) return fail(sysError(Stage::supervise, call, "session", EPIPE));
    if (reply.type != InitReplyType::descriptor || reply.command != request.command) {
      handlers_.reply(reply, std::move(descriptor[0]));
      continue;
    }
    if (reply.error != 0 || !descriptor[0]) {
      return fail(sysError(Stage::supervise, call, "session", reply.error != 0 ? reply.error : EMFILE,
                           "too many descriptors of this user are in flight; try again"));
    }
    return std::move(descriptor[0]);
  }
}

Result<Fd> LiveSandbox::fetch(int number) {
  const long got = sys::raw(SYS_pidfd_getfd, launched_.pidfd.get(), number, 0);
  InitRequest request;
  request.descriptor = number;
  if (got == -EBADF) {
    return fail(sysError(Stage::supervise, "listener", "session", EBADF, "the command was killed while it started"));
  }
  if (got < 0) {  // forbidden here (Yama, a container's filter): use the socket
    request.type = InitRequestType::send_listener;
    return askForDescriptor(request, "listener");
  }
  ::fcntl(static_cast<int>(got), F_SETFD, FD_CLOEXEC);
  request.type = InitRequestType::close;
  (void)send(request);
  return Fd(static_cast<int>(got));
}

Result<Fd> LiveSandbox::openWorkspace() const { return openInSandbox(launched_.init, plan_.workspace_target); }

Result<Fd> LiveSandbox::openRoot() const { return openInSandbox(launched_.init, "/"); }

Result<int> LiveSandbox::landlockRules() const {
  if (plan_.landlock.abi < 1 || landlock_rules_) return landlock_rules_.get();
  return fail(sysError(Stage::state, "session", "Landlock rules", ETOOMANYREFS,
                       "too many descriptors of this user were in flight; start the sandbox again"));
}

bool LiveSandbox::busy() const { return supervise::ProcessTree(launched_.init).members().size() > 1; }

bool LiveSandbox::kill() {
  if (reaped_ || launched_.init <= 0) return true;
  sys::raw(SYS_pidfd_send_signal, launched_.pidfd.get(), SIGKILL, nullptr, 0);
  pollfd wait{launched_.pidfd.get(), POLLIN, 0};
  const auto deadline = Clock::now() + kSandboxKillTimeout;
  while (::poll(&wait, 1, sys::millisecondsUntil(deadline)) < 0 && errno == EINTR) {
  }
  if ((wait.revents & POLLIN) == 0) return false;
  sys::raw(SYS_wait4, launched_.init, nullptr, __WALL, nullptr);
  stopWatching();
  return true;
}

void LiveSandbox::stopWatching() {
  onControl();
  loop_.remove(launched_.control.get());
  loop_.remove(launched_.pidfd.get());
  reaped_ = true;
  if (!egress_) return;
  loop_.remove(egress_->descriptor());
  egress_->finish(handlers_.egress_report);
}

std::optional<LiveSandbox::Remains> LiveSandbox::killPaused() {
  sys::raw(SYS_pidfd_send_signal, launched_.pidfd.get(), SIGKILL, nullptr, 0);
  const auto deadline = Clock::now() + kSandboxKillTimeout;
  // pid 1 closes its files, and so releases this lock, before it leaves its mount namespace.
  while (isAlive(*directory_)) {
    if (Clock::now() > deadline) return std::nullopt;
    ::usleep(kLockPauseUs);
  }
  stopWatching();
  command_cgroups_.reset();
  return Remains{launched_.init, std::move(launched_.pidfd), std::move(cgroup_)};
}

}  // namespace caisson::session
