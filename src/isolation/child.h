// The child's side of a launch: shared helpers for the files that apply one facility each.
//
// Rules for everything below: raw system calls only, no allocation, no libc state. A step that fails
// reports a fixed record and ends the process: nothing goes on half protected.
#pragma once

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

inline void copyText(char* to, std::size_t room, const char* from) {
  std::size_t n = 0;
  for (; from != nullptr && from[n] != 0 && n + 1 < room; ++n) to[n] = from[n];
  to[n] = 0;
}

inline void closeFd(int fd) {
  if (fd >= 0) raw(SYS_close, fd);
}

/// Reports what failed and ends this process. `error` is positive.
[[noreturn]] void reportAndExit(const Block& block, Stage stage, const char* call, const char* object, long error);

/// `result` of a system call, or the end of this process if it failed.
inline long must(const Block& block, Stage stage, const char* call, const char* object, long result) {
  if (result < 0) reportAndExit(block, stage, call, object, -result);
  return result;
}

/// Opens `path` below `root_fd` without following any link (openat2, or a walk by hand where that is missing).
/// Returns a descriptor or a negative errno.
long openBeneath(int root_fd, const char* path, int flags);

inline constexpr std::size_t kMaxSent = kMaxEgressSockets > 2 + kMaxSized ? kMaxEgressSockets : 2 + kMaxSized;
/// Sends a record with up to kMaxSent descriptors, in one piece. Returns a count or a negative errno.
long sendRecord(int socket, const void* record, std::size_t size, const int* descriptors, std::size_t count);
inline long sendMessage(int control, const Message& message, const int* descriptors, std::size_t count) {
  return sendRecord(control, &message, sizeof(message), descriptors, count);
}

// One facility each; all end the process on failure.
void writeIdMaps(const Block& block);
void becomeInsideUser(const Block& block);
/// `socket`: one of the sandbox's own network namespace.
void bringUpLoopback(const Block& block, int socket);
/// Routes everything to lo, opens the listeners and hands them to the egress process. In the network namespace.
void openEgress(const Block& block);
/// What the supervisor watches of a tree.
struct BuiltTree {
  int upper = -1;                ///< the overlay's upper directory, or -1 when the plan has none
  int sized[kMaxSized] = {};     ///< size-limited directories
  std::uint32_t sized_mask = 0;  ///< which tmpfs steps they are, the lowest bit being the first
  int quota_error = 0;           ///< why the kernel quotas could not all be written; 0: they are
};
/// Leaves the process inside the new root.
BuiltTree buildTree(const Block& block, Helper& helper);
/// Whether the payload will have a time namespace; ends the process when the plan requires one.
bool enterTimeNamespace(const Block& block);
/// Opens a pty in the sandbox's own devpts; returns the slave, stores the master.
int openTerminal(const Block& block, int* master);
void restrictWithLandlock(const Block& block);
/// All five sets, for a process that goes on to exec; the other for one that never does.
void dropCapabilities(const Block& block);
void dropOwnCapabilities(const Block& block);
bool hasAnyCapability();
/// How the filter was installed, in the memory that the payload's process shares with pid 1 until its exec.
struct Listening {
  int descriptor = -1;  ///< of the filter's notifications; pid 1 has it too, since they share their descriptors
  int error = 0;        ///< why there is none
};
Listening installFilter(const Block& block);
/// Passes it on to the supervisor and closes it.
void handOverListener(const Block& block, const Listening& listening);
void selfTest(const Block& block);
/// Makes no call that anybody is asked about: nobody listens before the program runs.
void selfTestOfFilter(const Block& block);

/// Steps that a caller adds to becomePayload(); each may be null.
struct PayloadHooks {
  void (*before_filter)(const Block& block) = nullptr;
  void (*after_filter)(const Block& block, const Listening& listening) = nullptr;  ///< may only write
};

/// Runs as the payload's process: applies the last layers and executes the program. Never returns.
/// Not before `helper` is through.
[[noreturn]] void becomePayload(const Block& block, const Helper& helper, int terminal, Listening& listening,
                                const PayloadHooks& hooks = {});

/// Gives up all memory but its own code and the block, then reaps, forwards signals and reports the payload's end.
[[noreturn]] void becomeInit(const Block& block, int payload_pid, int signals);

/// Executes the init program of a session: no capability left, not dumpable, no descriptor but its own.
[[noreturn]] void becomeInitProgram(const Block& block);

/// Entry of the process that clone made.
[[noreturn]] void runChild(const Block& block);

}  // namespace caisson::isolation
