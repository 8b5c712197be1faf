// What the child of a launch needs, flat: one mapping, plain data, pointers only into itself.
//
// The parent compiles a plan into a Block before clone. The child walks it with raw system calls: no
// allocation, no locks, no libc. pid 1 keeps only this mapping and its own few pages of code when it
// gives up the rest of the address space it inherited.
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
  read_only_root,
  kernel_quota,
};

enum StepFlag : std::uint32_t {
  kWritable = 1U << 0,
  kExecutable = 1U << 1,
  kDevices = 1U << 2,
  kOptional = 1U << 3,
  kInside = 1U << 4,
  kCanonical = 1U << 5,
  kOnDisk = 1U << 6,
  kAbsentRefuse = 1U << 7,
  kAbsentCreate = 1U << 8,
  kOurs = 1U << 9,        ///< the target lies in a tree only we have written: no link can be in its path
  kDirectory = 1U << 10,  ///< the source is known to be a directory
  kRefuseLinks = 1U << 12,
  kFile = 1U << 11,             ///< or a file
  kMaskOthers = 1U << 15,       ///< of proc: entries that are not in `names` are masked
  kReadOnlyOverlay = 1U << 14,  ///< no upper layer
  kKept = 1U << 13,             ///< an overlay whose store outlives this sandbox: masks may be there already
};

struct FlatStep {
  StepKind kind;
  std::uint32_t flags;
  const char* source;           ///< host path, link text, file content or name of a quota
  const char* target;           ///< relative to the new root, no leading slash; "" is the root itself
  const char* const* names;     ///< null-terminated: whiteouts of an overlay; entries of proc that stay
  const char* const* replaced;  ///< null-terminated: pairs of name and content, of an overlay
  std::uint32_t length;         ///< of a file's content
  mode_t mode;
  const char* size_text;  ///< decimal bytes, for fsconfig; of devpts: how many ptys, or null; of a quota: its value
  const char* inode_text;
  const char* lower_names;  ///< of an overlay: its lower directories in the store, uppermost first
  const char *upper_name, *work_name;
  int mount_fd;  ///< a detached mount the parent prepared for `source`, or -1
};

struct FlatRule {
  const char* path;
  std::uint64_t access;
  bool optional;
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
  const char* apparmor_profile;  ///< or null
};

/// A program that becomes pid 1 instead of the built-in one and starts payloads when it is asked to (sessions).
struct InitProgram {
  int program;  ///< executed with everything but the payload's layers in force; -1: none
  const char* const* argv;
  int descriptor;  ///< it gets the control socket as 3 and this one as 4
};

/// Netlink messages, and how many of them the kernel acknowledges.
struct FlatBatch {
  const std::uint8_t* bytes;
  std::uint32_t size, acknowledged;
};

/// The sandbox's way out, when it has one (egress_sockets.cc).
struct FlatEgress {
  bool on;
  bool use_filter;      ///< try the packet filter; else one listener per permitted port
  bool too_many_ports;  ///< for that
  int link;             ///< to the egress process
  FlatBatch route4, route6, filter, log, rules4, rules6;
  const std::uint16_t* ports;
  std::uint32_t port_count;
  std::uint16_t proxy_port, capture_port, dns_port;
};

inline constexpr std::size_t kMaxEgressPorts = 64;
inline constexpr std::size_t kMaxEgressSockets = kMaxEgressPorts + 5;

/// What goes with the sockets over FlatEgress::link: proxy, DNS, DNS over TCP, the log if there is one, then listeners
/// for captured connections.
struct EgressHandOver {
  std::uint32_t redirected, has_log, count;
};

/// What to apply, in the order of SPEC L4.
struct Block {
  std::uint64_t mapping_bytes;

  // namespaces and identity
  bool own_user_namespace, parent_writes_maps, change_user, own_mounts, own_root, own_network, loopback, own_uts,
      own_time, require_time;
  bool subreaper;  ///< without a pid namespace: collect the payload's orphans here
  uid_t inside_uid;
  gid_t inside_gid;
  const char* uid_map;
  const char* gid_map;
  const char* hostname;

  bool hide_init, close_descriptors, new_session, new_keyring, hide_processes, guard_links;  ///< plan::Hardening

  bool raise_descriptor_limit;  ///< only where a limit of the payload's own follows

  const FlatStep* steps;
  std::uint32_t step_count;

  FlatEgress egress;

  // Landlock
  int landlock_abi;
  std::uint64_t handled_fs, handled_net, scoped;
  const FlatRule* rules;
  std::uint32_t rule_count;

  std::uint64_t stream_rights[3];  ///< Landlock rights to files that are standard streams

  const FlatLimit* limits;
  std::uint32_t limit_count;
  bool few_processes;            ///< may be had, so that one of ours more would be felt
  const std::uint8_t* affinity;  ///< cpu mask bytes, or null
  std::uint32_t affinity_bytes;
  std::uint32_t affinity_count;  ///< how many of them, when they are an offer
  bool affinity_required;        ///< exactly these

  bool no_new_privileges, drop_capabilities, self_test, network_none;
  bool landlock_is_the_wall;  ///< the root is a view of the host's: the self-test looks whether it can be listed
  sock_fprog filter;
  bool has_filter;
  bool listen;  ///< the supervisor answers the refusals that the filter marks, and so sees them
  bool single_exec;
  std::uint32_t exec_token_first, exec_token_second;

  ExecArguments exec;

  bool own_cgroup_namespace;  ///< made inside the sandbox's own cgroup, so that this is its root

  // descriptors in the child
  int control;         ///< SOCK_SEQPACKET to the supervisor
  int supervisor_end;  ///< the other end, inherited: while it is open here, the supervisor's death goes unnoticed
  int stdio[3];        ///< what becomes 0, 1, 2 of the payload
  bool terminal[3];    ///< those that get the pty instead
  bool wants_terminal;
  std::uint16_t rows, columns;
  const char* store_path;  ///< directory for an overlay's store on disk, or null
  int store_mount;         ///< the same as a detached mount that the parent prepared, or -1

  InitProgram init_program;

  const char* children_path;  ///< where a subreaper reads its orphans' numbers
  char* init_stack_top;
  char* payload_stack_top;
};

// --- messages on the control socket ---

inline constexpr std::uint32_t kAffinityBytes = 128;

/// `go` may carry descriptors: cgroups to enter, by writing to them.
inline constexpr std::size_t kMaxCgroupEntries = 8;

enum class MessageKind : std::uint32_t {
  go,
  prepared,
  started,
  running,
  failure,
  finished,
  signal,
  resize,
  measure,
  measured
};

inline constexpr std::uint8_t kFetch = 1U << 7;
/// Descriptors in `prepared`: the overlay's upper directory, the pty, and sized directories up to this many.
inline constexpr std::uint32_t kMaxSized = 12;
inline constexpr std::size_t kCallBytes = 40;
inline constexpr std::size_t kObjectBytes = 400;

/// Fixed record: what failed in the child. Also carries the others' small numbers.
struct Message {
  MessageKind kind;
  /// Wait status, signal number, errno. In `prepared`: 1 with a time namespace. In `started`: 0 with the listener of
  /// the filter; an errno when the kernel gave none, and a negative one when it could not be handed over.
  std::int32_t value;
  std::uint8_t stage;        ///< caisson::Stage
  std::uint8_t descriptors;  ///< bit 0: overlay store, bit 1: pty master (in this order, over SCM_RIGHTS)
  std::uint16_t rows, columns;
  std::int32_t numbers[2];   ///< in `prepared` with bit 7 of `descriptors`: to be fetched by these numbers instead
  std::int32_t quota_error;  ///< in `prepared`: why the kernel quotas could not all be written; 0: they are
  std::uint32_t sized;       ///< in `prepared`: which tmpfs steps of the plan follow as descriptors, bit by bit
  std::uint64_t ipc_bytes;   ///< in `measured`: what System V objects hold that no process shows
  bool alone;                ///< in `finished`: no process is left but pid 1, and
  rusage used[2];            ///< what it used itself, and those that it waited for
  char call[kCallBytes];
  char object[kObjectBytes];
};

}  // namespace caisson::isolation
