#include "supervise/launch.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "host/subordinate_ids.h"
#include "isolation/child.h"
#include "isolation/compile.h"
#include "runtime/init_descriptors.h"
#include "supervise/clone_error.h"
#include "supervise/control_channel.h"
#include "supervise/disk/owned_mounts.h"
#include "sys/kernel_abi.h"
#include "sys/pipe.h"
#include "sys/raw_syscall.h"

namespace caisson::supervise {
namespace {

using isolation::Block;
using isolation::Message;
using isolation::MessageKind;
using sys::Fd;

std::uint64_t namespaceFlags(const plan::Namespaces& namespaces) {
  std::uint64_t flags = 0;
  if (namespaces.user) flags |= CLONE_NEWUSER;
  if (namespaces.pid) flags |= CLONE_NEWPID;
  if (namespaces.mount) flags |= CLONE_NEWNS;
  // The network namespace takes longest to create: a second thread of pid 1 creates it in parallel.
  if (namespaces.ipc) flags |= CLONE_NEWIPC;
  if (namespaces.uts) flags |= CLONE_NEWUTS;
  return flags;
}

/// clone3, or clone where a filter around us denies clone3 (container engines return ENOSYS); with a `cgroup` only
/// clone3. Returns like fork.
long cloneProcess(std::uint64_t flags, int cgroup, int* pidfd) {
  sys::CloneArgs arguments{};
  arguments.flags = flags | CLONE_PIDFD | sys::kCloneClearSighand;
  arguments.pidfd = reinterpret_cast<std::uint64_t>(pidfd);
  // No exit signal: an embedding application must not see our children in its SIGCHLD handling.
  if (cgroup >= 0) {
    arguments.flags |= sys::kCloneIntoCgroup;
    arguments.cgroup = static_cast<std::uint64_t>(cgroup);
  }
  const long result = sys::raw(SYS_clone3, &arguments, sizeof(arguments));
  if ((result != -ENOSYS && result != -EPERM) || cgroup >= 0) return result;
  const auto old_flags = static_cast<unsigned long>(flags | CLONE_PIDFD);
  return sys::raw(SYS_clone, old_flags, 0, pidfd, 0, 0);
}

Result<void> writeMap(pid_t pid, const char* file, const char* text) {
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
  const Fd fd(::open(path, O_WRONLY | O_CLOEXEC));
  const std::size_t length = isolation::length(text);
  if (!fd || ::write(fd.get(), text, length) != static_cast<ssize_t>(length)) {
    return fail(sysError(Stage::launch, "write", path, errno));
  }
  return {};
}

bool sendGo(int control) {
  Message go{};
  go.kind = MessageKind::go;
  return ::send(control, &go, sizeof(go), MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof(go));
}

/// A namespace of a child that does not run the payload yet: later it is not dumpable, and cannot be inspected.
Result<Fd> openNamespace(pid_t pid, const char* kind) {
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, kind);
  Fd names(::open(path, O_RDONLY | O_CLOEXEC));
  if (!names) return fail(sysError(Stage::launch, "open", path, errno));
  return names;
}

/// Keeps the namespaces in which masks are made. Without them nothing that appears later could be hidden.
Result<void> keepMaskNamespaces(Launched& launched) {
  auto user = openNamespace(launched.init, "user");
  if (!user) return fail(user.error());
  auto mount = openNamespace(launched.init, "mnt");
  if (!mount) return fail(mount.error());
  launched.mask_user_namespace = std::move(*user);
  launched.mask_mount_namespace = std::move(*mount);
  return {};
}

Result<void> mapChild(const plan::Identity& identity, const Block& block, Launched& launched) {
  const pid_t pid = launched.init;
  if (identity.hasMoreIds()) {
    auto names = openNamespace(pid, "user");
    if (!names) return fail(names.error());
    launched.user_namespace = std::move(*names);
  }
  if (identity.usesHelpers()) {
    if (auto mapped = host::mapSubordinateIds(identity, pid); !mapped) return mapped;
  } else {
    if (auto written = writeMap(pid, "uid_map", block.uid_map); !written) return written;
    if (auto written = writeMap(pid, "gid_map", block.gid_map); !written) return written;
  }
  if (!sendGo(launched.control.get())) return fail(sysError(Stage::launch, "send", "control socket", errno));
  return {};
}

/// Blocks all signals, so that none of our handlers runs in the child.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

/// Descriptors of the launch: of both sides, kept until the child has its copies.
struct LaunchDescriptors {
  std::vector<Fd> mounts;
  Fd control;      ///< the child's end
  Fd standard[3];  ///< the child's ends
  std::vector<Fd> passed;
  std::vector<const char*> init_arguments;
};

Result<void> makeControl(Block& block, Launched& launched, LaunchDescriptors& held) {
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) {
    return fail(sysError(Stage::launch, "socketpair", "control", errno));
  }
  auto control = sys::aboveStandard(Fd(sockets[0]), Stage::launch);
  auto child_control = sys::aboveStandard(Fd(sockets[1]), Stage::launch);
  if (!control || !child_control) return fail(control ? child_control.error() : control.error());
  launched.control = std::move(*control);
  held.control = std::move(*child_control);
  block.control = held.control.get();
  block.supervisor_end = launched.control.get();
  return {};
}

/// Names the directory that holds the workspace's changes. The path is in this process's memory, of which the child has
/// a copy.
Result<void> prepareStore(const plan::Plan& plan, const std::string& store, Block& block, LaunchDescriptors& held) {
  block.store_path = store.empty() ? nullptr : store.c_str();
  if (store.empty() || !plan.identity.maps_files) return {};
  auto mount = detachedMount(store.c_str());
  if (!mount) return fail(mount.error());
  block.store_mount = mount->get();
  held.mounts.push_back(std::move(*mount));
  return {};
}

/// Names the directories on disk, one per such step of the plan. As above, the child has a copy of the paths.
Result<void> prepareDirectories(const plan::Plan& plan, const std::vector<std::string>& directories, Block& block,
                                LaunchDescriptors& held) {
  auto* steps = const_cast<isolation::FlatStep*>(block.steps);
  std::size_t used = 0;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const auto* directory = std::get_if<plan::MountTmpfs>(&plan.steps[i]);
    if (directory == nullptr || !directory->on_disk) continue;
    if (used == directories.size()) {
      return fail(plainError(Stage::launch, "launch", directory->target, "no directory on disk was made for it"));
    }
    steps[i].source = directories[used++].c_str();
    if (!plan.identity.maps_files || !plan.namespaces.mount) continue;
    // A cache belongs to the caller: the payload of a root caller has another id each time.
    auto mount = directory->cache.empty() ? detachedMount(steps[i].source) : ownedMount(steps[i].source, plan.identity);
    if (!mount) return fail(mount.error());
    steps[i].mount_fd = mount->get();
    held.mounts.push_back(std::move(*mount));
  }
  return {};
}

/// A new pipe for one stream: our end goes to `launched`, the child's is returned.
Result<Fd> makeStreamPipe(const plan::Identity& identity, int stream, Launched& launched) {
  auto pipe = sys::makePipe(Stage::launch);
  if (!pipe) return fail(pipe.error());
  if (identity.change_user) {  // otherwise the payload could not open its own /dev/stdout
    (void)!::fchown(pipe->read.get(), identity.outside_uid, identity.outside_gid);
  } else if (identity.subordinate()) {
    openToAll(pipe->read.get());
  }
  Fd& ours = stream == 0 ? launched.input : stream == 1 ? launched.output : launched.errors;
  ours = stream == 0 ? std::move(pipe->write) : std::move(pipe->read);
  ::fcntl(ours.get(), F_SETFL, O_NONBLOCK);
  return stream == 0 ? std::move(pipe->read) : std::move(pipe->write);
}

/// The caller's own open file, for the child.
Result<Fd> handOver(const plan::Plan& plan, int stream) {
  Fd copy(::fcntl(stream, F_DUPFD_CLOEXEC, 3));
  if (!copy) return fail(sysError(Stage::launch, "fcntl", "standard stream", errno));
  if (plan.identity.change_user) giveTo(stream, plan.identity.outside_uid, plan.identity.outside_gid);
  if (plan.identity.subordinate()) openToAll(stream);
  return copy;
}

Result<Fd> openNull() {
  auto null = sys::aboveStandard(Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)), Stage::launch);
  if (!null || !null->valid()) return fail(sysError(Stage::launch, "open", "/dev/null", errno));
  return null;
}

Result<void> prepareStreams(const plan::Plan& plan, const LaunchOptions& options, Block& block, Launched& launched,
                            LaunchDescriptors& held) {
  for (int stream = 0; stream < 3; ++stream) {
    block.terminal[stream] = options.terminal.stream[stream];
    block.stdio[stream] = -1;
    if (options.terminal.stream[stream]) continue;
    const bool handed = options.handed.stream[stream];
    if (handed) block.stream_rights[stream] = options.handed.reopen_rights[stream] & plan.landlock.handled_fs;
    auto end = handed                               ? handOver(plan, stream)
               : stream == 0 && !options.feed_input ? openNull()
                                                    : makeStreamPipe(plan.identity, stream, launched);
    if (!end) return fail(end.error());
    held.standard[stream] = std::move(*end);
    block.stdio[stream] = held.standard[stream].get();
  }
  static_assert(isolation::kMaxPassed == policy::kMaxPassedDescriptor, "the block has room for every number");
  for (const plan::PassedDescriptor& one : plan.passed) {
    auto copy = handOver(plan, one.number);
    if (!copy) return fail(copy.error());
    block.passed[block.passed_count++] = {one.number, copy->get(), one.reopen_rights & plan.landlock.handled_fs};
    held.passed.push_back(std::move(*copy));
  }
  return {};
}

/// Gives the streams to the container of an OCI runtime, with the other descriptors of its pid 1. The runtime's own
/// output is an error message.
Result<void> passToContainer(const ContainerEnds& ends, Block& block, Launched& launched, LaunchDescriptors& held) {
  const auto pass = [&](int number, int source) { block.passed[block.passed_count++] = {number, source, 0}; };
  auto null = openNull();
  auto errors = sys::makePipe(Stage::launch);
  if (!null || !errors) return fail(null ? errors.error() : null.error());
  pass(runtime::kControlDescriptor, ends.control);
  pass(runtime::kBlockDescriptor, ends.block);
  for (int stream = 0; stream < 3; ++stream) {
    // A terminal is opened in the container, but the range of descriptors may have no gap.
    pass(runtime::kFirstStream + stream, block.terminal[stream] ? null->get() : block.stdio[stream]);
    block.terminal[stream] = false;
    block.stdio[stream] = stream == 0 ? null->get() : errors->write.get();
  }
  block.wants_terminal = false;
  launched.runtime_errors = std::move(errors->read);
  ::fcntl(launched.runtime_errors.get(), F_SETFL, O_NONBLOCK);
  held.passed.push_back(*std::move(null));
  held.passed.push_back(std::move(errors->write));
  return {};
}

void prepareInitProgram(const InitProgramOptions& program, Block& block, LaunchDescriptors& held) {
  for (const std::string& word : program.arguments) held.init_arguments.push_back(word.c_str());
  held.init_arguments.push_back(nullptr);
  block.init_program = {program.program, held.init_arguments.data(), program.descriptor};
}

/// Clones pid 1 of the sandbox, into the cgroup where the kernel can do that.
Result<void> cloneInit(const plan::Plan& plan, const sys::Cgroup& cgroup, Block& block, Launched& launched) {
  const std::uint64_t flags = namespaceFlags(plan.namespaces);
  int pidfd = -1;
  long pid = -ENOSYS;
  {
    const SignalsBlocked blocked;
    if (cgroup.descriptor() >= 0) {
      pid = cloneProcess(flags, cgroup.descriptor(), &pidfd);
      if (pid == 0) isolation::runChild(block);
      launched.in_cgroup = pid > 0;
    }
    if (pid < 0) {  // also if a kernel or filter forbids clone into a cgroup: release() moves it
      pid = cloneProcess(flags, -1, &pidfd);
      if (pid == 0) isolation::runChild(block);
    }
  }
  if (pid < 0) return fail(cloneError("clone3", "new namespaces", -pid, plan.namespaces.user));
  launched.init = static_cast<pid_t>(pid);
  launched.pidfd = Fd(pidfd);
  return {};
}

}  // namespace

Result<Launched> launch(const plan::Plan& plan, const sys::Cgroup& cgroup, const LaunchOptions& options) {
  auto mapping = isolation::BlockMapping::compile(plan);
  if (!mapping) return fail(mapping.error());
  Block& block = **mapping;
  LaunchDescriptors held;
  Launched launched;
  launched.pid_namespace = plan.namespaces.pid;
  if (auto done = prepareOwnedMounts(plan, block, held.mounts, launched.unmapped); !done) return fail(done.error());
  if (auto done = makeControl(block, launched, held); !done) return fail(done.error());
  if (auto done = prepareStore(plan, options.store, block, held); !done) return fail(done.error());
  if (auto done = prepareDirectories(plan, options.directories, block, held); !done) return fail(done.error());
  block.egress.link = options.egress_link;
  if (options.init_program != nullptr) {
    prepareInitProgram(*options.init_program, block, held);
  } else if (auto done = prepareStreams(plan, options, block, launched, held); !done) {
    return fail(done.error());
  }
  block.wants_terminal = options.terminal.any();
  block.rows = options.terminal.rows;
  block.columns = options.terminal.columns;
  if (options.container != nullptr) {
    if (auto done = passToContainer(*options.container, block, launched, held); !done) return fail(done.error());
  }

  if (auto cloned = cloneInit(plan, cgroup, block, launched); !cloned) return fail(cloned.error());
  const bool masks = plan.watched && options.init_program == nullptr && options.container == nullptr;
  auto done = masks ? keepMaskNamespaces(launched) : Result<void>();
  if (done && block.parent_writes_maps) done = mapChild(plan.identity, block, launched);
  if (!done) {
    ::kill(launched.init, SIGKILL);
    ::waitpid(launched.init, nullptr, __WALL);
    return fail(causeOf(done.error(), launched.control.get()));
  }
  return launched;
}

Result<void> release(const Launched& sandbox, sys::Cgroup& cgroup) {
  Message go{};
  go.kind = MessageKind::go;
  if (cgroup.valid() && !sandbox.in_cgroup) {
    const std::span<const int> entries = cgroup.entries();
    // Entering by itself costs pid 1 next to nothing; being moved waits for an RCU grace period.
    if (!entries.empty() && entries.size() <= isolation::kMaxCgroupEntries) {
      const long sent = isolation::sendMessage(sandbox.control.get(), go, entries.data(), entries.size());
      cgroup.closeEntries();
      if (sent != -ETOOMANYREFS) return {};
    }
    if (auto added = cgroup.add(sandbox.init); !added) return added;
  }
  (void)isolation::sendMessage(sandbox.control.get(), go, nullptr, 0);
  return {};
}

}  // namespace caisson::supervise
