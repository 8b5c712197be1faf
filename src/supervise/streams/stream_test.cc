#include "supervise/streams/stream.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <optional>

#include "support/temp_dir.h"

namespace caisson::supervise {
namespace {

using Clock = std::chrono::steady_clock;
using sys::Fd;
using test::TempDir;

constexpr std::uint64_t kNoLimit = ~0ULL;

struct Pipe {
  Fd read, write;

  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) std::abort();
    read = Fd(ends[0]);
    write = Fd(ends[1]);
  }
};

/// Writes until the pipe is full; returns the number of bytes.
std::size_t fill(int fd, char byte = 'x') {
  const std::string chunk(4096, byte);
  std::size_t total = 0;
  for (;;) {
    const ssize_t done = ::write(fd, chunk.data(), chunk.size());
    if (done <= 0) return total;
    total += static_cast<std::size_t>(done);
  }
}

void put(const Fd& fd, std::string_view text) {
  ASSERT_EQ(::write(fd.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

/// Reads what is available now.
std::string get(const Fd& fd) {
  std::string text;
  char buffer[4096];
  ssize_t count = 0;
  while ((count = ::read(fd.get(), buffer, sizeof(buffer))) > 0) text.append(buffer, static_cast<std::size_t>(count));
  return text;
}

class OutputStreamTest : public testing::Test {
 protected:
  void SetUp() override { previous_ = std::signal(SIGPIPE, SIG_IGN); }  // as the supervisor has it
  void TearDown() override { std::signal(SIGPIPE, previous_); }

  OutputStream& open(StreamMode mode, std::uint64_t limit = kNoLimit, int sink = -1) {
    stream_.emplace(std::move(payload.read), mode, sink, limit);
    return *stream_;
  }

  /// Closes the payload's side and returns the stream.
  Stream finish(int patience_ms = 1000) {
    payload.write.reset();
    stream_->drain(patience_ms);
    return stream_->take();
  }

  Pipe payload;

 private:
  std::optional<OutputStream> stream_;
  void (*previous_)(int) = nullptr;
};

TEST_F(OutputStreamTest, KeepsWhatIsWithinTheLimit) {
  OutputStream& stream = open(StreamMode::capture, 5);
  put(payload.write, "12345");
  stream.pump();
  const Stream result = finish();
  EXPECT_EQ(result.data, "12345");
  EXPECT_FALSE(result.truncated);
  EXPECT_EQ(result.dropped, 0U);
}

TEST_F(OutputStreamTest, CountsWhatLiesBeyondTheLimit) {
  OutputStream& stream = open(StreamMode::capture, 5);
  put(payload.write, "123");
  stream.pump();
  put(payload.write, "4567");
  stream.pump();
  put(payload.write, "89");
  const Stream result = finish();
  EXPECT_EQ(result.data, "12345");
  EXPECT_TRUE(result.truncated);
  EXPECT_EQ(result.dropped, 4U);
}

TEST_F(OutputStreamTest, IsFloodedWhenFarBeyondTheLimit) {
  Pipe pipe;
  OutputStream stream(std::move(pipe.read), StreamMode::capture, -1, 100, 50);
  put(pipe.write, std::string(150, 'x'));
  stream.pump();
  EXPECT_FALSE(stream.flooded());
  put(pipe.write, "x");
  stream.pump();
  EXPECT_TRUE(stream.flooded());
}

TEST_F(OutputStreamTest, ALimitOfZeroKeepsNothingAndCountsAll) {
  open(StreamMode::capture, 0);
  put(payload.write, "123");
  const Stream result = finish();
  EXPECT_EQ(result.data, "");
  EXPECT_EQ(result.dropped, 3U);
}

TEST_F(OutputStreamTest, FloodIsReadToItsEndWithBoundedMemory) {
  OutputStream& stream = open(StreamMode::capture, 100);
  std::size_t written = 0;
  for (int round = 0; round < 50; ++round) {
    const std::size_t more = fill(payload.write.get());
    EXPECT_GT(more, 0U) << "the payload is stuck";
    written += more;
    for (int pump = 0; pump < 4; ++pump) stream.pump();
  }
  const Stream result = finish();
  EXPECT_EQ(result.data.size(), 100U);
  EXPECT_EQ(result.dropped, written - 100);
}

TEST_F(OutputStreamTest, KeepsEveryByteOfBinaryOutput) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  open(StreamMode::capture);
  put(payload.write, all + all);
  EXPECT_EQ(finish().data, all + all);
}

TEST_F(OutputStreamTest, DiscardsAndStillCounts) {
  open(StreamMode::discard, 2);
  put(payload.write, "12345");
  const Stream result = finish();
  EXPECT_EQ(result.data, "");
  EXPECT_EQ(result.dropped, 3U);
}

TEST_F(OutputStreamTest, RelaysBytesAsTheyCome) {
  Pipe reader;
  OutputStream& stream = open(StreamMode::relay, kNoLimit, reader.write.get());
  put(payload.write, std::string_view("a\0b", 3));
  stream.pump();
  EXPECT_EQ(get(reader.read), std::string("a\0b", 3));
  put(payload.write, "later");
  finish();
  EXPECT_EQ(get(reader.read), "later");
}

TEST_F(OutputStreamTest, RelaysNoMoreThanTheLimit) {
  Pipe reader;
  open(StreamMode::relay, 4, reader.write.get());
  put(payload.write, "123456");
  const Stream result = finish();
  EXPECT_EQ(get(reader.read), "1234");
  EXPECT_TRUE(result.truncated);
  EXPECT_EQ(result.dropped, 2U);
}

TEST_F(OutputStreamTest, SlowReaderBlocksThePayloadButNotTheRelay) {
  Pipe reader;
  OutputStream& stream = open(StreamMode::relay, kNoLimit, reader.write.get());
  const std::size_t room = fill(reader.write.get(), 'r');
  const auto began = Clock::now();
  std::size_t accepted = 0;
  for (int round = 0; round < 20; ++round) {
    accepted += fill(payload.write.get());
    stream.pump();
  }
  EXPECT_LT(Clock::now() - began, std::chrono::seconds(2)) << "pump() waited for the reader";
  EXPECT_LT(accepted, 512U * 1024) << "what the reader does not take piles up in our memory";
  // While something is pending only the sink is polled: a readable source would spin the poll loop.
  std::vector<pollfd> polls;
  stream.addPolls(polls);
  ASSERT_EQ(polls.size(), 1U);
  EXPECT_EQ(polls[0].fd, reader.write.get());
  EXPECT_EQ(polls[0].events, POLLOUT);
  // The reader wakes up: nothing was lost.
  payload.write.reset();
  std::size_t received = 0;
  for (int round = 0; round < 200 && received < room + accepted; ++round) {
    received += get(reader.read).size();
    stream.pump();
  }
  EXPECT_EQ(received, room + accepted);
}

TEST_F(OutputStreamTest, WritesToABlockingSinkNeverBlock) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);  // like a shell's pipe: blocking
  const Fd read_end(ends[0]);
  const Fd write_end(ends[1]);
  OutputStream& stream = open(StreamMode::relay, kNoLimit, write_end.get());
  ::alarm(20);  // a blocking write would hang the test forever
  for (int round = 0; round < 20; ++round) {
    fill(payload.write.get());
    stream.pump();
  }
  ::alarm(0);
}

TEST_F(OutputStreamTest, StalledReaderDoesNotDelayTheEnd) {
  Pipe reader;
  OutputStream& stream = open(StreamMode::relay, kNoLimit, reader.write.get());
  fill(reader.write.get());
  put(payload.write, "lost words");
  stream.pump();
  const auto began = Clock::now();
  const Stream result = finish(100);
  EXPECT_LT(Clock::now() - began, std::chrono::seconds(3));
  EXPECT_TRUE(result.truncated);
  EXPECT_EQ(result.dropped, 10U) << "what was thrown away is counted";
}

TEST_F(OutputStreamTest, AReaderThatIsGoneClosesThePayloadsOutput) {
  Pipe reader;
  OutputStream& stream = open(StreamMode::relay, kNoLimit, reader.write.get());
  reader.read.reset();
  put(payload.write, "anybody?");
  stream.pump();
  EXPECT_FALSE(stream.open());
  EXPECT_EQ(::write(payload.write.get(), "x", 1), -1) << "the payload does not learn that the reader is gone";
  EXPECT_EQ(errno, EPIPE);
}

TEST_F(OutputStreamTest, ARegularFileGetsEverythingInOrder) {
  const TempDir dir;
  const std::string path = dir / "out";
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  OutputStream& stream = open(StreamMode::relay, kNoLimit, file.get());
  std::string wanted;
  for (char byte = 'a'; byte <= 'z'; ++byte) {
    wanted += std::string(fill(payload.write.get(), byte), byte);
    stream.pump();
  }
  finish();
  EXPECT_TRUE(test::readFile(path) == wanted);
}

TEST_F(OutputStreamTest, TheEndOfThePayloadsOutputClosesTheStream) {
  OutputStream& stream = open(StreamMode::capture);
  EXPECT_TRUE(stream.open());
  payload.write.reset();
  stream.pump();
  EXPECT_FALSE(stream.open());
  std::vector<pollfd> polls;
  stream.addPolls(polls);
  EXPECT_TRUE(polls.empty()) << "a closed stream would be polled for ever";
}

TEST_F(OutputStreamTest, GrandchildThatKeepsThePipeOpenDoesNotDelayTheEnd) {
  open(StreamMode::capture);
  put(payload.write, "said");
  Fd kept(::fcntl(payload.write.get(), F_DUPFD_CLOEXEC, 3));
  const auto began = Clock::now();
  EXPECT_EQ(finish().data, "said");
  EXPECT_LT(Clock::now() - began, std::chrono::seconds(2));
}

}  // namespace
}  // namespace caisson::supervise
