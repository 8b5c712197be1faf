// Allocates memory of one kind until it is stopped. Every verb stops at a bound from the caller, so that a host without
// limits survives; then it holds the memory briefly, so that a supervisor can detect it.
#include <fcntl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>

#include "payload.h"
#include "send_descriptors.h"

namespace payload {
namespace {

constexpr std::size_t kMiB = 1024 * 1024;
constexpr long kHoldMs = 700;

std::size_t bound(const Arguments& arguments) {
  return static_cast<std::size_t>(std::atol(arguments[0].c_str())) * kMiB;
}

int took(std::size_t bytes) {
  pauseFor(kHoldMs);
  return done(std::to_string(bytes / kMiB) + " MiB");
}

/// After a failure, holds the memory briefly, too.
int stopped(std::string_view call) {
  const int error = errno;
  pauseFor(kHoldMs);
  return refused(call, error);
}

int takeAnonymous(const Arguments& arguments) {
  for (std::size_t have = 0; have < bound(arguments); have += kMiB) {
    void* piece = mmap(nullptr, kMiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (piece == MAP_FAILED) return stopped("mmap");
    std::memset(piece, 1, kMiB);
  }
  return took(bound(arguments));
}

int fill(int fd, std::size_t most) {
  static const std::array<char, kMiB> piece = {1};
  for (std::size_t have = 0; have < most;) {
    const ssize_t count = write(fd, piece.data(), piece.size());
    if (count <= 0) return stopped("write");
    have += static_cast<std::size_t>(count);
  }
  return took(most);
}

int takeMemfd(const Arguments& arguments) {
  const int fd = memfd_create("abuse", MFD_CLOEXEC);
  return fd < 0 ? refused("memfd_create") : fill(fd, bound(arguments));
}

/// The same by a process whose descriptors other processes of its user cannot list.
int takeHiddenMemfd(const Arguments& arguments) {
  if (prctl(PR_SET_DUMPABLE, 0) != 0) return refused("prctl");
  return takeMemfd(arguments);
}

/// Sends one descriptor with `bytes` bytes of data and closes it here.
bool sendAway(int socket, int descriptor, std::size_t bytes) {
  const bool sent = sendCopies(socket, descriptor, 1, bytes) >= 0;
  const int error = errno;
  close(descriptor);
  errno = error;
  return sent;
}

/// Memory files that are in no descriptor table and no mapping: sent through a socket and never received. HOW is
/// `bytes` (messages with data), `empty` (without), or `nested` (the receiving sockets are sent as well).
int takeMemfdsInFlight(const Arguments& arguments) {
  constexpr std::size_t kEach = 4 * kMiB;
  static const std::array<char, kEach> content = {1};
  int outer[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, outer) != 0) return refused("socketpair");
  for (std::size_t have = 0; have < bound(arguments); have += kEach) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) return stopped("socketpair");
    const int file = memfd_create("abuse", MFD_CLOEXEC);
    if (file < 0 || write(file, content.data(), kEach) != static_cast<ssize_t>(kEach)) return stopped("write");
    if (!sendAway(ends[0], file, arguments[1] == "empty" ? 0 : 1)) return stopped("sendmsg");
    close(ends[0]);
    if (arguments[1] == "nested" && !sendAway(outer[0], ends[1], 1)) return stopped("sendmsg");
    pauseFor(5);  // stays below the limit between two checks
  }
  return took(bound(arguments));
}

/// Segments that are unmapped once they are filled: no process shows them.
int takeShared(const Arguments& arguments) {
  constexpr std::size_t kSegment = 8 * kMiB;
  for (std::size_t have = 0; have < bound(arguments); have += kSegment) {
    const int id = shmget(IPC_PRIVATE, kSegment, IPC_CREAT | 0600);
    if (id < 0) return stopped("shmget");
    void* at = shmat(id, nullptr, 0);
    if (at == reinterpret_cast<void*>(-1)) return stopped("shmat");  // NOLINT: the call's error value
    std::memset(at, 1, kSegment);
    shmdt(at);
  }
  return took(bound(arguments));
}

int fillQuietly(int fd) {
  static const std::array<char, 4096> piece = {};
  std::size_t have = 0;
  for (ssize_t count; (count = write(fd, piece.data(), piece.size())) > 0;) have += static_cast<std::size_t>(count);
  return static_cast<int>(have);
}

int takePipes(const Arguments& arguments) {
  for (std::size_t have = 0; have < bound(arguments);) {
    int ends[2];
    if (pipe2(ends, O_NONBLOCK | O_CLOEXEC) != 0) return stopped("pipe2");
    have += static_cast<std::size_t>(fillQuietly(ends[1]));
  }
  return took(bound(arguments));
}

int takeSocketBuffers(const Arguments& arguments) {
  for (std::size_t have = 0; have < bound(arguments);) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) return stopped("socketpair");
    for (const int end : ends) have += static_cast<std::size_t>(fillQuietly(end));
  }
  return took(bound(arguments));
}

int takeSemaphores(const Arguments& arguments) {
  constexpr int kSet = 16384;
  for (std::size_t have = 0; have < bound(arguments); have += static_cast<std::size_t>(kSet) * 64) {
    if (semget(IPC_PRIVATE, kSet, IPC_CREAT | 0600) < 0) return stopped("semget");
  }
  return took(bound(arguments));
}

int takeMessages(const Arguments& arguments) {
  struct {
    long type = 1;
    char text[8000] = {};
  } message;
  for (std::size_t have = 0; have < bound(arguments);) {
    const int id = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
    if (id < 0) return stopped("msgget");
    while (msgsnd(id, &message, sizeof(message.text), IPC_NOWAIT) == 0) have += sizeof(message.text);
    if (errno != EAGAIN) return stopped("msgsnd");
  }
  return took(bound(arguments));
}

constexpr Verb kVerbs[] = {
    {"take-anonymous", "MIB", 1, takeAnonymous},
    {"take-memfd", "MIB", 1, takeMemfd},
    {"take-hidden-memfd", "MIB", 1, takeHiddenMemfd},
    {"take-shared", "MIB", 1, takeShared},
    {"take-pipes", "MIB", 1, takePipes},
    {"take-sockets", "MIB", 1, takeSocketBuffers},
    {"take-semaphores", "MIB", 1, takeSemaphores},
    {"take-messages", "MIB", 1, takeMessages},
    {"take-memfds-in-flight", "MIB HOW", 2, takeMemfdsInFlight},
};

}  // namespace

std::span<const Verb> abuseMemoryVerbs() { return kVerbs; }

}  // namespace payload
