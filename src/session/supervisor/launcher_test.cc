#include "session/supervisor/launcher.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace caisson::session {
namespace {

/// A payload decides how long a measurement takes: it must neither block the supervisor nor cost it its launcher.
TEST(Launcher, UnansweredMeasurementBlocksNoOtherRequest) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  Launcher launcher{sys::Fd(ends[0])};
  const sys::Fd other(ends[1]);
  const sys::Fd directory(::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto now = std::chrono::steady_clock::now();
  auto measure = launcher.measure(directory.get(), {.bytes = 7, .deadline = now + std::chrono::seconds(5)}, -1);
  ASSERT_TRUE(measure);
  EXPECT_FALSE(measure->wait(std::chrono::milliseconds(0)));
  launcher.squash(false);
  Packet packet;
  ASSERT_EQ(receivePacket(other.get(), packet), Receipt::message);
  EXPECT_EQ(packet.type, MessageType::measure);
  ASSERT_EQ(receivePacket(other.get(), packet), Receipt::message);
  EXPECT_EQ(packet.type, MessageType::squash);
}

}  // namespace
}  // namespace caisson::session
