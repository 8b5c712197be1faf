// Messages between the session supervisor and pid 1 of its sandbox, over one SOCK_SEQPACKET socket pair.
//
// pid 1 spawns and reaps; everything else (time, limits, output, audit) is the supervisor's work. Requests are fixed
// records with descriptors attached. A command reports its set-up failure on a separate socket (`report`), as an
// isolation::Message, so pid 1 never waits for a child.
#pragma once

#include <cstdint>

namespace caisson::session {

inline constexpr std::uint32_t kInitProtocol = 0x43530008;

/// Descriptor numbers that pid 1's program starts with.
inline constexpr int kControlDescriptor = 3;
inline constexpr int kAliveDescriptor = 4;  ///< a locked file: the kernel drops the lock when pid 1 exits

/// Number of descriptors of a spawn before its cgroups, and the maximum of those: one per v1 hierarchy.
inline constexpr int kSpawnDescriptors = 5;
inline constexpr int kMaxCgroups = 6;

/// The kind of a spawn's cgroup descriptors.
enum class CgroupEntry : std::uint32_t {
  tasks,      ///< files to which the command writes its pid before its program starts (v1)
  directory,  ///< the directory into which the command is cloned (v2)
};

enum class InitRequestType : std::uint32_t {
  enter,          ///< descriptor: block with Landlock rules; pid 1 spawns commands in that domain -> entered, with the
                  ///< ruleset if there is one
  pause,          ///< stops spawning until the next enter -> paused, with EBUSY if any process runs
  spawn,          ///< descriptors: block, 0, 1, 2, report, cgroups; answered with spawned, later with exited
  close,          ///< closes `descriptor` of pid 1, which the supervisor has fetched; no answer
  send_listener,  ///< answered with descriptor: `descriptor` of pid 1, closed there; where pidfd_getfd is forbidden
  kill_newborn,   ///< SIGKILL to a command that has not reached its exec; no answer
  signal,         ///< `signal` to the process group of `command`; no answer
  kill_all,       ///< SIGKILL to every process but pid 1; no answer
  socket,         ///< answered with descriptor: a TCP socket of `family`, of the sandbox's network
  measure,        ///< answered with measured
};

struct InitRequest {
  std::uint32_t protocol = kInitProtocol;
  InitRequestType type = InitRequestType::measure;
  std::uint64_t address = 0, bytes = 0;  ///< enter, spawn: address and size at which pid 1 maps the block
  std::uint32_t command = 0;             ///< chosen by the supervisor, returned in the answers
  std::int32_t descriptor = -1;
  std::int32_t signal = 0;
  std::int32_t family = 0;
  CgroupEntry cgroup = CgroupEntry::tasks;
};

enum class InitReplyType : std::uint32_t { ready, entered, paused, spawned, exited, descriptor, measured };

struct InitReply {
  InitReplyType type = InitReplyType::ready;
  std::uint32_t command = 0;
  std::int32_t error = 0;       ///< errno, or 0
  std::int32_t pid = 0;         ///< spawned: inside the sandbox
  std::int32_t status = 0;      ///< exited: as wait4 returns it
  std::uint32_t alone = 0;      ///< exited: no other process is left in the sandbox
  std::uint32_t in_cgroup = 0;  ///< spawned: in the cgroups of the request
  std::int64_t user_us = 0, system_us = 0, peak_kib = 0, in_blocks = 0, out_blocks = 0;  ///< exited
  std::uint64_t ipc_bytes = 0;  ///< measured: memory held by System V objects
};

}  // namespace caisson::session
