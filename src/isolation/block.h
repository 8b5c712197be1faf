// The flat data that the child of a launch needs: one mapping, plain data, pointers only into itself.
//
// The parent compiles a plan into a Block before clone. The child applies it with raw system calls: no allocation, no
// locks, no libc. pid 1 keeps only this mapping and a few pages of code when it unmaps the rest of the
// inherited address space.
#pragma once

#include <linux/filter.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>

namespace caisson::isolation {

enum class StepKind : std::uint8_t {
  make_directory,
  make_symlink,
  make_file,
  bind,
  tmpfs,
  proc,
  devpts,
  overlay,
  mask,
  cover_file,
  root_layer,
  mount_root,
  read_only_root,
  move_root,
  kernel_quota,
};

enum StepFlag : std::uint32_t {
  kWritable = 1U << 0,
  kExecutable = 1U << 1,
  kDevices = 1U << 2,
  kOptional = 1U << 3,          ///< skip the step if its source or target is absent (symlink: if it cannot be made)
  kInside = 1U << 4,            ///< `source` is a path of the new root
  kCanonical = 1U << 5,         ///< `source` was resolved before: a link in it now is an error
  kOnDisk = 1U << 6,            ///< tmpfs, overlay: in a directory on disk instead of memory
  kAbsentRefuse = 1U << 7,      ///< mask: an absent target is an error
  kAbsentCreate = 1U << 8,      ///< mask: create an absent target
  kOurs = 1U << 9,              ///< the target is in a tree that only we have written: its path cannot contain a link
  kDirectory = 1U << 10,        ///< the source is a directory
  kRefuseLinks = 1U << 12,      ///< mask: a link in the target's path is an error, else the step is skipped
  kFile = 1U << 11,             ///< the source is a file
  kMaskOthers = 1U << 15,       ///< proc: mask entries that are not in `names`
  kReadOnlyOverlay = 1U << 14,  ///< overlay without an upper layer
  kMayBeSubset = 1U << 16,      ///< proc: with processes only, if the kernel refuses a whole one
  kMayBeBound = 1U << 17,       ///< proc: or the caller's
  kLayeredRoot = 1U << 18,      ///< tmpfs "": the root that mount_root replaces, with room for its layers
  kRootChanges = 1U << 19,      ///< tmpfs: the changes of that root
  kMaskInMemory = 1U << 20,     ///< overlay on disk: the layer that hides names is in memory
  kKept = 1U << 13,             ///< an overlay whose store outlives this sandbox: masks may already exist
};

/// A file that the parent keeps open, so that its numbers stay its own; inode 0: none. The child cannot mount from the
/// parent's descriptor, which belongs to another mount namespace: it opens the path again and compares.
struct ExpectedFile {
  std::uint64_t device, inode;
};

struct FlatStep {
  StepKind kind;
  std::uint32_t flags;
  const char* source;           ///< host path, link target, file content or name of a quota; tmpfs: set by the launch
  const char* target;           ///< relative to the new root, no leading slash; "" is the root itself
  const char* const* names;     ///< null-terminated: whiteouts of an overlay; visible entries of proc
  const char* const* replaced;  ///< null-terminated: pairs of name and content, for an overlay
  std::uint32_t length;         ///< of a file's content
  mode_t mode;
  const char* size_text;               ///< decimal bytes, for fsconfig; devpts: maximum ptys, or null; quota: its value
  const char* inode_text;              ///< decimal number of inodes
  const char* lower_names;             ///< overlay: its lower directories in the store, uppermost first
  const char *upper_name, *work_name;  ///< overlay: its upper and work directory in the store
  int mount_fd;                        ///< a detached mount that the parent prepared for `source`, or -1
  ExpectedFile expected;               ///< what `source` is, if the parent keeps it open
};

/// A Landlock rule; an optional one is skipped if its path cannot be opened.
struct FlatRule {
  const char* path;
  std::uint64_t access;
  bool optional;
  ExpectedFile expected;
};

struct FlatLimit {
  int resource;
  std::uint64_t value;
};

struct ExecArguments {
  const char* const* argv;
  const char* const* envp;
  const char* const* candidates;  ///< null-terminated: full paths to try for the program, in PATH order
  const char* working_directory;
  const char* apparmor_profile;  ///< "exec NAME", as written to /proc/self/attr, or null
  const char* selinux_label;     ///< or null
};

/// A descriptor of the caller that the payload gets as `number`.
struct FlatDescriptor {
  int number, source;
  std::uint64_t reopen_rights;  ///< Landlock rights to a regular file
};

/// Passed descriptors get numbers up to this one; pid 1 keeps its own above.
inline constexpr int kMaxPassed = 63;

/// A program that replaces the built-in pid 1 and starts payloads on request (sessions).
struct InitProgram {
  int program;  ///< executed with every layer except the payload's own; -1: none
  const char* const* argv;
  int descriptor;  ///< it gets the control socket as 3 and this one as 4
};

/// Netlink messages, and how many acknowledgements the kernel sends.
struct FlatBatch {
  const std::uint8_t* bytes;
  std::uint32_t size, acknowledged;
};

/// The sandbox's connection to its egress, if it has one (egress_sockets.cc).
struct FlatEgress {
  bool on;                                                ///< there is an egress
  bool use_filter;                                        ///< try the packet filter; else one listener per allowed port
  bool too_many_ports;                                    ///< for one listener per port
  int link;                                               ///< to the egress process
  FlatBatch route4, route6, filter, log, rules4, rules6;  ///< built by netlink.h
  const std::uint16_t* ports;
  std::uint32_t port_count;
  std::uint16_t proxy_port, capture_port, dns_port;
};

inline constexpr std::size_t kMaxHostPorts = 32;
inline constexpr std::size_t kMaxEgressPorts = 64;
inline constexpr std::size_t kMaxEgressSockets = kMaxEgressPorts + 5;

/// Sent with the sockets over FlatEgress::link: proxy, DNS, DNS over TCP, the log if there is one, then listeners for
/// captured connections.
struct EgressHandOver {
  std::uint32_t redirected, has_log, count;  ///< flags: the packet filter is in force, a log is sent; number of sockets
};

/// What to apply, in the order of execution.
struct Block {
  std::uint64_t mapping_bytes;  ///< of the whole mapping

  // namespaces and identity
  bool own_user_namespace, parent_writes_maps, change_user, own_mounts, own_root, own_network, loopback, own_uts,
      own_time, require_time, may_keep_hostname;
  bool open_sources_first;  ///< before the change of user: the payload's may not reach the caller's directories
  bool subreaper;           ///< without a pid namespace: adopt the payload's orphans here
  uid_t inside_uid;
  gid_t inside_gid;
  const char* uid_map;
  const char* gid_map;
  const char* hostname;

  bool hide_init, close_descriptors, new_session, new_keyring, hide_processes, guard_links;  ///< plan::Hardening

  bool raise_descriptor_limit;  ///< only if a limit for the payload follows

  const FlatStep* steps;
  std::uint32_t step_count;

  FlatEgress egress;
  const std::uint16_t* host_ports;  ///< listeners inside for ports of the host (host_ports.cc)
  std::uint32_t host_port_count;

  // Landlock
  int landlock_abi;
  std::uint64_t handled_fs, handled_net, scoped;
  const FlatRule* rules;
  std::uint32_t rule_count;

  std::uint64_t stream_rights[3];  ///< Landlock rights to files that are standard streams

  const FlatLimit* limits;
  std::uint32_t limit_count;
  bool few_processes;            ///< the process limit is so low that one more of ours would matter
  const std::uint8_t* affinity;  ///< cpu mask bytes, or null
  std::uint32_t affinity_bytes;
  std::uint32_t affinity_count;  ///< how many of them to use, if not required
  bool affinity_required;        ///< use exactly these

  bool no_new_privileges, drop_capabilities, self_test, network_none;
  std::uint64_t kept_capabilities;  ///< bit mask of those that are not dropped
  bool root_writable;               ///< the self-test writes elsewhere
  bool landlock_is_the_wall;        ///< the root is a view of the host's: the self-test checks whether it can be listed
  sock_fprog filter;
  bool has_filter;
  bool listen;  ///< the supervisor answers the denials that the filter marks, so it sees them
  bool single_exec;
  std::uint32_t exec_token_first, exec_token_second;  ///< plan::ExecToken, with single_exec

  ExecArguments exec;

  bool own_cgroup_namespace;  ///< made inside the sandbox's cgroup, so that this is its root

  // descriptors in the child
  int control;         ///< SOCK_SEQPACKET to the supervisor
  int supervisor_end;  ///< the inherited other end: while it is open here, the supervisor's death goes unnoticed
  int stdio[3];        ///< descriptors that become 0, 1, 2 of the payload
  FlatDescriptor passed[kMaxPassed - 2];
  std::uint32_t passed_count;
  bool terminal[3];     ///< streams that use the pty instead
  bool wants_terminal;  ///< a pty of `rows` and `columns`
  std::uint16_t rows, columns;
  const char* store_path;  ///< directory for an overlay's store on disk, or null
  int store_mount;         ///< the same as a detached mount that the parent prepared, or -1

  InitProgram init_program;

  const char* supervisor_environment;  ///< its file in the caller's /proc, if that may be bound, for the self-test
  const char* children_path;           ///< file from which a subreaper reads its orphans' pids
  char* init_stack_top;
  char* payload_stack_top;
};

// --- messages on the control socket ---

inline constexpr std::uint32_t kAffinityBytes = 128;  ///< of a CPU mask: 1024 CPUs

/// `go` may carry descriptors: cgroup files that the child writes to, to enter.
inline constexpr std::size_t kMaxCgroupEntries = 8;

enum class MessageKind : std::uint32_t {
  go,           ///< to pid 1: continue. At the end of the set-up: cgroups and audit record are made
  prepared,     ///< from pid 1: the sandbox is built, the payload not started
  started,      ///< from pid 1: the payload runs, with the filter's listener
  running,      ///< the same without a listener
  failure,      ///< from pid 1 or the payload's process: the launch failed
  finished,     ///< from pid 1: the payload has exited
  signal,       ///< to pid 1: send a signal to the payload
  measure,      ///< to pid 1: count the memory of System V objects
  measured,     ///< the reply
  host_ports,   ///< listeners inside, as descriptors
  make_socket,  ///< request for a TCP socket
  socket        ///< the reply, with a descriptor or `error`
};

/// Which /proc a sandbox got; see plan::MountProc.
enum class ProcRung : std::uint8_t { fresh, subset, bound };

inline constexpr std::uint8_t kFetch = 1U << 7;  ///< in Message::descriptors: see Message::to_fetch
/// Descriptors in `prepared`: the overlay's upper directory, the pty, and size-limited directories up to this many.
inline constexpr std::uint32_t kMaxSized = 12;
inline constexpr std::size_t kCallBytes = 40;
inline constexpr std::size_t kObjectBytes = 400;

/// A fixed record for all messages; unused fields are 0.
struct Message {
  MessageKind kind;
  /// In `failure` and `socket`: an errno. In `started`: 0 with the filter's listener; an errno if the kernel provided
  /// none; negative if it could not be sent.
  std::int32_t error;
  std::int32_t wait_status;          ///< in `finished`: of the payload
  std::int32_t signal;               ///< in `signal`: to send to the payload
  std::int32_t family;               ///< in `make_socket`: AF_INET or AF_INET6
  std::uint32_t request;             ///< in `make_socket` and `socket`: the number of the request
  std::int32_t listener;             ///< in `started` of a session: descriptor of pid 1 to fetch; negative: none
  std::uint32_t listeners_per_port;  ///< in `host_ports`: 1, or 2 with IPv6
  bool time_namespace;               ///< in `prepared`: there is one
  ProcRung proc;                     ///< in `prepared`
  std::uint8_t stage;                ///< caisson::Stage
  std::uint8_t code;                 ///< caisson::ErrorCode
  std::uint8_t descriptors;          ///< sent with it: bit 0: the overlay's upper directory, bit 1: the pty master
  std::int32_t to_fetch[2];     ///< in `prepared` with bit 7 of `descriptors`: fetch these descriptors of pid 1 instead
  std::int32_t quota_error;     ///< in `prepared`: why some kernel quotas could not be written; 0: all were
  std::int32_t hostname_error;  ///< in `prepared`: why the caller's host name was kept; 0: it was set
  std::uint32_t sized;          ///< in `prepared`: bit mask of the plan's tmpfs steps that follow as descriptors
  std::uint64_t ipc_bytes;      ///< in `measured`: memory of System V objects, which belongs to no process
  bool alone;                   ///< in `finished`: no process is left but pid 1, and `used` is valid
  bool tasks_full;  ///< in `finished`: the payload failed, and the process limit left no room when it exited
  rusage used[2];   ///< of pid 1 itself, and of the children it waited for
  char call[kCallBytes];
  char object[kObjectBytes];
};

}  // namespace caisson::isolation
