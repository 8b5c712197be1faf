#include "session/protocol.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace caisson::session {
namespace {

class PacketTest : public testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    left = sys::Fd(ends[0]);
    right = sys::Fd(ends[1]);
  }
  sys::Fd left, right;
};

CommandOptions someOptions() {
  CommandOptions options;
  options.command = {"sh", "-c", std::string("echo \0 x", 8)};
  options.environment = {{"A", "1"}, {"B", ""}};
  options.working_directory = "/workspace/src";
  options.timeout_seconds = 2.5;
  options.background = options.keep_input = true;
  options.input = "in";
  options.terminal.stream[1] = true;
  options.terminal.rows = 50;
  return options;
}

TEST(SessionCodec, ValueRoundTrips) {
  const CommandOptions sent = someOptions();
  const auto received = codec::decode<CommandOptions>(codec::encode(sent));
  ASSERT_TRUE(received);
  EXPECT_EQ(received->command, sent.command);
  EXPECT_EQ(received->environment, sent.environment);
  EXPECT_EQ(received->timeout_seconds, sent.timeout_seconds);
  EXPECT_TRUE(received->background && received->keep_input && received->terminal.stream[1]);
  EXPECT_EQ(received->terminal.rows, 50);
}

TEST(SessionCodec, ResultKeepsViolationsEscapeAndError) {
  RunResult sent;
  sent.outcome = OutcomeKind::denied;
  sent.limit = Limit::memory;
  Violation violation;
  violation.syscall = "bpf";
  violation.arguments[2] = 7;
  violation.count = 3;
  sent.violations.push_back(violation);
  sent.escape = Escape{.severity = "CRITICAL", .rollback = "rolled back"};
  sent.error = sysError(Stage::mounts, "mount", "/x", EPERM, "hint");
  sent.usage.processes_peak = 9;
  const auto received = codec::decode<RunResult>(codec::encode(sent));
  ASSERT_TRUE(received);
  EXPECT_EQ(received->outcome, OutcomeKind::denied);
  EXPECT_EQ(received->limit, Limit::memory);
  ASSERT_EQ(received->violations.size(), 1U);
  EXPECT_EQ(received->violations[0].syscall, "bpf");
  EXPECT_EQ(received->violations[0].arguments[2], 7U);
  EXPECT_EQ(received->escape->rollback, "rolled back");
  EXPECT_EQ(received->error->sys_errno, EPERM);
  EXPECT_EQ(received->usage.processes_peak, 9U);
}

TEST(SessionCodec, TruncatedOrExtendedBytesAreRejected) {
  const std::string bytes = codec::encode(someOptions());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(codec::decode<CommandOptions>(std::string_view(bytes).substr(0, size))) << size;
  }
  EXPECT_FALSE(codec::decode<CommandOptions>(bytes + "x"));
}

TEST(SessionCodec, HugeCountsAllocateNothing) {
  const std::string bytes(64, '\xff');
  EXPECT_FALSE(codec::decode<CommandOptions>(bytes));
  EXPECT_FALSE(codec::decode<ProcessList>(bytes));
}

struct CodecPart {
  std::int32_t a = 1;
};
struct OlderMessage {
  std::vector<CodecPart> parts;
  std::string text = "default";
};
struct NewerCodecPart {
  std::int32_t a = 1;
  std::string b = "b";
};
struct NewerMessage {
  std::vector<NewerCodecPart> parts;
  std::string text = "default";
  std::optional<NewerCodecPart> added;
  bool flag = true;
};
template <class A, Of<CodecPart> T>
void fields(A& archive, T& v) {
  archive(v.a);
}
template <class A, Of<OlderMessage> T>
void fields(A& archive, T& v) {
  archive(v.parts, v.text);
}
template <class A, Of<NewerCodecPart> T>
void fields(A& archive, T& v) {
  archive(v.a, v.b);
}
template <class A, Of<NewerMessage> T>
void fields(A& archive, T& v) {
  archive(v.parts, v.text, v.added, v.flag);
}

TEST(SessionCodec, OlderReaderIgnoresAppendedMembersAlsoOfInnerStructures) {
  const NewerMessage sent{.parts = {{.a = 7, .b = "x"}, {.a = 8, .b = "y"}},
                          .text = "t",
                          .added = NewerCodecPart{.a = 9, .b = "z"},
                          .flag = false};
  const auto received = codec::decode<OlderMessage>(codec::encode(sent));
  ASSERT_TRUE(received);
  ASSERT_EQ(received->parts.size(), 2U);
  EXPECT_EQ(received->parts[1].a, 8);
  EXPECT_EQ(received->text, "t");
}

TEST(SessionCodec, NewerReaderKeepsDefaultsOfMissingMembers) {
  const auto received =
      codec::decode<NewerMessage>(codec::encode(OlderMessage{.parts = {{.a = 7}, {.a = 8}}, .text = "t"}));
  ASSERT_TRUE(received);
  ASSERT_EQ(received->parts.size(), 2U);
  EXPECT_EQ(received->parts[1].a, 8);
  EXPECT_EQ(received->parts[1].b, "b");
  EXPECT_EQ(received->text, "t");
  EXPECT_FALSE(received->added);
  EXPECT_TRUE(received->flag);
}

TEST(SessionCodec, MemberThatEndsEarlyIsRefused) {
  std::string bytes = codec::encode(OlderMessage{.parts = {}, .text = "text"});
  bytes.pop_back();
  const auto size = static_cast<std::uint32_t>(bytes.size() - sizeof(std::uint32_t));
  std::memcpy(bytes.data(), &size, sizeof(size));
  EXPECT_FALSE(codec::decode<OlderMessage>(bytes));
}

TEST(ProtocolRange, CommonVersionIsTheNewestOfBoth) {
  EXPECT_EQ(commonProtocol({8, 8}, {8, 8}), 8);
  EXPECT_EQ(commonProtocol({8, 10}, {8, 9}), 9);
  EXPECT_EQ(commonProtocol({8, 8}, {7, 12}), 8);
  EXPECT_FALSE(commonProtocol({8, 8}, {9, 12}));
  EXPECT_FALSE(commonProtocol({9, 12}, {0, 8}));
}

TEST_F(PacketTest, SenderWithoutACommonVersionIsReported) {
  ASSERT_EQ(sendPacket(left.get(), MessageType::welcome, "value"), 0);
  char bytes[256];
  const ssize_t size = ::recv(right.get(), bytes, sizeof(bytes), 0);
  ASSERT_GT(size, 4);
  const auto sendWith = [&](std::uint32_t protocol) {
    std::memcpy(bytes, &protocol, sizeof(protocol));
    ASSERT_EQ(::send(left.get(), bytes, static_cast<std::size_t>(size), 0), size);
  };
  Packet packet;
  sendWith(0x43540000U | (ownProtocols().newest + 1U) << 8U | 0xffU);
  EXPECT_EQ(receivePacket(right.get(), packet), Receipt::other_version);
  EXPECT_EQ(packet.sender, (ProtocolRange{static_cast<std::uint8_t>(ownProtocols().newest + 1), 0xff}));
  EXPECT_EQ(packet.value, "value");
  sendWith(0x43540007U);  // the last version without a range
  EXPECT_EQ(receivePacket(right.get(), packet), Receipt::other_version);
  sendWith(0x43540000U | ownProtocols().oldest << 8U | 0xffU);
  EXPECT_EQ(receivePacket(right.get(), packet), Receipt::message);
  sendWith(0x43550808U);
  EXPECT_EQ(receivePacket(right.get(), packet), Receipt::closed);
}

TEST_F(PacketTest, CarriesValueAndDescriptors) {
  ASSERT_EQ(sendPacket(left.get(), MessageType::exec, "value", {0, 1}), 0);
  Packet packet;
  ASSERT_EQ(receivePacket(right.get(), packet), Receipt::message);
  EXPECT_EQ(packet.type, MessageType::exec);
  EXPECT_EQ(packet.value, "value");
  ASSERT_EQ(packet.descriptors.size(), 2U);
  for (const sys::Fd& one : packet.descriptors) EXPECT_NE(::fcntl(one.get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST_F(PacketTest, LongValueTravelsInAMemoryFile) {
  const std::string value(3U << 20, 'v');
  ASSERT_EQ(sendPacket(left.get(), MessageType::finished, value, {0}), 0);
  Packet packet;
  ASSERT_EQ(receivePacket(right.get(), packet), Receipt::message);
  EXPECT_EQ(packet.value, value);
  EXPECT_EQ(packet.descriptors.size(), 1U);
}

TEST_F(PacketTest, NoPacketAndEndAreDistinguished) {
  Packet packet;
  EXPECT_EQ(receivePacket(right.get(), packet), Receipt::nothing);
  left.reset();
  EXPECT_EQ(receivePacket(right.get(), packet), Receipt::closed);
}

TEST_F(PacketTest, GarbageIsTreatedAsTheEnd) {
  Packet packet;
  ASSERT_EQ(::send(left.get(), "garbage", 7, 0), 7);
  EXPECT_EQ(receivePacket(right.get(), packet), Receipt::closed);
  const std::string zeros(200, '\0');
  ASSERT_EQ(::send(left.get(), zeros.data(), zeros.size(), 0), 200);
  EXPECT_EQ(receivePacket(right.get(), packet), Receipt::closed);
}

TEST_F(PacketTest, PeerThatIsGoneIsAnError) {
  right.reset();
  EXPECT_EQ(sendPacket(left.get(), MessageType::done, ""), EPIPE);
}

TEST_F(PacketTest, PeerThatDoesNotReadIsNotWaitedFor) {
  int error = 0;
  for (int i = 0; i < 10'000 && error == 0; ++i) {
    error = sendPacket(left.get(), MessageType::done, std::string(1000, 'x'), {}, false);
  }
  EXPECT_EQ(error, EAGAIN);
}

}  // namespace
}  // namespace caisson::session
