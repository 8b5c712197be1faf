#include "session/sandbox.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <utility>

#include "egress/process.h"
#include "isolation/block.h"
#include "session/network.h"
#include "session/program.h"
#include "session/protocol.h"
#include "session/steps.h"
#include "supervise/cgroup.h"
#include "supervise/changes.h"
#include "supervise/credentials.h"
#include "supervise/host.h"
#include "supervise/launch.h"
#include "sys/cgroup.h"
#include "sys/raw_syscall.h"
#include "sys/receive.h"

namespace caisson::session {
namespace {

using sys::Fd;

constexpr int kBacklog = 128;
constexpr int kEndPatienceMs = 10'000;
constexpr unsigned kOverflowUid = 65534;

/// The overlay of the plan, over the session's own layers.
Result<void> useLayers(const Metadata& metadata, plan::Plan& plan) {
  for (plan::Step& step : plan.steps) {
    auto* overlay = std::get_if<plan::MountOverlay>(&step);
    if (overlay == nullptr) continue;
    overlay->frozen = metadata.frozen;
    overlay->upper = metadata.upper;
    plan.layers["workspace"] = metadata.workspace.empty()
                                   ? "overlay of nothing, changes are kept in the session"
                                   : "overlay of " + metadata.workspace + ", changes are kept in the session";
    return {};
  }
  return fail(plainError(Stage::plan, "session", "workspace", "the policy gives the session no overlay",
                         "use a workspace of mode overlay or none, and level full or process"));
}

Result<Fd> listenIn(const sys::RootDir& directory) {
  Fd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!listener) return fail(sysError(Stage::launch, "socket", "session", errno));
  if (auto removed = directory.remove(kControlSocket); !removed) return fail(removed.error());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // Through the descriptor: the path itself may be longer than an address has room for.
  std::snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s", directory.descriptor(),
                kControlSocket);
  if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return fail(sysError(Stage::state, "bind", directory.knownAs() + "/" + kControlSocket, errno,
                         "the file system of CAISSON_HOME must hold sockets; set CAISSON_HOME to a local disk"));
  }
  if (::listen(listener.get(), kBacklog) != 0) return fail(sysError(Stage::state, "listen", kControlSocket, errno));
  return listener;
}

/// The store's directory, which belongs to the sandbox's user where that is not the caller.
Result<std::string> prepareStore(const Place& place, const Metadata& metadata, const plan::Plan& plan) {
  if (auto made = place.stores().makeDirs(metadata.family, 0700); !made) return fail(made.error());
  auto store = place.stores().openFile(metadata.family, {.flags = O_RDONLY, .types = {sys::FileType::directory}});
  if (!store) return fail(store.error());
  if (plan.identity.parent_writes_maps &&
      ::fchown(store->get(), plan.identity.outside_uid, plan.identity.outside_gid) != 0) {
    return fail(sysError(Stage::state, "fchown", metadata.family, errno));
  }
  auto path = Place::canonicalPath(store->get());
  if (!path) return path;
  if (auto fit = checkFeatures(*path, store->get()); !fit) return fail(fit.error());
  return path;
}

/// Waits until pid 1 says that it is ready, or what failed.
Result<void> awaitReady(int control, const plan::Plan& plan) {
  for (;;) {
    isolation::Message message{};
    // What comes with it is for who watches a single run; here it is closed.
    const ssize_t got = sys::receiveMessage(control, std::as_writable_bytes(std::span(&message, 1)), {});
    if (got == static_cast<ssize_t>(sizeof(Reply))) {
      Reply reply;
      std::memcpy(static_cast<void*>(&reply), &message, sizeof(reply));
      if (reply.say == Say::ready) return {};
    }
    if (got == static_cast<ssize_t>(sizeof(message)) && message.kind == isolation::MessageKind::prepared) {
      if ((message.descriptors & isolation::kFetch) == 0) continue;
      isolation::Message go{};
      go.kind = isolation::MessageKind::go;
      ::send(control, &go, sizeof(go), MSG_NOSIGNAL);
      continue;
    }
    if (got == static_cast<ssize_t>(sizeof(message)) && message.kind == isolation::MessageKind::failure) {
      message.call[isolation::kCallBytes - 1] = 0;
      message.object[isolation::kObjectBytes - 1] = 0;
      Error error = sysError(static_cast<Stage>(message.stage), message.call, message.object, message.value);
      supervise::explainFailure(error, plan);
      return fail(error);
    }
    return fail(plainError(Stage::launch, "wait", "pid 1 of the session", "it ended without a word",
                           "the host may be out of memory; see the kernel's log"));
  }
}

Error notAlive() { return plainError(Stage::state, "end", "session", "its sandbox did not end in time"); }

}  // namespace

Result<void> checkFeatures(const std::string& path, int directory) {
  constexpr std::pair<unsigned, const char*> kForeign[] = {
      {0x6969U, "NFS"},    {0x65735546U, "FUSE"}, {0xff534d42U, "CIFS"}, {0xfe534d42U, "SMB"},
      {0x01021997U, "9P"}, {0x00c36400U, "Ceph"}, {0x5346414fU, "AFS"}};
  constexpr unsigned kOverlay = 0x794c7630U;
  const auto unfit = [&](std::string_view why) {
    return fail(plainError(Stage::state, "session", path, why,
                           "set CAISSON_HOME to a directory on a local disk (ext4, xfs, btrfs)"));
  };
  struct statfs system{};
  if (::fstatfs(directory, &system) != 0) return fail(sysError(Stage::state, "fstatfs", path, errno));
  const auto type = static_cast<unsigned>(system.f_type);
  if (type == kOverlay) return unfit("it lies on an overlay, which cannot hold another one's changes");
  for (const auto& [number, name] : kForeign) {
    // Their names may change behind the kernel's back, and are looked up again each time.
    if (type != number) continue;
    return unfit(std::string("it lies on ") + name +
                 ", which cannot hold an overlay's changes: the kernel wants names there that nobody else changes");
  }
  char value[8];
  if (::fgetxattr(directory, "user.overlay.opaque", value, sizeof(value)) < 0 && errno == EOPNOTSUPP) {
    return unfit("its file system has no user attributes (user.*), by which an overlay marks replaced directories");
  }
  return {};
}

Result<Planner> Planner::observe(const sys::RootDir& directory, const Metadata& metadata) {
  Planner planner;
  policy::Policy& policy = planner.policy;
  policy = metadata.policy;
  policy.filesystem.overlay_store = policy::OverlayStore::disk;
  policy.filesystem.workspace.mode = policy::WorkspaceMode::overlay;
  policy.filesystem.workspace.path = metadata.workspace;
  if (metadata.workspace.empty()) {
    auto empty = directory.openFile(kEmptyDirectory, {.flags = O_RDONLY, .types = {sys::FileType::directory}});
    if (!empty) return fail(empty.error());
    auto path = Place::canonicalPath(empty->get());
    if (!path) return fail(path.error());
    policy.filesystem.workspace.path = *path;
  }
  planner.facts = supervise::observeHost(policy);
  if (planner.facts.may_map_other_ids) planner.facts.payload_id = metadata.payload_id;
  return planner;
}

Result<plan::Plan> Planner::plan(const Metadata& metadata, const plan::Command& command) const {
  if (policy.network.mode == policy::NetworkMode::host) {
    return fail(plainError(Stage::policy, "session", "network.mode", "a session never gets the host's network",
                           "use --net proxy and name the hosts"));
  }
  auto plan = plan::build(policy, facts, command);
  if (!plan) return plan;
  if (auto used = useLayers(metadata, *plan); !used) return fail(used.error());
  return plan;
}

Result<plan::Plan> Planner::planCommand(const Metadata& metadata, const plan::Command& command) {
  if (!common_ || common_is_interactive_ != command.interactive) {
    auto whole = plan(metadata, command);
    if (!whole) return whole;
    whole->steps.clear();
    whole->landlock.rules.clear();
    common_ = std::move(*whole);
    common_is_interactive_ = command.interactive;
    return *common_;
  }
  plan::Plan plan = *common_;
  if (auto set = plan::setCommand(policy, facts, command, plan); !set) return fail(set.error());
  return plan;
}

std::vector<std::string> directoriesInMemory(const plan::Plan& plan) {
  std::vector<std::string> paths;
  for (const plan::Step& step : plan.steps) {
    if (const auto* tmpfs = std::get_if<plan::MountTmpfs>(&step)) paths.push_back(tmpfs->target);
  }
  return paths;
}

bool isAlive(const sys::RootDir& directory) {
  auto file = directory.openFile(kAliveFile, {.flags = O_RDWR});
  if (!file) return false;
  if (::flock(file->get(), LOCK_EX | LOCK_NB) == 0) return false;
  return errno == EWOULDBLOCK;
}

Result<pid_t> startSandbox(const Place& place, const sys::RootDir& directory, const Metadata& metadata,
                           const plan::Plan& plan) {
  if (auto ended = endSandbox(directory); !ended) return fail(ended.error());  // its cgroup may be left
  auto alive = lockFile(directory, kAliveFile, false);
  if (!alive) return fail(alive.error());
  auto listener = listenIn(directory);
  if (!listener) return fail(listener.error());
  step("start: listening");
  auto program = residentProgram();
  if (!program) return fail(program.error());
  auto store = prepareStore(place, metadata, plan);
  if (!store) return fail(store.error());
  const sys::CgroupBase base = plan.cgroup ? sys::CgroupBase::find() : sys::CgroupBase();
  auto cgroup = supervise::makeCgroup(plan, base, std::string(sys::kKeptCgroup) + metadata.id, false);
  if (!cgroup) return fail(cgroup.error());

  supervise::ResidentWish wish;
  wish.program = program->get();
  const unsigned owner = plan.identity.parent_writes_maps ? kOverflowUid : plan.identity.inside_uid;
  wish.arguments = {"caisson-init", plan.working_directory, std::to_string(owner)};
  for (std::string& path : directoriesInMemory(plan)) wish.arguments.push_back(std::move(path));
  wish.descriptors[0] = listener->get();
  wish.descriptors[1] = alive->get();
  egress::Link link;
  if (plan.egress) {
    auto made = egress::makeLink();
    if (!made) return fail(made.error());
    link = std::move(*made);
  }
  std::optional<plan::Plan> completed;
  sys::Fd broker;
  if (plan.egress && !plan.egress->network.credentials.empty()) {
    completed.emplace(plan);
    auto started = supervise::startBroker(*completed, {.orphan = true});
    if (!started) return fail(started.error());
    broker = std::move(started->egress);
  }
  auto launched = supervise::launch(completed ? *completed : plan, *cgroup,
                                    {.store = *store, .egress_link = link.sandbox.get(), .resident = &wish});
  if (!launched) return fail(launched.error());
  link.sandbox.reset();

  step("start: cloned");
  Result<void> ready = supervise::release(*launched, *cgroup);
  if (ready) ready = awaitReady(launched->control.get(), plan);
  if (ready && plan.egress)
    ready = startEgress(plan, directory, {std::move(link.egress), std::move(broker)}, launched->pidfd.get());
  if (ready) {
    std::vector<std::string> layers = metadata.frozen;
    layers.push_back(metadata.upper);
    std::vector<std::string> held;
    if (cgroup->enforced().memory) held.emplace_back("memory");
    if (cgroup->enforced().pids) held.emplace_back("pids");
    ready = writeInitRecord(directory, {launched->init, startTimeOf(launched->init), Moment::now().boot, cgroup->keep(),
                                        std::move(layers), std::move(held)});
  }
  if (!ready) {
    sys::raw(SYS_pidfd_send_signal, launched->pidfd.get(), SIGKILL, nullptr, 0);
    sys::raw(SYS_wait4, launched->init, nullptr, __WALL, nullptr);
    return fail(ready.error());
  }
  step("start: recorded");
  Request go;
  go.ask = Ask::renew;
  go.milliseconds = static_cast<std::int64_t>(std::ceil(metadata.secondsLeft(Moment::now()) * 1e3));
  if (::send(launched->control.get(), &go, sizeof(go), MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof(go))) {
    return fail(sysError(Stage::launch, "send", "pid 1 of the session", errno));
  }
  return launched->init;
}

void awaitRelease(const sys::RootDir& directory) {
  constexpr int kPauseUs = 50;
  for (int waited = 0; waited < kEndPatienceMs * 1000 / kPauseUs && isAlive(directory); ++waited) ::usleep(kPauseUs);
}

Result<void> endSandbox(const sys::RootDir& directory) {
  const auto record = readInitRecord(directory);
  if (!record) {
    if (record.error().sys_errno == ENOENT) return {};
    if (!isAlive(directory)) return {};
    return fail(record.error());
  }
  if (isAlive(directory)) {
    const long opened = sys::raw(SYS_pidfd_open, record->pid, 0);
    if (opened < 0 && opened != -ESRCH) {
      return fail(sysError(Stage::state, "pidfd_open", std::to_string(record->pid), static_cast<int>(-opened)));
    }
    const Fd pidfd(opened < 0 ? -1 : static_cast<int>(opened));
    // The number may be another process's by now; the start time, read while the pidfd pins it, tells.
    if (pidfd && startTimeOf(record->pid) == record->start) {
      sys::raw(SYS_pidfd_send_signal, pidfd.get(), SIGKILL, nullptr, 0);
      pollfd wait{pidfd.get(), POLLIN, 0};
      if (::poll(&wait, 1, kEndPatienceMs) == 0) return fail(notAlive());
      sys::raw(SYS_wait4, record->pid, nullptr, __WALL | WNOHANG, nullptr);  // if it is our own child
    }
    if (isAlive(directory)) return fail(notAlive());
  }
  sys::removeKeptCgroup(record->cgroup);
  return directory.remove("init.json");
}

}  // namespace caisson::session
