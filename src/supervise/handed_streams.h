// Standard streams that the payload gets as the caller's own open files instead of pipes of ours.
//
// So a program behaves as without a sandbox: what it does not read stays unread for the next program, output is neither
// copied nor cut, and write errors and SIGPIPE reach it. The payload gains what the descriptor gives and nothing else:
// its Landlock domain keeps a read-only file from being reopened for writing.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "caisson/run.h"

namespace caisson::supervise {

struct HandedStreams {
  bool stream[3] = {false, false, false};
};

/// Whether the payload may have this descriptor: files, pipes, connected UNIX stream sockets, and the devices null,
/// zero, full, random and urandom. A directory would lead out of the sandbox's root, an Internet socket could be
/// connected to another address from the host's network, and a terminal could be typed into.
bool canHandOver(int descriptor);

/// The Landlock rights with which a payload may reopen a file that it got as this descriptor: those it was opened with.
/// 0 where it is no regular file.
std::uint64_t reopenRights(int descriptor);

/// Whether the payload gets this output of the caller's. `other_user`: the payload has another kernel uid than the
/// caller; it could not open /dev/stdout then if that is a file, and gets a pipe of ours instead.
bool handsOutputOver(int descriptor, bool other_user);

HandedStreams handedStreams(const Request& request, bool other_user);

/// Makes an anonymous pipe of the caller's the payload's, so that it can open /dev/stdin or /dev/stdout.
void giveTo(int descriptor, uid_t uid, gid_t gid);
/// The same for a caller that may not change owners. Other users cannot reach an anonymous pipe, whatever its mode.
void openToAll(int descriptor);

}  // namespace caisson::supervise
