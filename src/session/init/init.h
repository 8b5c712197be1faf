// pid 1 of a session: a separate program without a C library, so that an idle session costs a few pages.
//
// Commands must share one Landlock domain (siblings could neither see nor signal each other), and a domain can't be
// left. So a second thread enters the domain and spawns the commands; when the workspace is remounted, while nothing
// runs, that thread exits and the first one, which is in no domain, starts another. Both are pid 1 to the kernel: no
// signal from inside reaches them, and none is queued, since they block SIGCHLD only.
//
// It holds the sandbox's namespaces, spawns commands for the supervisor, and reaps. It has no capabilities, no
// environment and no host file except a locked one, cannot be traced or read by processes it spawns, and never waits
// for a child: an older command of the same user can stop a newborn, but not pid 1.
#pragma once

#include <cstdint>

#include "isolation/block.h"
#include "isolation/child.h"
#include "isolation/freestanding.h"
#include "session/init/init_protocol.h"
#include "sys/kernel_abi.h"
#include "sys/raw_syscall.h"

namespace caisson::session {

using sys::raw;

inline constexpr int kMaxCommands = 128;

struct SpawnedCommand {
  bool used;
  std::uint32_t number;
  int pid;
  bool exited;      ///< the reply was not sent yet
  InitReply reply;  ///< for `exited`
};

/// A command between clone and exec. One at a time: it shares memory and descriptors with pid 1 until then.
struct Newborn {
  bool pending;
  int pid;
  std::int32_t tid;              ///< the kernel sets it to 0 when the newborn has exec'd or died
  std::uint64_t address, bytes;  ///< of its mapped block
  int descriptors[kSpawnDescriptors + kMaxCgroups + 1];  ///< open until then: as in the request, and a terminal
  isolation::Listening listening;
};

struct State {
  SpawnedCommand commands[kMaxCommands];
  int command_bound;  ///< all entries from here on are free
  Newborn newborn;
  int signals;  ///< a signalfd for SIGCHLD
  int queued_descriptors[kSpawnDescriptors + kMaxCgroups];
  int queued_count;
  InitRequest queued;  ///< a spawn that waits for the current newborn
  bool has_queued;
  InitRequest domain;  ///< the last `enter`
  int domain_block;    ///< its descriptor: the block with Landlock rules
  bool pausing;        ///< the spawning thread is about to exit
};

/// Sends a reply. Returns 0, also if the supervisor is gone; EAGAIN: the socket is full, retry later; another errno
/// (ETOOMANYREFS, EBADF): the descriptor could not be sent, and the supervisor got that error in the reply.
int sendReply(const InitReply& reply, int descriptor = -1);

/// Maps the block of a request, privately, at the address for which it was compiled, and returns that address; a
/// negative errno on failure.
long mapBlock(const InitRequest& request, int descriptor);

/// Denies calls on the calling thread, to it and to the commands that it spawns. For one whose block has a filter.
void guardThread(const isolation::Block& block);

// spawn.cc
/// Starts the request's command and replies `spawned`, or queues it behind a newborn; if one is queued already, the
/// reply has EAGAIN. Sets the descriptors that it takes over to -1; the caller closes the others.
void spawn(State& state, const InitRequest& request, int* descriptors, int count);
/// Releases the newborn's resources, if it has reached its exec or died, and starts a queued command.
void finishNewborn(State& state);
/// Signals the process group of a command that has not exited; if it has none yet, its first process.
void signalCommand(const State& state, std::uint32_t number, int signal);
/// Reaps every child that exited and sends `exited` for those that are commands.
void reapAll(State& state);
/// Sends the `exited` replies that were not sent yet, as far as the socket has room.
void sendExits(State& state);

}  // namespace caisson::session
