// The policy model: all settings of a sandbox, as plain values.
//
// Nothing here accesses the host. Files in TOML, JSON and YAML decode into this model (decode.h), built-in profiles are
// files of the same kind (profiles/), the JSON Schema is generated from the same field table, and plan::build() turns a
// Policy plus host facts into a plan.
//
// Defaults below are those of level `full`; `limits.h` holds the ceilings. Default is deny: an empty allowlist allows
// nothing.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace caisson::policy {

/// How strong the isolation is. none: only audit, time and output limits; process: namespaces over a read-only view of
/// the host's root; full: a private root and an allowlist of system calls.
enum class Level : std::uint8_t { none, process, full };
/// Which mechanism isolates at levels process and full.
enum class Tier : std::uint8_t { namespaces, landlock };
/// ro: read-only; rw: changes go to the host directly; overlay: changes are kept apart.
enum class WorkspaceMode : std::uint8_t { none, ro, rw, overlay };
/// none: only a private loopback; proxy: through the egress process; host: the host's network.
enum class NetworkMode : std::uint8_t { none, proxy, host };
/// clean: standard variables; listed: none; inherit: the caller's except loader variables, overridden by the standard
/// ones. Variables for proxy, credentials and offline package managers, Environment::pass and `set` come on top.
enum class EnvironmentMode : std::uint8_t { clean, listed, inherit };
/// What Syscalls::names means: the allowed calls, or calls removed from the built-in allowlist.
enum class SyscallMode : std::uint8_t { allowlist, denylist };
/// Which ceilings bind a policy: those of its level, or those of `dev` (limits.h).
enum class CeilingSet : std::uint8_t { standard, dev };
/// hard: refuse to run where disk limits can only be watched, not enforced by the kernel.
enum class QuotaClass : std::uint8_t { any, hard };
/// Where an overlay keeps its changes. automatic: memory since Linux 6.6, else disk; prefer_disk: disk where
/// CAISSON_HOME can hold an overlay.
enum class OverlayStore : std::uint8_t { automatic, memory, disk, prefer_disk };
/// Who the payload is inside. root: uid 0 of the sandbox's user namespace, without capabilities.
enum class InsideUser : std::uint8_t { sandbox, root };
/// Who creates the namespaces and mounts the root. Others than caisson are OCI runtimes, started with a bundle that is
/// made from the same plan.
enum class Runtime : std::uint8_t { caisson, runc, crun, runsc };
/// automatic: "auto" in files.
enum class Toolchains : std::uint8_t { none, automatic };

/// The highest number of a descriptor that a policy can pass to the payload.
inline constexpr int kMaxPassedDescriptor = 63;

inline constexpr std::uint64_t kKiB = 1024;
inline constexpr std::uint64_t kMiB = 1024 * kKiB;
inline constexpr std::uint64_t kGiB = 1024 * kMiB;

/// A layer that may be missing, or a weaker rung that may be taken, where the host refuses the usual one. Everything
/// that is not listed is required.
enum class OptionalLayer : std::uint8_t {
  landlock,  ///< no user namespaces: the Landlock tier instead, as with Tier::landlock
  landlock_scoping,
  time_namespace,
  cgroup,
  hostname,     ///< the caller's host name is kept
  proc_subset,  ///< a fresh /proc with processes only (subset=pid)
  proc_bound,   ///< the caller's own /proc, read-only
  runtime,      ///< what Isolation::runtime cannot enforce (docs/runtimes.md)
};

struct Isolation {
  Level level = Level::full;
  Tier tier = Tier::namespaces;  ///< `landlock` is the weaker tier without namespaces; never chosen automatically
  std::vector<OptionalLayer> may_be_missing{OptionalLayer::landlock_scoping, OptionalLayer::time_namespace,
                                            OptionalLayer::cgroup, OptionalLayer::hostname};
  std::string hostname = "sandbox";
  std::string apparmor_profile;  ///< applied if set
  std::string selinux_label;     ///< applied if set
  bool self_test = true;         ///< the check from inside before the payload starts
  InsideUser user = InsideUser::sandbox;
  Runtime runtime = Runtime::caisson;
  bool separate_user = false;  ///< an ordinary caller's payload gets a subordinate id where the host can give one
};

struct Workspace {
  std::string path;  ///< host directory; empty: the caller's current directory
  /// The directory around it that an operator opened to models or tokens, canonical: its files are judged from there
  /// (host/enclosing_search.h). Set by the server, and no key of a policy; empty: none.
  std::string around;
  WorkspaceMode mode = WorkspaceMode::overlay;
  bool same_path = false;               ///< shown at its own path instead of /workspace
  bool show_secrets = false;            ///< hide no secret file (secret_files.h)
  std::vector<std::string> show_files;  ///< inside paths of secret files that are shown
  bool allow_exec_config = false;       ///< in `rw`: do not protect files that the host would execute
  /// Patterns added to the table of files that the host would execute (protected_files.h).
  std::vector<std::string> protected_files;
  /// Patterns added to the table of files that a model may commit without naming them (ordinary_files.h).
  std::vector<std::string> committable_files;
};

/// What the payload may do in a tmpfs.
enum class TmpfsAccess : std::uint8_t {
  rw,
  wo,  ///< create files and write to them; not read, rename or remove them
  ro,  ///< read only
};

/// Where a size-limited directory is kept.
enum class DirectoryStore : std::uint8_t {
  memory,       ///< a tmpfs: what is in it counts as memory
  disk,         ///< below CAISSON_HOME; refused where that cannot hold it
  prefer_disk,  ///< as `disk`, but in memory, with a warning, where CAISSON_HOME cannot hold it
};

/// A size-limited directory of the sandbox; the key is called tmpfs since the default is one.
struct Tmpfs {
  std::string path;
  std::uint64_t size = 16 * kMiB;
  std::uint64_t inodes = 16384;
  bool exec = false;  ///< programs in it can be executed
  TmpfsAccess access = TmpfsAccess::rw;
  DirectoryStore store = DirectoryStore::memory;
  /// What is in it outlives the sandbox: for others of the same workspace ("workspace"), or for all policies that give
  /// the same name. Empty: removed at the end.
  std::string cache;

  bool operator==(const Tmpfs&) const = default;
};

struct Filesystem {
  std::string root = "host";  ///< "host": the host's system directories; else a directory or an image
  Workspace workspace;
  std::vector<std::string> read_only;   ///< host paths shown read-only at the same path
  std::vector<std::string> read_write;  ///< host paths shown writable at the same path
  std::vector<std::string> denied;      ///< inside paths; override everything above
  std::vector<Tmpfs> tmpfs{
      {"/tmp", 100 * kMiB, 65536, false},
      {"/var/tmp", 50 * kMiB, 32768, false},
      {"/home/sandbox", 64 * kMiB, 32768, false},
      {"/run", 16 * kMiB, 8192, false},
  };
  std::optional<std::uint64_t> max_file_size;   ///< bytes of one file (RLIMIT_FSIZE)
  std::optional<std::uint64_t> max_total_size;  ///< bytes written to workspace, read_write paths and tmpfs on disk
  std::optional<std::uint64_t> max_inodes;      ///< files and directories made in the workspace and in read_write paths
  QuotaClass quota_class = QuotaClass::any;
  OverlayStore overlay_store = OverlayStore::automatic;
  bool workspace_exec = true;                ///< false: the workspace is noexec
  Toolchains toolchains = Toolchains::none;  ///< automatic: those in the caller's home that PATH names are shown
};

struct Process {
  std::uint64_t max_processes = 100;  ///< with threads, unless resources.threads is set
  bool allow_fork = true;
  bool allow_exec = true;                                       ///< false: only the first exec
  std::optional<std::vector<std::string>> allowed_executables;  ///< unset: any; empty: none
  std::vector<std::string> blocked_executables;
  std::vector<std::string>
      executable_directories;                 ///< with lists: writable directories where programs may be built and run
  bool isolate_commands = false;              ///< sessions: a Landlock domain per command
  std::vector<std::string> pass_descriptors;  ///< further descriptors of the caller, by number; runs only
};

/// A secret that the egress adds to requests to one host, so that the program never has it (credential.h).
struct Credential {
  std::string name;  ///< used in records; empty: the host without its port
  std::string host;  ///< "api.example.org" or "api.example.org:8443"
  std::string header = "Authorization";
  std::string value = "Bearer {secret}";  ///< `{secret}` is replaced by the secret
  std::string secret_env, secret_file;    ///< the source of the secret: one of the two
  std::string env;                        ///< a variable that holds a placeholder inside
  std::string ca_file;                    ///< authorities trusted for the host; empty: the system's

  bool operator==(const Credential&) const = default;
};

struct Network {
  NetworkMode mode = NetworkMode::none;
  std::vector<std::string> allowed_hosts;
  std::vector<std::string> denied_hosts;
  std::vector<std::string> private_hosts;                ///< exceptions from the blocked ranges, set by an owner
  std::vector<std::string> allowed_ports{"80", "443"};   ///< numbers or ranges "8000-8010"
  std::vector<std::string> denied_ports;                 ///< the narrowest entry of both lists wins
  std::vector<std::string> exposed_ports{"1024-65535"};  ///< of a session; may be exposed on the host's loopback
  std::vector<std::string> host_ports;                   ///< of the host's loopback; reachable inside
  std::vector<std::string> published_ports;              ///< of the sandbox; reachable at the host's loopback
  std::uint64_t max_connections = 64;                    ///< open at the same time
  std::optional<std::uint64_t> max_bytes;                ///< both directions together
  double idle_seconds = 300;                             ///< closes a connection without traffic
  bool allow_missing_server_name = false;                ///< TLS hellos without a host name
  bool allow_encrypted_hello = false;                    ///< TLS hellos with an encrypted host name
  std::uint64_t dns_queries_per_minute = 120;            ///< that are sent to the servers
  std::vector<std::string> dns_servers;                  ///< addresses; empty: the host's
  std::string upstream_proxy;  ///< "http://host:port": all connections go through it; empty: none
  std::vector<Credential> credentials;
};

struct Resources {
  std::optional<double> cpu_seconds;        ///< CPU time of the whole tree
  double cpus = 1.0;                        ///< share of CPUs; kAllCpus
  std::vector<std::uint32_t> cpu_affinity;  ///< CPU numbers; empty: any
  std::uint64_t memory = 512 * kMiB;        ///< bytes, or a share of the host's (units.h)
  std::uint64_t memory_reservation = 0;     ///< bytes protected from reclaim
  std::uint64_t swap = 0;                   ///< bytes on top of `memory`
  std::uint64_t open_files = 1024;          ///< descriptors of one process
  std::optional<std::uint64_t> threads;     ///< beside the first one of each process
  std::optional<std::uint64_t> io_read_bytes_per_second, io_write_bytes_per_second;
  std::optional<std::uint64_t> io_read_operations_per_second, io_write_operations_per_second;
  std::optional<double> wall_seconds;   ///< unset: see effectiveWallSeconds(); "none": kNoTimeLimit
  std::optional<std::uint64_t> output;  ///< bytes captured of each stream; unset: the level's default
  std::uint64_t stack = 8 * kMiB;       ///< of one thread
  CeilingSet ceilings = CeilingSet::standard;
  double time_quantum_seconds = 0;  ///< results are delayed to multiples of this
};

struct Syscalls {
  SyscallMode mode = SyscallMode::allowlist;
  std::optional<std::vector<std::string>>
      names;                       ///< unset: the built-in allowlist; with denylist: built-in minus these
  std::vector<std::string> allow;  ///< added to the built-in allowlist; a widening
  // Severity of a blocked call. Unset: the built-in table (rules/severity.h); calls in neither list are low.
  std::optional<std::vector<std::string>> critical;  ///< one attempt kills the sandbox
  std::optional<std::vector<std::string>> high;      ///< `high_limit` attempts within `high_window_seconds` kill it
  std::uint64_t high_limit = 10;                     ///< see `high`
  double high_window_seconds = 60;
  std::string oci_profile;  ///< path of a seccomp profile in OCI form; only narrows the filter
};

struct Environment {
  EnvironmentMode mode = EnvironmentMode::clean;
  std::vector<std::string> pass;           ///< names taken from the caller
  std::map<std::string, std::string> set;  ///< names with values
};

struct CommandRules {
  std::uint64_t max_length = 2 * kMiB;                       ///< bytes of the command line
  std::optional<std::vector<std::string>> allowed_patterns;  ///< a command must match one; unset: any
  std::vector<std::string> blocked_patterns;                 ///< a command must match none
};

struct Approvals {
  std::vector<std::string> required;  ///< words: an owner must approve "policy:WORD" (approval/what.h) before a run
};

struct Audit {
  bool enabled = true;     ///< record runs in the audit log
  bool lifecycle = false;  ///< record an event for each state of a run
  bool processes = false;  ///< record processes that are created and signals between them
};

/// A key that a file or a flag made wider than what it started from. Shown by `caisson policy explain`.
struct Widening {
  std::string key;
  std::string from, to;

  bool operator==(const Widening&) const = default;
};

struct Policy {
  std::string name = "bash";
  std::string description;
  std::string working_directory;  ///< inside, or relative to the workspace; empty: the workspace itself
  Isolation isolation;
  Filesystem filesystem;
  Process process;
  Network network;
  Resources resources;
  Syscalls syscalls;
  Environment environment;
  CommandRules commands;
  Approvals approvals;
  Audit audit;
  /// Keys that a person set with flags of the command line: ceilings do not bind them. Not a setting, so not in files.
  std::vector<std::string> typed;
  /// The kind of use, each with its own caches: "run", "session", "agent", "mcp", or "token-ID" over HTTP. Chosen by
  /// the program that makes the sandbox. Not a setting, so not in files.
  std::string use = "run";
  std::vector<Widening> widenings;  ///< how this policy was derived; not a setting, so not in files or comparisons
};

}  // namespace caisson::policy
