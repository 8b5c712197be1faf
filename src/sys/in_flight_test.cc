#include "sys/in_flight.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "sys/fd.h"

namespace caisson::sys {
namespace {

constexpr std::size_t kMebibyte = 1 << 20;

Fd memfd(std::size_t bytes) {
  Fd file(::memfd_create("in-flight", MFD_CLOEXEC));
  const std::vector<char> content(bytes, 'x');
  EXPECT_EQ(::write(file.get(), content.data(), bytes), static_cast<ssize_t>(bytes));
  return file;
}

struct Pair {
  explicit Pair(int type) {
    int made[2];
    EXPECT_EQ(::socketpair(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, made), 0);
    from = Fd(made[0]);
    to = Fd(made[1]);
  }
  Fd from, to;
};

void send(const Pair& pair, int descriptor, std::size_t bytes = 1) {
  char text[8] = {};
  iovec io{text, bytes};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &io;
  header.msg_iovlen = 1;
  header.msg_control = room;
  header.msg_controllen = sizeof(room);
  cmsghdr* part = CMSG_FIRSTHDR(&header);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(part), &descriptor, sizeof(descriptor));
  ASSERT_EQ(::sendmsg(pair.from.get(), &header, 0), static_cast<ssize_t>(bytes));
}

std::uint64_t memoryIn(const std::vector<InFlightFile>& files) {
  std::uint64_t bytes = 0;
  for (const InFlightFile& file : files) {
    if (file.kind == InFlightFile::Kind::memfd) bytes += file.bytes;
  }
  return bytes;
}

InFlight inspectQueue(const Pair& pair) {
  const SocketOf socket{::getpid(), pair.to.get()};
  return filesInFlight({&socket, 1});
}

std::vector<InFlightFile> in(const Pair& pair) {
  InFlight found = inspectQueue(pair);
  EXPECT_TRUE(found.complete);
  return std::move(found.files);
}

class InFlightTest : public testing::TestWithParam<int> {};

TEST_P(InFlightTest, EveryMessageOfQueueIsSeen) {
  const Pair pair(GetParam());
  for (std::size_t i = 1; i <= 4; ++i) send(pair, memfd(i * kMebibyte).get());
  for (int look = 0; look < 3; ++look) {
    const auto files = in(pair);
    EXPECT_EQ(files.size(), 4U);
    EXPECT_EQ(memoryIn(files), 10 * kMebibyte);
  }
}

TEST_P(InFlightTest, QueueIsUnchangedAfterwards) {
  const Pair pair(GetParam());
  ASSERT_EQ(::send(pair.from.get(), "ab", 2, 0), 2);
  send(pair, memfd(kMebibyte).get());
  EXPECT_EQ(in(pair).size(), 1U);
  char text[8];
  EXPECT_EQ(::recv(pair.to.get(), text, 2, MSG_PEEK), 2);
  EXPECT_EQ(::recv(pair.to.get(), text, 2, 0), 2);
  EXPECT_EQ(::recv(pair.to.get(), text, sizeof(text), 0), 1);
  EXPECT_EQ(::recv(pair.to.get(), text, sizeof(text), 0), -1);
  EXPECT_TRUE(in(pair).empty());
}

TEST_P(InFlightTest, SocketInSocketIsSeen) {
  const Pair outer(GetParam());
  Pair inner(GetParam());
  send(inner, memfd(3 * kMebibyte).get());
  send(outer, inner.to.get());
  inner.to.reset();
  const auto files = in(outer);
  EXPECT_EQ(files.size(), 2U);
  EXPECT_EQ(memoryIn(files), 3 * kMebibyte);
}

INSTANTIATE_TEST_SUITE_P(Types, InFlightTest, testing::Values(SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET),
                         [](const auto& type) {
                           return type.param == SOCK_STREAM  ? "stream"
                                  : type.param == SOCK_DGRAM ? "datagram"
                                                             : "packets";
                         });

TEST(InFlightOf, EmptyDatagramIsSeenOnceAndMissedLater) {
  const Pair pair(SOCK_DGRAM);
  for (int i = 0; i < 3; ++i) send(pair, memfd(kMebibyte).get(), 0);
  EXPECT_EQ(memoryIn(inspectQueue(pair).files), 3 * kMebibyte);
  send(pair, memfd(kMebibyte).get(), 0);
  const InFlight later = inspectQueue(pair);
  EXPECT_GE(memoryIn(later.files), kMebibyte);
  EXPECT_TRUE(!later.complete || memoryIn(later.files) == 4 * kMebibyte);
}

TEST(InFlightOf, ExitedProcessHasNone) {
  const SocketOf socket{0x3fffffff, 0};
  EXPECT_TRUE(filesInFlight({&socket, 1}).files.empty());
}

TEST(InFlightOf, NonSocketHasNone) {
  const Fd file = memfd(1);
  const SocketOf socket{::getpid(), file.get()};
  EXPECT_TRUE(filesInFlight({&socket, 1}).files.empty());
}

TEST(QueuedDescriptors, AreReadFromFdinfo) {
  EXPECT_EQ(parseQueued("pos:\t0\nflags:\t04002\nmnt_id:\t10\nino:\t47\nscm_fds: 18\n"), 18U);
  EXPECT_EQ(parseQueued("pos:\t0\n"), 0U);
  EXPECT_EQ(parseQueued("scm_fds:"), 0U);
}

}  // namespace
}  // namespace caisson::sys
