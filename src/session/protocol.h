// What pid 1 of a session and the processes that use the session say to each other.
//
// pid 1 listens on a SOCK_SEQPACKET socket in the session's private directory. Who can open that directory may ask;
// pid 1 also looks at the kernel's word on who connected: a process of its own pid namespace, that is, a payload, has a
// number there and is turned away, whatever way it found to the socket.
// Requests are fixed records with descriptors beside them. A failure between a payload's start and its exec comes as an
// isolation::Message, as in a single run; everything else is a Reply.
#pragma once

#include <cstdint>

namespace caisson::session {

inline constexpr std::uint32_t kProtocol = 0x43530004;

/// Where pid 1's program finds its descriptors.
inline constexpr int kControlDescriptor = 3;  ///< to the process that starts the sandbox
inline constexpr int kListenerDescriptor = 4;
inline constexpr int kAliveDescriptor = 5;  ///< a locked file: the lock ends with pid 1
inline constexpr int kResidentDescriptors = 3;

enum class Ask : std::uint32_t {
  hello,        ///< -> welcome, with the workspace's directory
  execute,      ///< descriptors: block, 0, 1, 2 -> started, then finished
  go,           ///< for a held command; `signal` other than 0: it is not to run. No answer.
  background,   ///< descriptors: block, 0 or a pipe is made, log of 1, log of 2, record -> started
  signal,       ///< `signal` to all processes of `exec` -> done
  list,         ///< -> one entry per command that runs, then done
  take_input,   ///< -> done, with the write end of the standard input of `exec`
  close_input,  ///< -> done
  renew,        ///< the end is `milliseconds` from now -> done
  quiesce,      ///< end, but only if nothing runs -> done, or refused with EBUSY
  end,          ///< -> done, and the end
  socket,       ///< -> done, with a new TCP socket (`signal`: address family) of the sandbox's network
  sized,        ///< -> done, with the sandbox's directory in memory number `exec`, to ask how full it is
  measure,      ///< -> done, `amount`: bytes that System V objects hold, `value`: whether anything runs
  enforce,      ///< end everything but pid 1; commands end with the limit `signal` -> done
};

/// A held command waits no longer, since pid 1 waits with it; a failure with this object and ETIMEDOUT says so.
inline constexpr long kGoPatienceMs = 50;
inline constexpr const char* kGoObject = "the command's record";

/// `signal` of enforce, in place of a limit: something in the session tried to escape.
inline constexpr std::uint32_t kEscaped = 0x100;

/// caisson::Limit::cpu, the one that pid 1 itself finds.
inline constexpr std::uint32_t kCpuLimit = 2;

enum RequestFlag : std::uint32_t {
  kKeepInput = 1U << 0,  ///< background: make a pipe for standard input and keep its end for take_input
  kHeld = 1U << 1,       ///< execute: everything but the program, which waits for `go`
};

struct Request {
  std::uint32_t protocol = kProtocol;
  Ask ask = Ask::hello;
  std::uint64_t address = 0, bytes = 0;  ///< of the block, in the asking process and to be in pid 1
  std::uint32_t exec = 0;                ///< the command's number, chosen by who asks
  std::int32_t signal = 0;
  std::int64_t milliseconds = 0;  ///< background: time-out; 0: none
  std::uint64_t limit = 0;        ///< background: bytes of each log
  std::uint32_t flags = 0;
  std::uint32_t reserved = 0;
  std::int64_t cpu_ms = 0;  ///< execute, background: CPU time of all its processes; 0: no limit
};

enum class Say : std::uint32_t { ready, welcome, started, finished, entry, done, refused };

/// What comes with `started`, in this order.
enum StartedFlag : std::uint32_t {
  kTerminal = 1U << 0,
  kListener = 1U << 1,  ///< of the filter's notifications
};

struct Reply {
  Say say = Say::done;
  std::int32_t value = 0;  ///< wait status; errno when refused; started: StartedFlag
  std::uint32_t exec = 0;
  std::int32_t pid = 0;
  std::int64_t user_us = 0, system_us = 0, peak_kib = 0, in_blocks = 0, out_blocks = 0;
  std::int64_t amount = 0;   ///< started: why there is no listener although one was wished for (errno)
  std::uint32_t limit = 0;   ///< finished: the limit (caisson::Limit) that ended it
  std::uint32_t others = 0;  ///< finished: whether anything runs on in the session
};

inline constexpr std::uint32_t kRecordMark = 0x43535245;

/// How a background command ended, written once to its record file by pid 1.
struct EndRecord {
  std::uint32_t mark = kRecordMark;
  std::int32_t status = 0;
  std::uint32_t timed_out = 0;
  std::uint32_t limit = 0;  ///< the limit (caisson::Limit) that ended it, other than time
  std::int64_t elapsed_ms = 0;
  std::int64_t user_us = 0, system_us = 0, peak_kib = 0;
  std::int64_t ended = 0;             ///< seconds since 1970
  std::uint64_t dropped[2] = {0, 0};  ///< bytes of 1 and 2 beyond the limit
};

}  // namespace caisson::session
