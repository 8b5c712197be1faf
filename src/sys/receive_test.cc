#include "sys/receive.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

namespace caisson::sys {
namespace {

struct PacketPair {
  PacketPair() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    ours = Fd(ends[0]);
    theirs = Fd(ends[1]);
  }
  void send(std::string_view text, const std::vector<int>& descriptors) const {
    iovec io{const_cast<char*>(text.data()), text.size()};
    alignas(cmsghdr) char room[CMSG_SPACE(kMaxReceived * sizeof(int))] = {};
    msghdr header{};
    header.msg_iov = &io;
    header.msg_iovlen = 1;
    if (!descriptors.empty()) {
      header.msg_control = room;
      header.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
      cmsghdr* part = CMSG_FIRSTHDR(&header);
      part->cmsg_level = SOL_SOCKET;
      part->cmsg_type = SCM_RIGHTS;
      part->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
      std::memcpy(CMSG_DATA(part), descriptors.data(), descriptors.size() * sizeof(int));
    }
    ASSERT_EQ(::sendmsg(theirs.get(), &header, 0), static_cast<ssize_t>(text.size()));
  }
  Fd ours, theirs;
};

int openDescriptors() {
  int count = 0;
  for (int fd = 0; fd < 256; ++fd) count += ::fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
  return count;
}

TEST(ReceiveMessage, ReceivesDescriptorsInOrderAndCloseOnExec) {
  const PacketPair pair;
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  pair.send("abc", {pipe[0], pipe[1]});
  std::array<std::byte, 8> into{};
  Fd got[2];
  ASSERT_EQ(receiveMessage(pair.ours.get(), into, got), 3);
  EXPECT_EQ(std::memcmp(into.data(), "abc", 3), 0);
  EXPECT_EQ(::write(got[1].get(), "x", 1), 1);
  char byte = 0;
  EXPECT_EQ(::read(got[0].get(), &byte, 1), 1);
  for (const Fd& one : got) EXPECT_EQ(::fcntl(one.get(), F_GETFD), FD_CLOEXEC);
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST(ReceiveMessage, ClosesUnexpectedDescriptors) {
  const PacketPair pair;
  const int before = openDescriptors();
  for (std::size_t room = 0; room < 4; ++room) {
    pair.send("x", {0, 1, 2, 0, 1});
    std::array<std::byte, 8> into{};
    std::vector<Fd> got(room);
    ASSERT_EQ(receiveMessage(pair.ours.get(), into, got), 1);
    EXPECT_EQ(openDescriptors(), before + static_cast<int>(room));
  }
  EXPECT_EQ(openDescriptors(), before);
}

TEST(ReceiveMessage, ReceivesTheLastMessageOfAPeerThatExitedWithoutReading) {
  PacketPair pair;
  ASSERT_EQ(::send(pair.ours.get(), "go", 2, 0), 2);
  pair.send("failed", {});
  pair.theirs.reset();
  std::array<std::byte, 8> into{};
  EXPECT_EQ(receiveMessage(pair.ours.get(), into, {}, MSG_DONTWAIT), 6);
  EXPECT_EQ(receiveMessage(pair.ours.get(), into, {}, MSG_DONTWAIT), 0);
}

TEST(ReceiveMessage, DistinguishesTheEndFromNoMessage) {
  PacketPair pair;
  std::array<std::byte, 8> into{};
  EXPECT_EQ(receiveMessage(pair.ours.get(), into, {}, MSG_DONTWAIT), -EAGAIN);
  pair.theirs.reset();
  EXPECT_EQ(receiveMessage(pair.ours.get(), into, {}, MSG_DONTWAIT), 0);
}

}  // namespace
}  // namespace caisson::sys
