// pid 1 of a session: a separate program without a C library, so that an idle session costs a few pages.
//
// Commands must share one Landlock domain (siblings could neither see nor signal each other), and a domain can't be
// left. So a second thread enters the domain and spawns the commands; when the workspace is remounted, while nothing
// runs, that thread exits and the first one, which is in no domain, starts another. Both are pid 1 to the kernel: no
// signal from inside reaches them.
//
// It holds the sandbox's namespaces, spawns commands for the supervisor, and reaps. It has no capabilities, no
// environment and no host file except a locked one, cannot be traced or read by processes it spawns, and never waits
// for a child: an older command of the same user can stop a newborn, but not pid 1.
#pragma once

#include <cstdint>

#include "isolation/block.h"
#include "isolation/child.h"
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
  std::int32_t tid;  ///< the kernel clears it when the newborn has exec'd or died
  std::uint64_t address, bytes;
  int descriptors[kSpawnDescriptors + kMaxCgroups + 1];  ///< open until then: as in the request, and a terminal
  isolation::Listening listening;
};

struct State {
  SpawnedCommand commands[kMaxCommands];
  int command_bound;  ///< all entries from here on are free
  Newborn newborn;
  int signals;
  int queued_descriptors[kSpawnDescriptors + kMaxCgroups];
  int queued_count;
  InitRequest queued;  ///< a spawn that waits for the current newborn
  bool has_queued;
  InitRequest domain;  ///< the last `enter`
  int domain_block;
  bool pausing;
};

/// Sends a reply. Returns 0; EAGAIN: the socket is full, retry later; ETOOMANYREFS: the descriptor could not be sent,
/// and the supervisor got that error in the reply.
int sendReply(const InitReply& reply, int descriptor = -1);

/// Maps the block of a request at the address for which it was compiled; a negative errno on failure.
long mapBlock(const InitRequest& request, int descriptor);

/// clone(2) for a child that starts at `entry` on a separate stack (runtime.cc). A negative errno on failure.
extern "C" long cloneOnStack(unsigned long flags, void* stack_top, std::int32_t* child_tid, void (*entry)());
/// The same by clone3(2); the arguments name the stack.
extern "C" long clone3OnStack(const sys::CloneArgs* arguments, unsigned long size, void (*entry)());

// spawn.cc
/// Starts the request's command, or queues it behind a newborn. Takes over the descriptors.
void spawn(State& state, const InitRequest& request, int* descriptors, int count);
/// Releases the newborn's resources, if it has reached its exec or died.
void finishNewborn(State& state);
/// Signals the process group of a command, if it has not been reaped.
void signalCommand(const State& state, std::uint32_t number, int signal);
/// Reaps every child that exited and sends the replies.
void reapAll(State& state);
/// Sends the replies for which the socket had no room.
void sendExits(State& state);

}  // namespace caisson::session
