#include "supervise/processes/socket_owner.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>
#include <string>

#include "supervise/processes/proc_text.h"
#include "sys/fd.h"

namespace caisson::supervise {
namespace {

egress::HostPort at(std::string_view text) { return *egress::canonicalAuthority(text, 0); }

TEST(SocketOwner, SocketIsFoundByLocalAndRemoteAddress) {
  const std::string table =
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
      "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 11 1 x 100 0\n"
      "   1: 0100007F:9C40 010012C6:0050 01 00000000:00000000 00:00000000 00000000  1001        0 22 1 x 20 4\n"
      "   2: 0100007F:9C40 020012C6:0050 01 00000000:00000000 00:00000000 00000000  1001        0 33 1 x 20 4\n";
  if constexpr (std::endian::native == std::endian::little) {
    EXPECT_EQ(inodeIn(table, at("127.0.0.1:40000"), at("198.18.0.1:80")), 22U);
    EXPECT_EQ(inodeIn(table, at("127.0.0.1:40000"), at("198.18.0.2:80")), 33U);
    EXPECT_EQ(inodeIn(table, at("127.0.0.1:40000"), at("198.18.0.3:80")), 0U);
    const std::string six =
        "   0: 00000000000000000000000001000000:9C40 0000000000000000FFFF0000010012C6:0050 01 0:0 0:0 0 0 0 44 1\n"
        "   1: 0000000000000000FFFF00000100007F:9C40 0000000000000000FFFF0000010012C6:0050 01 0:0 0:0 0 0 0 55 1\n";
    EXPECT_EQ(inodeIn(six, at("[::1]:40000"), at("198.18.0.1:80")), 44U);
    EXPECT_EQ(inodeIn(six, at("127.0.0.1:40000"), at("198.18.0.1:80")), 55U);  // through a socket of the other family
  }
  for (const char* text : {"", "\n\n", "0: 0100007F:9C40", "0: x:1 y:2 01 a b c d e f", "0: 0100007F: 010012C6:0050"})
    EXPECT_EQ(inodeIn(text, at("127.0.0.1:40000"), at("198.18.0.1:80")), 0U) << text;
}

TEST(SocketOwner, ParentAndGroupAreParsedAfterAnyProcessName) {
  const Relations read = relationsIn("7 (a) 1 2 3) S 4 5 6 0 -1");
  EXPECT_EQ(read.parent, 4);
  EXPECT_EQ(read.group, 5);
  EXPECT_EQ(read.session, 6);
  for (const char* text : {"", "7", "7 (a)", "7 (a) S", "7 (a) S x 5 6"})
    EXPECT_EQ(relationsIn(text).parent, 0) << text;
  EXPECT_EQ(innermostNumberIn("Name:\tx\nPid:\t70\nNSpid:\t70\t9\t2\nThreads:\t1\n"), 2);
  for (const char* text : {"", "NSpid", "Name:\tx\nNSpid:\n", "Name:\tNSpid:\t5\n"})
    EXPECT_EQ(innermostNumberIn(text), 0) << text;
}

/// A child that connects to `port`, reports that and waits; outside its parent's session and group if `away`.
pid_t connectInChild(std::uint16_t port, bool away, int ready) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  if (away) ::setsid();
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons(port);
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) != 0) ::_exit(1);
  (void)!::write(ready, "x", 1);
  ::pause();
  ::_exit(0);
}

TEST(SocketOwner, SocketBelongsOnlyToTheCommandThatHoldsIt) {
  const sys::Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in here{};
  here.sin_family = AF_INET;
  here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(here);
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&here), size), 0);
  ASSERT_EQ(::listen(listener.get(), 4), 0);
  ASSERT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&here), &size), 0);
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t idle = ::fork();
  if (idle == 0) {
    ::setsid();
    ::pause();
    ::_exit(0);
  }
  const pid_t child = connectInChild(ntohs(here.sin_port), true, ready[1]);
  char done = 0;
  ASSERT_EQ(::read(ready[0], &done, 1), 1);
  sockaddr_in peer{};
  size = sizeof(peer);
  const sys::Fd accepted(::accept(listener.get(), reinterpret_cast<sockaddr*>(&peer), &size));
  const egress::HostPort from = at("127.0.0.1:" + std::to_string(ntohs(peer.sin_port)));
  const egress::HostPort to = at("127.0.0.1:" + std::to_string(ntohs(here.sin_port)));
  const auto inside = [](pid_t pid) { return innermostNumberIn(supervise::readFile(pid, "status")); };
  // This process plays pid 1 of the sandbox: it is the parent of both commands.
  const auto now = std::chrono::steady_clock::now(), later = now + std::chrono::minutes(1);
  EXPECT_TRUE(commandHolds(::getpid(), inside(child), from, to, later));
  EXPECT_FALSE(commandHolds(::getpid(), inside(child), from, to, now));  // no time for it
  EXPECT_FALSE(commandHolds(::getpid(), inside(idle), from, to, later));
  EXPECT_FALSE(
      commandHolds(::getpid(), inside(child), to, from, later));  // our own end of it, which belongs to no command
  for (const pid_t one : {idle, child}) {
    ::kill(one, SIGKILL);
    ::waitpid(one, nullptr, 0);
  }
  EXPECT_FALSE(commandHolds(::getpid(), inside(child), from, to, later));
}

}  // namespace
}  // namespace caisson::supervise
