// A plan: what the kernel will be asked to do for one run, as plain data.
//
// plan::build(policy, host, command) is pure: it reads nothing and changes nothing, so that the
// same plan can be printed (`caisson plan`), compared in tests, kept in the audit and carried out
// by isolation/. What the host looks like comes in as HostFacts; supervise/host.cc observes them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"
#include "plan/syscall_filter.h"
#include "policy/model.h"

namespace caisson::plan {

/// A host path that the policy names, as observed. `path` is canonical: no links in it.
struct HostPath {
  std::string requested;
  std::string path;
  int sys_errno = 0;  ///< why it could not be observed, or 0
  bool directory = false;
  bool regular_file = false;
  uid_t uid = 0;
  gid_t gid = 0;
};

/// Which limits a cgroup of ours can hold on this host.
struct CgroupFacts {
  std::string kind = "none";  ///< "v1", "v2"
  bool memory = false, pids = false, cpu = false, cpuset = false, io = false;
  std::string why_not;  ///< what is missing and the remedy
};

/// An entry of `process.allowed_executables`, as found.
struct Program {
  std::string entry;
  std::string path;        ///< by that name, in a directory without links; empty: not on this host
  std::string real;        ///< the file it leads to
  std::string script_for;  ///< of a script: the real path of its interpreter
  std::string multi_call;  ///< "busybox" if that is what it is, whatever it is called
  bool directory = false;  ///< stands for everything below
  bool too_large = false;  ///< a directory with more below than was looked at
};

struct ExecutableFacts {
  std::vector<Program> allowed;
  std::vector<std::string> libraries;      ///< real paths of loaders and libraries that the allowed ones need
  std::vector<std::string> blocked;        ///< real paths, every hard link of a file among them
  std::map<std::string, std::string> usr;  ///< "lib" -> "" for a directory below /usr, or what the link leads to
};

/// A file that is shown with other content.
struct ReplacedFile {
  std::string path;
  std::string content;
};

/// What a walk through the workspace found. Paths are relative to it.
struct WorkspaceScan {
  struct Protected {
    std::string path;
    bool directory = false;  ///< protected with everything below
  };
  std::vector<std::string> secrets;        ///< files and directories that usually hold secrets, sorted
  std::vector<ReplacedFile> redacted;      ///< git configurations, without their credentials
  std::vector<Protected> protected_paths;  ///< existing files that the host would execute; only for `rw`
  std::vector<std::string> unscanned;      ///< the first directories that the budget did not cover
  std::size_t unscanned_count = 0;
};

/// Ids that the host gives an ordinary caller beside its own.
struct SubordinateIds {
  uid_t uid = 0;
  gid_t gid = 0;
  std::string uid_helper, gid_helper;  ///< the programs that map them
  std::string why_not;                 ///< not empty: there are none
};

struct HostFacts {
  int kernel_major = 0;
  int kernel_minor = 0;
  int landlock_abi = 0;  ///< 0: the kernel has none, or it is switched off
  uid_t uid = 0;         ///< of the caller
  gid_t gid = 0;
  std::size_t supplementary_groups = 0;
  bool may_map_other_ids = false;  ///< root: the payload gets an unprivileged id of its own
  std::vector<std::string> homes;  ///< of the caller, canonical: from HOME and from the user database
  std::string own_state;           ///< canonical: caisson's own directory (audit log, keys, approvals), or empty
  std::vector<std::string> denied_through_links;
  std::vector<std::string> denied_matches;  ///< what denied patterns of the workspace match now, relative to it
  uid_t payload_id = 0;                     ///< what a root caller's payload becomes on the host: nobody else's
  SubordinateIds subordinate;               ///< looked for only when the policy asks for a separate user
  HostPath current_directory;
  HostPath workspace;         ///< the one the policy names, or the current directory
  WorkspaceScan scan;         ///< of the workspace
  bool mounts_below = false;  ///< file systems are mounted below the workspace: no overlay can show it
  std::vector<HostPath> read_only, read_write;
  /// Top-level names of system directories: "/bin" -> "usr/bin" for a link, "" for a directory.
  std::map<std::string, std::string> system_directories;
  std::map<std::string, std::string> etc_links;  ///< "/etc/localtime" -> "/usr/share/zoneinfo/..."
  std::map<std::string, std::string> caller_environment;
  ExecutableFacts executables;  ///< only with executable lists
  CgroupFacts cgroup;
  std::vector<dev_t> disks;  ///< that the sandbox reads from and writes to; looked for only when the policy limits I/O
  std::vector<std::uint32_t> cpus;                           ///< that this process may run on
  std::string processor;                                     ///< the first block of /proc/cpuinfo
  std::uint64_t memory = 0;                                  ///< bytes that the machine has; 0: not known
  std::string kernel_release, kernel_version;                ///< of uname
  std::uint64_t inotify_instances = 0, inotify_watches = 0;  ///< of each user; 0: not known
  bool tmpfs_user_xattrs = false;  ///< since Linux 6.6: an overlay's upper directory may be a tmpfs
};

// --- filesystem: steps in the order they are taken, targets below the new root ---

struct MakeDirectory {
  std::string target;
  mode_t mode = 0755;
};
struct MakeSymlink {
  std::string target;
  std::string to;
};
struct MakeFile {
  std::string target;
  std::string content;
  mode_t mode = 0644;
};
enum class SourceType : std::uint8_t { unknown, directory, file };

/// A host path (or, with `inside`, one of the new root) shown at `target`; the mount point is made as needed.
struct Bind {
  std::string source;
  std::string target;
  bool writable = false;
  bool executable = true;
  bool devices = false;
  bool optional = false;  ///< absent on the host: left out
  bool inside = false;
  bool canonical = false;  ///< `source` was resolved by us: any link in it now is an attack, refuse
  SourceType type = SourceType::unknown;
  bool owned = false;  ///< show files of its owner as the sandbox user's (idmapped mount, root callers only)
};
struct MountTmpfs {
  std::string target;
  std::uint64_t bytes = 0;
  std::uint64_t inodes = 0;
  mode_t mode = 0755;
  bool executable = false;
  bool optional = false;                                 ///< only over a directory that is there
  policy::TmpfsAccess access = policy::TmpfsAccess::rw;  ///< held by Landlock
};
/// A proc of the sandbox's own pid namespace. Of its top-level entries other than processes, those that are not in
/// `shown` are masked, whatever the running kernel has.
struct MountProc {
  std::string target;
  std::vector<std::string> shown;
  bool mask = true;
};
/// These in the content of a CoverFile become values of the launch: when the sandbox's clocks began, in seconds since
/// 1970; what they show at its start, in seconds; a random id in the form of a UUID.
inline constexpr std::string_view kBootTimeMark = "{boot time}";
inline constexpr std::string_view kUptimeMark = "{uptime}";
inline constexpr std::string_view kRandomIdMark = "{random id}";
/// A read-only file with this content over a file that is there; nothing where there is none.
struct CoverFile {
  std::string target;
  std::string content;
};
struct MountDevpts {
  std::string target;
  std::uint32_t most = 64;  ///< ptys; the kernel has 4096 for the whole machine. 0: no bound
};
/// `lower` below, everything written kept in a private tmpfs (or in `store` on disk), names in `whiteouts` hidden.
struct MountOverlay {
  std::string lower;
  std::string target;
  std::vector<std::string> whiteouts;
  std::vector<ReplacedFile> replaced;
  bool read_only = false;  ///< nothing can be written: `bytes` is for the layer that hides names
  std::uint64_t bytes = 0;
  std::uint64_t inodes = 0;
  bool executable = true;
  bool on_disk = false;
  bool owned = false;
  /// A session's: names in the store of what lies between the lower and the upper directory, uppermost first, and of
  /// the upper directory. Empty: the store is this run's own.
  std::vector<std::string> frozen;
  std::string upper;
};
/// An empty, unreadable thing of the same type over `target`.
struct MaskPath {
  enum class Absent : std::uint8_t { skip, refuse, create };

  std::string target;
  Absent absent = Absent::skip;  ///< what to do when nothing is there yet
  bool refuse_links = false;     ///< a link in its path is an error; else it is left alone, like an absent path
};
struct ReadOnlyRoot {};
/// A bound of the sandbox's own user namespace, in /proc/sys/user of the host's proc while that is still within reach.
struct SetKernelQuota {
  std::string name;  ///< "max_inotify_instances"
  std::uint64_t value = 0;
};

using Step = std::variant<MakeDirectory, MakeSymlink, MakeFile, Bind, MountTmpfs, MountProc, MountDevpts, MountOverlay,
                          MaskPath, CoverFile, ReadOnlyRoot, SetKernelQuota>;

/// A workspace that is written to directly, and whose files that the host would execute are protected.
struct GuardedWorkspace {
  std::string path;                   ///< on the host
  std::vector<std::string> patterns;  ///< of the policy, beside the built-in table
  std::vector<std::string> before;    ///< protected files that exist
};

/// A workspace that is searched for new secret files while the sandbox runs.
struct WatchedWorkspace {
  std::string path;                 ///< on the host
  std::string target;               ///< inside
  std::vector<std::string> hidden;  ///< names that are hidden from the beginning, relative to it
};

struct LandlockRule {
  std::string path;
  std::uint64_t access = 0;
  bool optional = false;
};

struct Landlock {
  int abi = 0;  ///< 0: not applied
  std::uint64_t handled_fs = 0;
  std::uint64_t handled_net = 0;
  std::uint64_t scoped = 0;
  std::vector<LandlockRule> rules;
};

struct ResourceLimit {
  std::string name;  ///< "nofile"
  int resource = 0;
  std::uint64_t value = 0;
};

/// Limits on what is written to disk where the kernel holds none; the supervisor watches them (class `watched` of F8).
struct DiskQuota {
  std::vector<std::string> trees;  ///< host directories and files that are written to directly
  bool upper = false;              ///< and the overlay's changes, kept on disk
  std::optional<std::uint64_t> bytes, inodes;
  /// A session's limits, of which its earlier layers use a part. For messages.
  std::optional<std::uint64_t> stated_bytes, stated_inodes;
};

/// Limits on the whole tree, held by a cgroup.
struct CgroupPlan {
  bool at_birth = false;  ///< v2: a process may start its life inside; so it is made before the sandbox, not beside
  std::optional<std::uint64_t> memory, memory_low, pids;
  std::uint64_t swap = 0;
  std::optional<double> cpus;
  std::vector<std::uint32_t> cpuset;
  std::vector<dev_t> io_disks;
  std::optional<std::uint64_t> io_rbps, io_wbps, io_riops, io_wiops;
};

/// Network mode `proxy`: the sandbox reaches the egress process and nothing else.
struct EgressPlan {
  policy::Network network;                                     ///< what the egress judges by
  std::vector<std::pair<std::uint16_t, std::uint16_t>> ports;  ///< permitted somewhere, for kernels without nf_tables
  bool use_packet_filter = true;
};

struct Namespaces {
  bool user = false, pid = false, mount = false, network = false, ipc = false, uts = false, cgroup = false,
       time = false;
};

/// Measures that every sandbox gets and no policy can switch off. They are data so that a plan shows them and so
/// that tests can take one away and watch the attack succeed.
struct Hardening {
  bool hide_init = true;          ///< pid 1 is not dumpable and gives up the memory it was cloned with
  bool close_descriptors = true;  ///< nothing inherited but 0, 1, 2
  bool new_session = true;        ///< no controlling terminal of the caller's
  bool new_keyring = true;        ///< no session keyring of the caller's
  bool hide_processes = true;     ///< hidepid on /proc
  bool guard_links = true;        ///< refuse links in paths that were resolved before
  bool report_violations = true;  ///< the supervisor sees what the filter refuses
};

struct Identity {
  uid_t inside_uid = 1000, outside_uid = 0;
  gid_t inside_gid = 1000, outside_gid = 0;
  bool parent_writes_maps = false;  ///< a root caller maps to an id that is not its own
  bool change_user = false;         ///< the payload's process starts as another user than the sandbox's
  /// Programs that write the maps, for an ordinary caller whose payload gets a subordinate id. Empty: none are needed.
  std::string uid_helper, gid_helper;
  [[nodiscard]] bool subordinate() const { return !uid_helper.empty(); }
};

struct Plan {
  policy::Level level = policy::Level::full;
  policy::Tier tier = policy::Tier::namespaces;
  Namespaces namespaces;
  Identity identity;
  Hardening hardening;
  std::string hostname;
  bool own_root = false;   ///< pivot_root into a root of our own
  bool host_view = false;  ///< that root is a read-only view of the host's, and Landlock decides what is seen of it
  bool loopback = false;
  std::optional<EgressPlan> egress;
  bool require_time_namespace = false;  ///< false: do without where the kernel has none, and say so
  std::vector<Step> steps;
  Landlock landlock;
  std::optional<SyscallFilter> syscalls;  ///< rules adapted to the policy
  bool builtin_syscalls = false;          ///< or the built-in filter as it was compiled with this program
  policy::Syscalls severities;            ///< how grave each refused call is: the policy's table
  std::vector<ResourceLimit> rlimits;
  std::optional<CgroupPlan> cgroup;
  std::uint64_t memory_bytes = 0, max_processes = 0;  ///< 0: no limit
  std::uint64_t shown_memory = 0;                     ///< what the payload is told that the machine has
  std::optional<DiskQuota> disk;
  std::optional<std::uint64_t> max_file_size;
  std::vector<std::uint32_t> cpu_affinity;
  std::uint32_t cpu_count = 0;     ///< how many of them the payload gets, when they are only an offer
  bool affinity_required = false;  ///< the policy names the processors; else they only make `nproc` tell the truth
  bool drop_capabilities = true;
  bool no_new_privileges = true;
  bool self_test = true;
  bool single_exec = false;       ///< allow_exec = false: only the first exec of the payload
  bool no_fork = false;           ///< allow_fork = false: threads, but no further process
  bool isolate_commands = false;  ///< sessions: each command in a separate Landlock domain inside the session's

  std::vector<std::string> command;
  std::vector<std::string> environment;  ///< "NAME=value"
  std::string working_directory;
  std::string apparmor_profile;

  std::optional<double> wall_seconds;
  std::optional<double> cpu_seconds;
  std::uint64_t output_bytes = 0;
  double time_quantum_seconds = 0;

  bool workspace_shown = false;
  bool workspace_overlay = false;
  bool workspace_masked = false;  ///< a layer hides denied names of the workspace, also those that appear later
  std::vector<std::string> masked_secrets;
  std::optional<GuardedWorkspace> guarded;
  std::optional<WatchedWorkspace> watched;
  std::map<std::string, std::string> layers;  ///< what this plan puts in force, by name
  std::vector<std::string> warnings;
  std::vector<std::string> notices;
};

struct Command {
  std::vector<std::string> argv;
  bool interactive = false;
};

/// Whether the policy limits bandwidth or operations of disks.
bool limitsIo(const policy::Resources& resources);

/// The plan for `command` under `policy` on `host`; an error when the host lacks what the policy requires,
/// or when the policy asks for what this build cannot enforce (never silently ignored).
Result<Plan> build(const policy::Policy& policy, const HostFacts& host, const Command& command);

/// Makes a plan that build() made of the same policy and host, for a command that is as interactive, one for `command`:
/// an error when the policy refuses it.
Result<void> setCommand(const policy::Policy& policy, const HostFacts& host, const Command& command, Plan& plan);

/// The plan as text for people, or as JSON.
std::string describe(const Plan& plan);
std::string describeJson(const Plan& plan);

}  // namespace caisson::plan
