#include "sys/unix_peer.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <utility>

#include "support/temp_dir.h"
#include "sys/fd.h"
#include "sys/kernel_abi.h"
#include "sys/raw_syscall.h"

namespace caisson::sys {
namespace {

class UnixPeerTest : public testing::Test {
 protected:
  void SetUp() override {
    address_.sun_family = AF_UNIX;
    const std::string path = directory_ / "socket";
    ASSERT_LT(path.size(), sizeof(address_.sun_path));
    std::memcpy(address_.sun_path, path.c_str(), path.size());
    listener_ = Fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::bind(listener_.get(), address(), sizeof(address_)), 0);
    ASSERT_EQ(::listen(listener_.get(), 4), 0);
  }
  void TearDown() override {
    connection_.reset();  // ends the peer
    if (peer_ > 0) ::waitpid(peer_, nullptr, 0);
  }

  const sockaddr* address() const { return reinterpret_cast<const sockaddr*>(&address_); }
  Fd connect() const {
    Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (::connect(socket.get(), address(), sizeof(address_)) != 0) return {};
    return socket;
  }
  /// Accepts from a process that prepares, connects and then keeps the connection until we close it.
  void acceptFrom(const std::function<bool()>& prepare) {
    peer_ = ::fork();
    ASSERT_GE(peer_, 0);
    if (peer_ == 0) {
      if (!prepare()) ::_exit(2);
      const Fd socket = connect();
      char byte;
      ::_exit(socket && ::recv(socket.get(), &byte, 1, 0) == 0 ? 0 : 1);
    }
    connection_ = Fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    ASSERT_TRUE(connection_);
  }

  const test::TempDir directory_;
  sockaddr_un address_{};
  Fd listener_, connection_;
  pid_t peer_ = 0;
};

TEST_F(UnixPeerTest, ProcessOfOurUserAndNamespaceIsTheOwner) {
  acceptFrom([] { return true; });
  const auto peer = identifyPeer(connection_.get());
  ASSERT_TRUE(peer);
  EXPECT_EQ(peer->uid, ::geteuid());
  EXPECT_TRUE(peer->is_owner);
  EXPECT_FALSE(peer->isInOtherNamespace());
}

TEST_F(UnixPeerTest, ProcessInAnotherUserNamespaceIsNot) {
  acceptFrom([] {
    (void)::unshare(CLONE_NEWUSER);  // where that is forbidden, the peer stays in ours
    return true;
  });
  const auto peer = identifyPeer(connection_.get());
  ASSERT_TRUE(peer);
  struct stat ours{}, theirs{};
  ASSERT_EQ(::stat("/proc/self/ns/user", &ours), 0);
  ASSERT_EQ(::stat(("/proc/" + std::to_string(peer_) + "/ns/user").c_str(), &theirs), 0);
  if (ours.st_ino == theirs.st_ino) GTEST_SKIP() << "no user namespaces here";
  EXPECT_FALSE(peer->is_owner);
  EXPECT_TRUE(peer->isInOtherNamespace());
}

TEST_F(UnixPeerTest, ConnectionOfAnExitedProcessIsNot) {
  const pid_t middle = ::fork();
  if (middle == 0) {
    const Fd socket = connect();
    // A child keeps the connection open.
    if (::fork() != 0) ::_exit(0);
    char byte;
    ::_exit(::recv(socket.get(), &byte, 1, 0) == 0 ? 0 : 1);
  }
  ASSERT_EQ(::waitpid(middle, nullptr, 0), middle);
  connection_ = Fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  const auto peer = identifyPeer(connection_.get());
  ASSERT_TRUE(peer);
  EXPECT_FALSE(peer->is_owner);
}

/// The supervisor of a root caller has dropped its capabilities, so it may not open the namespace of a client.
TEST_F(UnixPeerTest, PeerWithMoreCapabilitiesIsTheOwner) {
  peer_ = ::fork();
  ASSERT_GE(peer_, 0);
  if (peer_ == 0) {
    struct {
      std::uint32_t version;
      int pid;
    } const header{kCapabilityVersion3, 0};
    const struct {
      std::uint32_t effective, permitted, inheritable;
    } none[2] = {};
    if (raw(SYS_capset, &header, none) < 0) ::_exit(2);
    const Fd accepted(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const auto peer = identifyPeer(accepted.get());
    ::_exit(peer && peer->is_owner ? 0 : 1);
  }
  const Fd socket = connect();
  ASSERT_TRUE(socket);
  int status = -1;
  ASSERT_EQ(::waitpid(std::exchange(peer_, 0), &status, 0) > 0, true);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(UnixPeerTest, SocketThatIsNotConnectedHasNoPeer) {
  EXPECT_FALSE(identifyPeer(Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)).get()));
  EXPECT_FALSE(identifyPeer(Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)).get()));
  EXPECT_FALSE(identifyPeer(-1));
}

}  // namespace
}  // namespace caisson::sys
