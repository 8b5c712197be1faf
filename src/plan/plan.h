// A plan: the kernel operations of one run, as plain data.
//
// plan::build(policy, host, command) is pure: it reads nothing and changes nothing, so the same plan can be printed
// (`caisson plan`), compared in tests, stored in the audit log and executed by isolation/. The host is described by
// HostFacts, which host/facts.cc collects.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"
#include "plan/host_path.h"
#include "plan/identity.h"
#include "plan/root_facts.h"
#include "plan/runtime_facts.h"
#include "plan/syscall_filter.h"
#include "plan/tree_facts.h"
#include "policy/model.h"

namespace caisson::plan {

/// A descriptor of the caller that the policy passes to the payload.
struct PassedDescriptor {
  int number = -1;
  bool readable_file = false;       ///< a regular file that is open for reading only
  std::uint64_t reopen_rights = 0;  ///< Landlock rights with which the payload may reopen a regular file
  std::string why_not;              ///< not empty: it cannot be passed
};

/// Which limits a cgroup can enforce on this host.
struct CgroupFacts {
  std::string kind = "none";  ///< "v1", "v2"
  bool memory = false, pids = false, cpu = false, cpuset = false, io = false;
  std::string why_not;  ///< what is missing and the remedy
};

/// An entry of `process.allowed_executables`, as found.
struct Program {
  std::string entry;       ///< as the policy names it
  std::string path;        ///< with that name, in a directory without links; empty: not on this host
  std::string real;        ///< the file it resolves to
  std::string script_for;  ///< of a script: the real path of its interpreter
  std::string multi_call;  ///< "busybox" if it is a copy or link of that, under any name
  bool directory = false;  ///< includes everything below
  bool too_large = false;  ///< a directory with too many files to check
};

struct ExecutableFacts {
  std::vector<Program> allowed;
  std::vector<std::string> libraries;      ///< real paths of loaders, libraries and linkers that those need
  std::vector<std::string> blocked;        ///< real paths, including hard links in the payload's PATH
  std::map<std::string, std::string> usr;  ///< "lib" -> "" for a directory below /usr, or the link's target
};

/// A toolchain in the caller's home.
struct Toolchain {
  std::string manager;                   ///< "nvm"
  std::string programs;                  ///< its directory for PATH, canonical
  std::vector<std::string> shown;        ///< its files and directories, canonical
  std::vector<std::string> hidden = {};  ///< files and directories in them that hold secrets, or were not searched
};

/// Whether CAISSON_HOME can hold what a sandbox writes. Probed only if host::mayUseStateDisk().
struct StateDisk {
  std::string why_not;         ///< not empty: it can hold no files of a payload
  std::string why_no_overlay;  ///< not empty: it cannot hold the changes of an overlay
};

struct HostFacts {
  int kernel_major = 0;
  int kernel_minor = 0;
  int landlock_abi = 0;  ///< 0: missing in the kernel, or disabled
  uid_t uid = 0;         ///< of the caller
  gid_t gid = 0;
  std::size_t supplementary_groups = 0;  ///< number of the caller's groups besides its primary one
  bool may_map_other_ids = false;        ///< root: the payload gets a separate unprivileged id
  bool may_map_mounts = false;           ///< ... and mounts that show the caller's files as its own (CAP_SYS_ADMIN)
  std::string why_no_other_id;           ///< not empty: a payload would be root on the host, or can have no id at all
  /// Directories of / and /var that hold no part of the system: covered at level process, and observed only for it.
  std::vector<std::string> other_directories;
  std::vector<std::string> homes;  ///< of the caller, canonical: from HOME and from the user database
  std::string own_config;          ///< canonical: the directory of the owner's configuration, or empty
  std::string own_state;           ///< canonical: caisson's own directory (audit log, keys, approvals), or empty
  StateDisk state_disk;
  std::vector<std::string> denied_through_links;  ///< denied paths of the workspace that lead through a link: an error
  std::string own_default_state;  ///< canonical: the default place of own_state, if CAISSON_HOME names another
  /// Other names of own_state, its default and own_config, see host/state_mounts.h, and state homes of other runs.
  std::vector<std::string> own_mounts;
  std::vector<std::string> own_missing;            ///< of these, what does not exist: no mask can hide it
  std::vector<std::string> own_links;              ///< canonical: links on the way to them, see sys/real_name.h
  std::map<std::string, std::string> denied_real;  ///< denied paths through links, each with its canonical name
  std::vector<std::string> denied_matches;         ///< what denied patterns of the workspace match now, relative to it
  uid_t payload_id = 0;                            ///< the host uid of a root caller's payload, used by no other user
  uid_t broker_offset = 0x10000;                   ///< from the payload's uid to that of its broker
  SubordinateIds subordinate;                    ///< looked for only with a separate user, or root inside another root
  std::vector<Toolchain> toolchains;             ///< in the order of the caller's PATH; only if the policy shows them
  HostPath current_directory;                    ///< only `path` is set
  HostPath workspace;                            ///< as the policy names it, or the current directory
  WorkspaceScan scan;                            ///< of the workspace
  std::shared_ptr<host::TreeWriter> writer;      ///< of a workspace that is written directly (host/tree_writers.h)
  std::map<std::string, NamedTree> named_trees;  ///< directories of `read_only` and `read_write` that were searched
  bool mounts_below = false;  ///< mode `ro`: file systems are mounted below the workspace, so no overlay can show it
  std::vector<HostPath> read_only, read_write;
  /// Top-level names of system directories: "/bin" -> "usr/bin" for a link, "" for a directory.
  std::map<std::string, std::string> system_directories;
  RootFacts root;                                ///< only with a root other than the host's
  RuntimeFacts runtime;                          ///< only if the policy names one other than caisson
  std::map<std::string, std::string> etc_links;  ///< "/etc/localtime" -> "/usr/share/zoneinfo/..."
  std::map<std::string, std::string> caller_environment;
  ExecutableFacts executables;  ///< only with executable lists
  CgroupFacts cgroup;
  std::vector<dev_t> disks;                    ///< used by the sandbox; probed only if the policy limits I/O
  std::vector<std::uint32_t> cpus;             ///< on which this process may run
  std::string processor;                       ///< the first block of /proc/cpuinfo
  std::uint64_t memory = 0;                    ///< bytes of the machine; 0: unknown
  std::string kernel_release, kernel_version;  ///< of uname
  std::uint64_t inotify_instances = 0, inotify_watches = 0;  ///< per user; 0: unknown
  std::uint64_t open_files = ~0ULL;                          ///< the caller's hard limit (RLIMIT_NOFILE)
  bool selinux = false;                         ///< it is active; observed only if the policy names a label
  std::string oci_profile, why_no_oci_profile;  ///< content of syscalls.oci_profile, or why it cannot be read
  /// The caller's descriptors of process.pass_descriptors; unset where there is no caller to take them from.
  std::optional<std::vector<PassedDescriptor>> passed;
  bool tmpfs_user_xattrs = false;  ///< since Linux 6.6: an overlay's upper directory may be a tmpfs
};

// --- filesystem: steps in execution order, targets below the new root ---

struct MakeDirectory {
  std::string target;
  mode_t mode = 0755;
};
struct MakeSymlink {
  std::string target;
  std::string to;         ///< the link's text
  bool optional = false;  ///< with its parents, without following a link; skip what exists or cannot be made
};
struct MakeFile {
  std::string target;
  std::string content;
  mode_t mode = 0644;
  bool marked = false;  ///< the launch replaces marks in the content, as in a CoverFile
};
enum class SourceType : std::uint8_t { unknown, directory, file };

/// Shows a host path (with `inside`: a path of the new root) at `target`; creates the mount point, except with
/// `inside`. With `inside` and `canonical` at another path: a copy, with all mounts and their attributes (isCopy()).
struct Bind {
  std::string source;
  std::string target;
  bool writable = false;
  bool executable = true;
  bool devices = false;    ///< devices in it can be opened
  bool optional = false;   ///< skip if absent on the host
  bool inside = false;     ///< `source` is a path of the new root; see above
  bool canonical = false;  ///< a link in `source` or `target` is an attack: fail
  SourceType type = SourceType::unknown;
  sys::SharedFd opened = {};  ///< what `source` was when it was checked: anything else there now is an error
  bool owned = false;         ///< show files of its owner as the sandbox user's (idmapped mount, root callers only)
};
/// A size-limited directory: a tmpfs or, with `on_disk`, a private directory of the run's or session's store.
struct MountTmpfs {
  std::string target;
  std::uint64_t bytes = 0;
  std::uint64_t inodes = 0;
  mode_t mode = 0755;
  bool executable = false;
  bool optional = false;                                 ///< only over an existing directory
  policy::TmpfsAccess access = policy::TmpfsAccess::rw;  ///< enforced by Landlock
  bool on_disk = false;                                  ///< `bytes` and `inodes` are watched (DiskQuota::directories)
  std::string cache;  ///< with `on_disk`: a directory that outlives the sandbox, below CAISSON_HOME/caches
};
/// Targets of directories on disk in the landlock tier, which mounts nothing. The launch replaces them by the paths of
/// the directories, in the Landlock rules and the environment too (supervise/disk/private_paths.h).
inline constexpr std::string_view kPrivateHome = "private HOME";
inline constexpr std::string_view kPrivateTmp = "private TMPDIR";
inline constexpr std::string_view kPrivateCache = "private cache";
/// Target of the directory that holds the changes to a writable root. Not a path inside.
inline constexpr std::string_view kRootChanges = "changes of /";
/// A proc of the sandbox's pid namespace. Top-level entries other than processes that are not in `shown` are masked, on
/// any kernel. Where the kernel refuses a new proc because parts of the caller's are covered (EPERM from fsmount), the
/// launch takes the first of these rungs that is allowed and that the kernel grants, and reports it.
struct MountProc {
  std::string target;
  std::vector<std::string> shown;
  bool mask = true;            ///< false: mask nothing
  bool may_be_subset = false;  ///< processes only
  /// The caller's own proc, read-only. The user namespace and Landlock each deny the memory, environment and
  /// descriptors of processes outside: both forbid to trace them.
  bool may_be_bound = false;
  bool protect_bound = true;  ///< false: a bound one stays writable
};
/// Marks in the content of a CoverFile that the launch replaces: the boot time, in seconds since 1970; the uptime at
/// the sandbox's start, in seconds (60 with a time namespace); a random UUID.
inline constexpr std::string_view kBootTimeMark = "{boot time}";
inline constexpr std::string_view kUptimeMark = "{uptime}";
inline constexpr std::string_view kRandomIdMark = "{random id}";
/// A read-only file with this content over an existing file; skipped if there is none.
struct CoverFile {
  std::string target;
  std::string content;
};
struct MountDevpts {
  std::string target;
  std::uint32_t most = 64;  ///< maximum number of ptys, since the kernel has 4096 for the whole machine; 0: no limit
};
/// An overlay over `lower`: writes go to a private tmpfs (or to `store` on disk), names in `whiteouts` are hidden.
struct MountOverlay {
  std::string lower;
  sys::SharedFd opened = {};  ///< as in Bind
  std::string target;
  std::vector<std::string> whiteouts;  ///< relative to `lower`
  std::vector<ReplacedFile> replaced;  ///< relative to `lower`
  bool read_only = false;              ///< nothing can be written: `bytes` is for the layer that hides names
  std::uint64_t bytes = 0;
  std::uint64_t inodes = 0;
  bool executable = true;
  bool on_disk = false;
  bool owned = false;
  /// For a session: names in the store of the layers between the lower and the upper directory, uppermost first, and of
  /// the upper directory. Empty: the store belongs to this run.
  std::vector<std::string> frozen;
  std::string upper;
};
/// A layer of the root that MountRoot makes; uppermost first.
struct RootLayer {
  std::string source;  ///< canonical host directory
  bool owned = false;  ///< as in Bind
  bool above = false;  ///< over our files: changes that an earlier sandbox of a session made to the root
};
/// Replaces the root, so far a tmpfs of ours, by an overlay: what is in that tmpfs on top, the layers below it. Files
/// of an image are hostile: a link in it must not redirect a mount, so later steps follow none.
struct MountRoot {
  std::vector<std::string> hidden;  ///< names of the layers that are not shown, relative
  std::vector<std::string> names;   ///< top-level entries of the layers, for Landlock rules
  bool writable = false;            ///< changes go to the directory of the step for kRootChanges
  bool executable = true;           ///< false: only what is mounted over it can be executed
  bool kept = false;                ///< that directory outlives this sandbox
};
/// Covers `target` with an empty, unreadable object of the same type.
struct MaskPath {
  enum class Absent : std::uint8_t { skip, refuse, create };

  std::string target;
  Absent absent = Absent::skip;  ///< what to do if the target does not exist
  bool refuse_links = false;     ///< a link in its path is an error; otherwise it is skipped, like an absent path
};
/// Makes the new root itself read-only; mounts in it keep their own attributes.
struct ReadOnlyRoot {};
/// Moves the tree that was built so far to a directory of a new root, a tmpfs. Later steps build that root, in which an
/// OCI runtime runs (runtime/outer_plan.h); no plan of build() has this step.
struct MoveRoot {
  std::string target;
};
/// A limit of the sandbox's user namespace, set in /proc/sys/user of the host's proc while that is still reachable.
struct SetKernelQuota {
  std::string name;  ///< "max_inotify_instances"
  std::uint64_t value = 0;
};

using Step = std::variant<MakeDirectory, MakeSymlink, MakeFile, Bind, MountTmpfs, MountProc, MountDevpts, MountOverlay,
                          MaskPath, CoverFile, RootLayer, MountRoot, ReadOnlyRoot, MoveRoot, SetKernelQuota>;

/// Rights for everything below a path. `optional`: skip it if the path cannot be opened.
struct LandlockRule {
  std::string path;
  std::uint64_t access = 0;
  bool optional = false;
  sys::SharedFd opened = {};  ///< as in Bind
};

struct Landlock {
  int abi = 0;                   ///< 0: not applied
  std::uint64_t handled_fs = 0;  ///< denied unless a rule grants them
  std::uint64_t handled_net = 0;
  std::uint64_t scoped = 0;  ///< Landlock scoping: abstract sockets, signals
  std::vector<LandlockRule> rules;
};

struct ResourceLimit {
  std::string name;  ///< "nofile"
  int resource = 0;  ///< RLIMIT_*
  std::uint64_t value = 0;
};

/// The limits of one size-limited directory on disk.
struct DirectoryQuota {
  std::string target;
  std::uint64_t bytes = 0, inodes = 0;
  std::optional<std::uint64_t> stated_bytes, stated_inodes;  ///< for messages, if they differ
  bool cache = false;                                        ///< outlives the sandbox: not part of DiskQuota::bytes
};

/// Limits on disk usage where the kernel enforces none; the supervisor polls them (class `watched`).
struct DiskQuota {
  std::vector<std::string> trees;  ///< host directories and files that are written directly
  bool upper = false;              ///< also the overlay's changes, kept on disk
  std::optional<std::uint64_t> bytes, inodes;
  /// The limits of the whole session, partly used by its earlier layers. For messages.
  std::optional<std::uint64_t> stated_bytes, stated_inodes;
  std::vector<DirectoryQuota> directories;  ///< in the order of the plan's steps
  bool total_has_directories = false;       ///< `bytes` includes what is written to them
};

/// Limits on the whole tree, enforced by a cgroup.
struct CgroupPlan {
  bool at_birth = false;  ///< v2: clone into it, so it is created before the sandbox
  std::optional<std::uint64_t> memory, memory_low, pids;
  std::uint64_t swap = 0;
  std::optional<double> cpus;
  std::vector<std::uint32_t> cpuset;
  std::vector<dev_t> io_disks;
  std::optional<std::uint64_t> io_rbps, io_wbps, io_riops, io_wiops;
};

/// Separate limits on processes and on threads beside the first one of each process; the supervisor enforces them.
struct TaskLimits {
  std::uint64_t processes = 0, threads = 0;
};

/// Network mode `proxy`: the sandbox reaches the egress process and nothing else.
struct EgressPlan {
  policy::Network network;  ///< the rules of the egress
  std::vector<std::pair<std::uint16_t, std::uint16_t>>
      ports;                      ///< permitted for some host, for kernels without nf_tables
  bool use_packet_filter = true;  ///< false: one listener per port of `ports` instead
};

struct Namespaces {
  bool user = false, pid = false, mount = false, network = false, ipc = false, uts = false, cgroup = false,
       time = false;
};

/// Measures that every sandbox gets and no policy can disable. They are data so that a plan shows them and tests can
/// disable one and check that the attack succeeds.
struct Hardening {
  bool hide_init = true;          ///< pid 1 is not dumpable and unmaps the memory it was cloned with
  bool close_descriptors = true;  ///< inherit only 0, 1, 2
  bool new_session = true;        ///< no controlling terminal of the caller
  bool new_keyring = true;        ///< no session keyring of the caller
  bool hide_processes = true;     ///< hidepid on /proc
  bool guard_links = true;        ///< reject links in paths that were resolved before
  bool report_violations = true;  ///< the supervisor is notified of blocked calls
};

struct Plan {
  policy::Level level = policy::Level::full;
  policy::Tier tier = policy::Tier::namespaces;
  Namespaces namespaces;
  Identity identity;
  Hardening hardening;
  std::optional<RuntimePlan> runtime;
  std::string hostname;
  bool may_keep_hostname = false;  ///< where setting it is refused, keep the caller's, and report it
  bool own_root = false;           ///< pivot_root into a private root
  bool host_view = false;          ///< that root is a read-only view of the host's, restricted by Landlock
  bool layered_root = false;       ///< that root is an overlay over a directory or image (MountRoot)
  bool root_writable = false;      ///< ... with changes kept apart
  bool loopback = false;           ///< bring up lo in the new network namespace
  std::optional<EgressPlan> egress;
  std::vector<std::uint16_t> host_ports;       ///< of the host's loopback, reachable inside under the same number
  std::vector<std::uint16_t> published_ports;  ///< of the sandbox, reachable at the host's loopback
  std::uint64_t max_connections = 0;           ///< to host_ports, all together
  std::chrono::seconds idle_limit{0};          ///< after which one of them is ended
  bool require_time_namespace = false;         ///< false: continue without it where the kernel has none, and report it
  std::vector<Step> steps;
  Landlock landlock;
  std::optional<SyscallFilter> syscalls;  ///< rules adapted to the policy
  bool builtin_syscalls = false;          ///< or the built-in filter, compiled at build time
  bool log_processes = false;             ///< the filter reports forks, execs and signals (audit.processes)
  policy::Syscalls severities;            ///< the severity of blocked calls: the policy's table
  std::vector<ResourceLimit> rlimits;
  std::optional<CgroupPlan> cgroup;
  std::uint64_t memory_bytes = 0, max_tasks = 0;  ///< 0: no limit. A task is a process or a thread
  std::optional<TaskLimits> task_limits;
  /// Landlock tier: directories in which the payload may change modes, owners and times of files. Landlock does not
  /// cover these calls, so the supervisor makes them (supervise/syscalls/file_attributes.h).
  std::vector<std::string> attribute_trees;
  std::vector<WrittenTree> written;  ///< directories of the host
  std::uint64_t shown_memory = 0;    ///< what the payload is told that the machine has
  std::optional<DiskQuota> disk;
  std::optional<std::uint64_t> max_file_size;
  std::vector<std::uint32_t> cpu_affinity;  ///< CPUs that the payload may use; empty: any
  std::uint32_t cpu_count = 0;              ///< how many of them the payload gets, if the policy does not name them
  bool affinity_required = false;  ///< the policy names the processors; otherwise they only make `nproc` correct
  bool drop_capabilities = true;
  std::uint64_t kept_capabilities = 0;  ///< bit mask of those that are not dropped
  bool no_new_privileges = true;
  bool self_test = true;
  bool single_exec = false;       ///< allow_exec = false: only the payload's first exec
  bool no_fork = false;           ///< allow_fork = false: threads, but no further processes
  bool isolate_commands = false;  ///< sessions: each command in a separate Landlock domain inside the session's

  std::vector<std::string> command;      ///< argv; empty in a plan of buildSandbox()
  std::vector<std::string> environment;  ///< "NAME=value"
  std::string working_directory;
  std::string workspace_target;  ///< where the workspace is inside; empty without one
  std::string apparmor_profile, selinux_label;
  std::vector<PassedDescriptor> passed;  ///< further descriptors of the caller that the payload gets

  std::optional<double> wall_seconds;  ///< unset: no limit
  std::optional<double> cpu_seconds;   ///< of the whole tree; unset: no limit
  std::uint64_t output_bytes = 0;      ///< of each stream
  double time_quantum_seconds = 0;     ///< results are delayed to multiples of this; 0: not

  bool workspace_shown = false;
  bool workspace_overlay = false;                   ///< mode `overlay`
  bool workspace_masked = false;                    ///< a layer hides denied names of the workspace, also later ones
  std::vector<std::string> masked_secrets;          ///< hidden files: of the workspace relative to it, others absolute
  std::map<std::string, std::string> secret_kinds;  ///< WorkspaceScan::secret_kinds
  std::vector<GuardedTree> guarded;                 ///< trees of the host that are written directly
  std::optional<WatchedWorkspace> watched;
  std::shared_ptr<const std::vector<sys::Fd>> root_in_use;  ///< RootFacts::in_use
  std::map<std::string, std::string> layers;                ///< what this plan puts in force, by name
  std::vector<std::string> warnings;                        ///< for the user: weaker protection than usual
  std::vector<std::string> notices;                         ///< for the user: other remarks
  std::vector<std::string> covered;  ///< for the user, before the program starts: what could not be searched

  [[nodiscard]] std::vector<std::string> allNotices() const {
    std::vector<std::string> all = covered;
    all.insert(all.end(), notices.begin(), notices.end());
    return all;
  }
};

struct Command {
  std::vector<std::string> argv;
  bool interactive = false;  ///< on a terminal
  bool learn = false;        ///< the filter reports files, hosts and unlisted calls (Request::learn)
};

/// Whether the policy limits bandwidth or operations of disks.
bool limitsIo(const policy::Resources& resources);

/// Builds the plan for `command` under `policy` on `host`. Fails if the policy denies the command, the host lacks what
/// the policy requires, or the policy requires what this build cannot enforce.
Result<Plan> build(const policy::Policy& policy, const HostFacts& host, const Command& command);

/// Retargets a plan of the same policy and host to another command that is equally interactive: sets plan.command only.
/// Fails if the command is empty or the policy denies it.
Result<void> setCommand(const policy::Policy& policy, const HostFacts& host, const Command& command, Plan& plan);

/// The plan as text for `caisson plan`.
std::string describe(const Plan& plan);
/// The same as indented JSON.
std::string describeJson(const Plan& plan);

}  // namespace caisson::plan
