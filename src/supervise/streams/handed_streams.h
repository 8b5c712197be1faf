// Standard streams that the payload gets as the caller's own open files instead of pipes of ours.
//
// So a program behaves as without a sandbox: what it does not read stays unread for the next program, output is neither
// copied nor cut, and write errors and SIGPIPE reach it. The Landlock domain keeps a read-only file from being reopened
// for writing. Mode, times and extended attributes of a file that the caller owns can be changed through the descriptor
// (set-id bits cannot); the kernel has no way to withhold that.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "caisson/run.h"
#include "plan/plan.h"

namespace caisson::supervise {

/// A descriptor of the caller.
struct CallerStream {
  /// Whether the payload may have it: files, pipes, connected UNIX stream sockets, and the devices null, zero, full,
  /// random and urandom. A directory would lead out of the sandbox's root, an Internet socket could be connected to
  /// another address from the host's network, and a terminal could be typed into.
  bool can_hand_over = false;
  /// The Landlock rights with which a payload may reopen a regular file that it got: those it was opened with. 0 where
  /// it is not a regular file.
  std::uint64_t reopen_rights = 0;
  /// A regular file that the caller appends to. A payload could take O_APPEND away and overwrite what is there.
  bool appends = false;
  int flags = 0;  ///< as F_GETFL returns them

  /// Whether the payload gets it as an output, instead of a pipe of ours. `other_user`: the payload has another kernel
  /// uid than the caller; it could not open /dev/stdout then if that is a file.
  [[nodiscard]] bool handedAsOutput(bool other_user) const {
    return can_hand_over && !appends && (!other_user || reopen_rights == 0);
  }
};

/// Finds out what kind of file a descriptor of the caller is. A closed one cannot be handed over.
CallerStream inspectStream(int descriptor);

/// The caller's descriptors of process.pass_descriptors, each number once. One that is closed at exec is caisson's own
/// or private to the caller, and cannot be passed, nor can what inspectStream() rules out: `why_not` is set then.
std::vector<plan::PassedDescriptor> inspectPassed(const std::vector<std::string>& numbers);

struct HandedStreams {
  bool stream[3] = {false, false, false};
  std::uint64_t reopen_rights[3] = {0, 0, 0};
  int flags[3] = {0, 0, 0};  ///< of the caller's open files
};

/// Which relayed streams of the request the payload gets directly. `other_user`: as in handedAsOutput().
HandedStreams handedStreams(const Request& request, bool other_user);

/// Flags of the caller's open files, such as O_NONBLOCK, which a payload can change for everyone who shares them. The
/// destructor restores them.
class KeptFlags {
 public:
  KeptFlags() = default;
  explicit KeptFlags(const HandedStreams& handed);
  ~KeptFlags();
  KeptFlags(const KeptFlags&) = delete;
  KeptFlags& operator=(const KeptFlags&) = delete;

  /// Call it before the descriptor is handed over.
  void keep(int descriptor);

 private:
  std::vector<std::pair<int, int>> flags_;  ///< by descriptor
};

/// If the descriptor is an anonymous pipe, changes its owner to the payload's user, so that the payload can open
/// /dev/stdin or /dev/stdout.
void giveTo(int descriptor, uid_t uid, gid_t gid);
/// The same for a caller that may not change owners: gives an anonymous pipe the mode 0666. Other users cannot reach
/// it, whatever its mode.
void openToAll(int descriptor);

}  // namespace caisson::supervise
