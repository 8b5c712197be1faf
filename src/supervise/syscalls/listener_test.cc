// The kernel's side of notifications: who answers, and what happens without a listener.
#include "supervise/syscalls/listener.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "sys/kernel_abi.h"

namespace caisson::supervise {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTried = SYS_setns;

int listen() {
  sock_filter code[] = {{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
                        {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, kTried},
                        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_USER_NOTIF},
                        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
  const sock_fprog program{std::size(code), code};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  return static_cast<int>(
      ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, sys::kSeccompNewListener | sys::kSeccompWaitKillable, &program));
}

void sendDescriptor(int socket, int descriptor) {
  char byte = 0;
  iovec io{&byte, 1};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{.msg_iov = &io, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room)};
  cmsghdr* part = CMSG_FIRSTHDR(&header);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(part), &descriptor, sizeof(int));
  ::sendmsg(socket, &header, 0);
}

int receiveDescriptor(int socket) {
  char byte = 0;
  iovec io{&byte, 1};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{.msg_iov = &io, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room)};
  if (::recvmsg(socket, &header, MSG_CMSG_CLOEXEC) != 1 || CMSG_FIRSTHDR(&header) == nullptr) return -1;
  int descriptor = -1;
  std::memcpy(&descriptor, CMSG_DATA(CMSG_FIRSTHDR(&header)), sizeof(int));
  return descriptor;
}

/// A child that makes the same blocked call `times` and exits with the errno of the last.
class Payload {
 public:
  explicit Payload(int times) {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      const int own = listen();
      if (own < 0) ::_exit(200);
      sendDescriptor(ends[1], own);
      ::close(own);
      int error = 0;
      for (int i = 0; i < times; ++i) error = ::syscall(kTried, -1, 7L << 40) < 0 ? errno : 0;
      ::_exit(error);
    }
    ::close(ends[1]);
    listener = Listener(sys::Fd(receiveDescriptor(ends[0])));
    ::close(ends[0]);
  }
  ~Payload() {
    if (pid_ <= 0) return;  // fork failed: kill(-1) would signal every process of the machine
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Payload(const Payload&) = delete;
  Payload& operator=(const Payload&) = delete;

  int exitStatus() const {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }
  [[nodiscard]] bool waits() const {
    pollfd ready{listener.descriptor(), POLLIN, 0};
    return ::poll(&ready, 1, 5000) == 1 && (ready.revents & POLLIN) != 0;
  }
  [[nodiscard]] pid_t pid() const { return pid_; }

  Listener listener;

 private:
  pid_t pid_ = -1;
};

TEST(Listener, ReceivesACallAndSendsTheReply) {
  Payload payload(1);
  ASSERT_TRUE(payload.waits());
  const auto attempt = payload.listener.next(Clock::now());
  ASSERT_TRUE(attempt);
  EXPECT_EQ(attempt->number, kTried);
  EXPECT_EQ(attempt->pid, payload.pid());
  EXPECT_EQ(attempt->arguments[1], 7ULL << 40);
  EXPECT_NE(payload.listener.programOf(*attempt).find("unit_tests"), std::string::npos);
  EXPECT_FALSE(payload.listener.isForeignProgram(*attempt));
  payload.listener.refuse(*attempt, EXDEV);
  EXPECT_EQ(payload.exitStatus(), EXDEV);
}

TEST(Listener, ClosedListenerFailsWaitingCall) {
  Payload payload(1);
  ASSERT_TRUE(payload.waits());
  payload.listener.close();
  EXPECT_EQ(payload.exitStatus(), ENOSYS);
}

TEST(Listener, ClosedListenerFailsLaterCalls) {
  Payload payload(3);
  ASSERT_TRUE(payload.waits());
  ASSERT_TRUE(payload.listener.next(Clock::now()));
  payload.listener.close();
  EXPECT_EQ(payload.exitStatus(), ENOSYS);
}

/// The process may be killed between poll and read: then there is nothing to read, and the read must not block.
TEST(Listener, DoesNotWaitForAProcessThatIsGone) {
  Payload payload(1);
  ASSERT_TRUE(payload.waits());
  ::kill(payload.pid(), SIGKILL);
  EXPECT_EQ(payload.exitStatus(), 1000 + SIGKILL);
  EXPECT_FALSE(payload.listener.next(Clock::now()));
}

TEST(Listener, HasNoProgramNameForAKilledProcess) {
  Payload payload(1);
  ASSERT_TRUE(payload.waits());
  const auto attempt = payload.listener.next(Clock::now());
  ASSERT_TRUE(attempt);
  ::kill(payload.pid(), SIGKILL);
  EXPECT_EQ(payload.exitStatus(), 1000 + SIGKILL);
  EXPECT_EQ(payload.listener.programOf(*attempt), "");
}

TEST(Listener, CanEndTheProcess) {
  Payload payload(1);
  ASSERT_TRUE(payload.waits());
  const auto attempt = payload.listener.next(Clock::now());
  ASSERT_TRUE(attempt);
  payload.listener.endProcess(*attempt);
  EXPECT_EQ(payload.exitStatus(), 1000 + SIGKILL);
}

TEST(Listener, SlowsAFloodDown) {
  Payload payload(100'000);
  const auto now = Clock::now();
  int read = 0;
  while (payload.listener.descriptor() >= 0 && payload.waits()) {
    const auto attempt = payload.listener.next(now);
    ASSERT_TRUE(attempt);
    payload.listener.refuse(*attempt, EPERM);
    ASSERT_LE(++read, 100);
  }
  EXPECT_EQ(read, 32);
  ASSERT_TRUE(payload.listener.resumeAt());
  payload.listener.keepPace(*payload.listener.resumeAt() - std::chrono::milliseconds(1));
  EXPECT_LT(payload.listener.descriptor(), 0);
  payload.listener.keepPace(*payload.listener.resumeAt());
  EXPECT_GE(payload.listener.descriptor(), 0);
}

}  // namespace
}  // namespace caisson::supervise
