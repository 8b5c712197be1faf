// The child's side of a launch: helpers shared by the files that apply one facility each.
//
// Rules: raw system calls only, no allocation, no libc state. A step that fails reports a fixed record and exits: the
// launch never continues with partial protection.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstddef>

#include "caisson/error.h"
#include "isolation/block.h"
#include "sys/raw_syscall.h"

namespace caisson::isolation {

class Helper;

using sys::raw;

inline std::size_t length(const char* text) {
  std::size_t n = 0;
  while (text[n] != 0) ++n;
  return n;
}

/// Copies a text with its NUL; cuts it at `room` bytes. Null counts as empty.
inline void copyText(char* to, std::size_t room, const char* from) {
  std::size_t n = 0;
  for (; from != nullptr && from[n] != 0 && n + 1 < room; ++n) to[n] = from[n];
  to[n] = 0;
}

inline void closeFd(int fd) {
  if (fd >= 0) raw(SYS_close, fd);
}

/// Reports what failed and exits. `error` is positive.
[[noreturn]] void reportAndExit(const Block& block, Stage stage, const char* call, const char* object, long error,
                                ErrorCode code = ErrorCode::other);

/// Returns `result` of a system call; reports and exits if it failed.
inline long must(const Block& block, Stage stage, const char* call, const char* object, long result,
                 ErrorCode code = ErrorCode::other) {
  if (result < 0) reportAndExit(block, stage, call, object, -result, code);
  return result;
}

/// Reports and exits if the open file is not the expected one: something else got its name since it was checked.
inline void requireSame(const Block& block, Stage stage, const char* path, int fd, const ExpectedFile& expected) {
  if (expected.inode == 0) return;
  struct stat status;
  must(block, stage, "fstat", path, raw(SYS_newfstatat, fd, "", &status, AT_EMPTY_PATH));
  if (status.st_dev == expected.device && status.st_ino == expected.inode) return;
  reportAndExit(block, stage, "open", path, ESTALE, ErrorCode::directory_replaced);
}

/// Opens `path` below `root_fd` without following any link (with openat2, or component by component if it is missing).
/// Returns a descriptor or a negative errno.
long openBeneath(int root_fd, const char* path, int flags);

inline constexpr std::size_t kMaxSent = kMaxEgressSockets > 2 + kMaxSized ? kMaxEgressSockets : 2 + kMaxSized;
/// Sends a record with up to kMaxSent descriptors in one message. Returns the number of bytes or a negative errno.
long sendRecord(int socket, const void* record, std::size_t size, const int* descriptors, std::size_t count);
/// The same, and retries for two seconds while other processes of this user have too many descriptors in flight.
long sendRecordWithRetry(int socket, const void* record, std::size_t size, const int* descriptors, std::size_t count);
inline long sendMessage(int control, const Message& message, const int* descriptors, std::size_t count) {
  return sendRecord(control, &message, sizeof(message), descriptors, count);
}

// One facility each; all exit on failure.
/// Maps the caller's own ids in a new user namespace.
void writeIdMaps(const Block& block);
/// Changes to the payload's user and group, if the plan gives it another than the caller's.
void becomeInsideUser(const Block& block);
/// `socket` must belong to the sandbox's network namespace.
void bringUpLoopback(const Block& block, int socket);
/// Routes everything to lo, redirects it with nf_tables where possible (else listens on each permitted port), and sends
/// the sockets to the egress process. Call it in the network namespace.
void openEgress(const Block& block);
/// Opens a listener on the sandbox's loopback for each port of the host and sends them to the supervisor. Call it in
/// the network namespace, before the payload exists.
void openHostPorts(const Block& block);
/// What the supervisor monitors of a tree.
struct BuiltTree {
  int upper = -1;                ///< the overlay's upper directory, or -1 without overlay
  int sized[kMaxSized] = {};     ///< size-limited directories
  std::uint32_t sized_mask = 0;  ///< bit mask of the tmpfs steps they belong to, lowest bit first
  ProcRung proc = ProcRung::fresh;
  bool protect_proc = false;  ///< it must become read-only before the payload starts
  int quota_error = 0;        ///< why some kernel quotas could not be written; 0: all were
};
/// Opens the host paths of the block's steps, with the rights of the caller, as detached mounts for buildTree().
void openSources(Block& block, Helper& helper);
/// Applies the block's steps. Afterwards the process is inside the new root, if it has one.
BuiltTree buildTree(const Block& block, Helper& helper);
/// Makes a time namespace for later children, whose clocks start at zero. Returns whether there is one; exits if the
/// plan requires one that is not available.
bool enterTimeNamespace(const Block& block);
/// Opens a pty in the sandbox's own devpts; returns the slave, stores the master.
int openTerminal(const Block& block, int* master);
/// Enters the Landlock domain of the block, if it has one. `ruleset`: gets the descriptor of its rules, which the
/// caller closes; -1: there is no domain.
void restrictWithLandlock(const Block& block, int* ruleset = nullptr);
/// Empties all capability sets, but for Block::kept_capabilities, for a process that calls exec; dropOwnCapabilities()
/// is for one that never does.
/// Without CAP_SETPCAP the bounding set stays as it is, which no_new_privs makes harmless.
void dropCapabilities(const Block& block);
/// Empties the effective, permitted and inheritable sets, but for the bits of `kept` in the first two.
void dropOwnCapabilities(const Block& block, std::uint64_t kept);
/// Whether the effective or permitted set has others than `kept`, or the inheritable one any. True also if they cannot
/// be read.
bool hasOtherCapabilities(std::uint64_t kept);
/// How the filter was installed, in memory that the payload's process shares with pid 1 until its exec.
struct Listening {
  int descriptor = -1;  ///< of the filter's notifications; valid in pid 1 too, since they share descriptors
  int error = 0;        ///< why there is none
};
/// Installs the filter, with a listener if the block wants one. If another program already has the listener of this
/// process, calls are denied without notification.
Listening installFilter(const Block& block);
/// Tells the supervisor that the payload runs, with the listener if there is one, and closes the listener. Sends
/// nothing if a listener was wanted and the launch failed before the filter. If the message cannot be sent, shuts down
/// the control socket, which ends the sandbox.
void handOverListener(const Block& block, const Listening& listening);
/// With Block::self_test: tries forbidden actions with the payload's rights, without the filter; exits if one succeeds.
void selfTest(const Block& block);
/// With Block::self_test: exits if the block has a filter and it is not in force. Makes no call that triggers a
/// notification: the supervisor does not answer before the program runs.
void selfTestOfFilter(const Block& block);

/// Steps that a caller adds to becomePayload(); each may be null.
struct PayloadHooks {
  void (*before_filter)(const Block& block) = nullptr;
  void (*after_filter)(const Block& block, const Listening& listening) = nullptr;  ///< may only call write
};

/// Runs in the payload's process: waits for `helper`, applies the last layers and executes the program. Never returns.
[[noreturn]] void becomePayload(const Block& block, const Helper& helper, int terminal, Listening& listening,
                                const PayloadHooks& hooks = {});

/// With Block::hide_init, unmaps all memory except its own code and the block. Then reaps and forwards signals until
/// the payload exits, which it reports, or the supervisor is gone; its own exit ends the sandbox.
[[noreturn]] void becomeInit(const Block& block, int payload_pid, int signals);

/// Executes the init program of a session: without capabilities, not dumpable, with only its own descriptors.
[[noreturn]] void becomeInitProgram(const Block& block);

/// Entry of the process that clone made: sets up the sandbox, then starts the payload and becomes pid 1, or executes
/// the session's init program.
[[noreturn]] void runChild(Block& block);

}  // namespace caisson::isolation
