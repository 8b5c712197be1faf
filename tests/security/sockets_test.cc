// Sockets, shared memory and queues of the host.
#include <netinet/in.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

#include "security/attack.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

/// A socket of the host that accepts every connection.
class Listener {
 public:
  /// A pathname if it begins with '/', else an abstract name.
  explicit Listener(const std::string& name) : fd_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const bool abstract = name[0] != '/';
    std::memcpy(address.sun_path + (abstract ? 1 : 0), name.data(),
                std::min(name.size(), sizeof(address.sun_path) - 2));
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size() + 1);
    listening_ = bind(fd_, reinterpret_cast<const sockaddr*>(&address), length) == 0 && listen(fd_, 8) == 0;
    if (!abstract) chmod(name.c_str(), 0777);
  }
  Listener() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    listening_ = bind(fd_, reinterpret_cast<const sockaddr*>(&address), length) == 0 && listen(fd_, 8) == 0 &&
                 getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &length) == 0;
    port_ = ntohs(address.sin_port);
  }
  ~Listener() { close(fd_); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  [[nodiscard]] bool listening() const { return listening_; }
  [[nodiscard]] std::string port() const { return std::to_string(port_); }

 private:
  int fd_;
  int port_ = 0;
  bool listening_ = false;
};

TEST(AbstractSocket, OfTheHostCannotBeReached) {
  CONFORMS("R-PROCESS-16");
  const std::string name = uniqueWord("caisson-test");
  const Listener listener(name);
  ASSERT_TRUE(listener.listening());
  const Attack attack{.verb = {"connect-abstract", name}};
  EXPECT_TRUE(contained(inSandbox(attack)));
  EXPECT_TRUE(contained(inSandbox(atLevelProcess(attack))));
  if (!mayWeaken()) return;
  EXPECT_TRUE(contained(weakened("network-namespace,self-test", attack))) << "Landlock's scope is the second layer";
  EXPECT_TRUE(succeeded(weakened("network-namespace,landlock-scoping,self-test", attack)));
}

TEST(LoopbackOfTheHost, CannotBeReached) {
  CONFORMS("R-NETWORK-1");
  const Listener listener;
  ASSERT_TRUE(listener.listening());
  const Attack attack{.verb = {"connect-loopback", listener.port()}};
  EXPECT_TRUE(contained(inSandbox(atLevelProcess(attack))));
  expectOnlyStoppedBy("network-namespace,self-test", attack);
}

TEST(PathnameSocket, OfTheHostCannotBeReached) {
  CONFORMS("R-PROCESS-16");
  const TempDir directory;
  directory.openToAll();
  const Listener listener(directory / "agent.sock");
  ASSERT_TRUE(listener.listening());
  expectOnlyStoppedBy("own-root,self-test", {.verb = {"connect-path", directory / "agent.sock"}});
}

/// An overlay has a separate inode for the socket, and no process listens on that.
TEST(PathnameSocket, InAnOverlayIsNotConnectedToTheHosts) {
  const TempDir directory;
  directory.openToAll();
  const Listener listener(directory / "agent.sock");
  ASSERT_TRUE(listener.listening());
  const RunOutput output =
      inSandbox({.verb = {"connect-path", "/workspace/agent.sock"}, .workspace = directory.path() + ":overlay"});
  EXPECT_TRUE(contained(output));
}

/// On the host's root Landlock is the boundary, and before ABI 9 it does not cover connect().
TEST(PathnameSocket, OfTheHostCannotBeReachedAtLevelProcess) {
  const TempDir directory;
  directory.openToAll();
  const Listener listener(directory / "agent.sock");
  ASSERT_TRUE(listener.listening());
  EXPECT_TRUE(contained(inSandbox(atLevelProcess({.verb = {"connect-path", directory / "agent.sock"}}))));
}

/// Services keep sockets below /srv, /opt and /var/lib, which no policy shows.
TEST(PathnameSocket, OfAServiceCannotBeReachedAtLevelProcess) {
  if (!runsAsRoot()) GTEST_SKIP() << "only root can place a socket there";
  int tried = 0;
  for (const std::string parent : {"/opt", "/srv", "/var/lib"}) {
    std::string directory = parent + "/caisson-test-XXXXXX";
    if (::access(parent.c_str(), F_OK) != 0) continue;  // a small system may lack one
    ASSERT_NE(::mkdtemp(directory.data()), nullptr) << parent;
    ++tried;
    ::chmod(directory.c_str(), 0755);
    {
      const Listener listener(directory + "/service.sock");
      EXPECT_TRUE(listener.listening());
      EXPECT_TRUE(contained(inSandbox(atLevelProcess({.verb = {"connect-path", directory + "/service.sock"}}))))
          << parent;
    }
    ::unlink((directory + "/service.sock").c_str());
    ::rmdir(directory.c_str());
  }
  EXPECT_GT(tried, 0) << "this system has none of these directories";
}

TEST(SystemVMemory, OfTheHostCannotBeAttached) {
  CONFORMS("R-PROCESS-16");
  const auto key = static_cast<key_t>(0x43410000 | (getpid() & 0xffff));
  const int id = shmget(key, 4096, IPC_CREAT | IPC_EXCL | 0666);
  ASSERT_GE(id, 0);
  void* memory = shmat(id, nullptr, 0);
  const std::string secret = uniqueWord("segment");
  std::memcpy(memory, secret.c_str(), secret.size() + 1);
  const Attack attack{.verb = {"attach-segment", std::to_string(key)}};
  EXPECT_TRUE(contained(inSandbox(attack)));
  EXPECT_TRUE(contained(inSandbox(atLevelProcess(attack))));
  if (mayWeaken()) {
    EXPECT_NE(weakened("ipc-namespace", attack).out.find(secret), std::string::npos);
  }
  shmdt(memory);
  shmctl(id, IPC_RMID, nullptr);
}

TEST(PosixMemory, OfTheHostCannotBeOpened) {
  CONFORMS("R-PROCESS-16");
  const std::string path = "/dev/shm/" + uniqueWord("caisson-test");
  const Canary canary(path);
  chmod(path.c_str(), 0666);
  const Attack attack{.verb = {"read", path}};
  const RunOutput output = inSandbox(attack);
  EXPECT_TRUE(contained(output));
  EXPECT_TRUE(contained(inSandbox(atLevelProcess(attack))));
  if (mayWeaken()) {
    EXPECT_TRUE(canary.leakedInto(weakened("own-root,self-test", attack).out));
  }
  unlink(path.c_str());
}

}  // namespace
}  // namespace caisson::test
