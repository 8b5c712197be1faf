#include "supervise/streams/stream_relay.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace caisson::supervise {
namespace {

using std::chrono::milliseconds;
using Clock = sys::EventLoop::Clock;

struct RelayPipe {
  RelayPipe() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    read = sys::Fd(ends[0]);
    write = sys::Fd(ends[1]);
  }
  sys::Fd read, write;
};

class StreamRelayTest : public testing::Test {
 protected:
  void runFor(milliseconds time) {
    loop.at(Clock::now() + time, [this] { loop.stop(); });
    loop.run();
  }
  /// Runs until both outputs ended, or for five seconds.
  void runToEnd() {
    loop.afterTurn([this] {
      if (!streams.busy()) loop.stop();
    });
    runFor(std::chrono::seconds(5));
  }
  sys::EventLoop loop;
  StreamRelay streams{loop, "given", false};
  RelayPipe out, err, input;
};

TEST_F(StreamRelayTest, CapturesBothOutputsAndFeedsTheInput) {
  streams.setInput(std::move(input.write));
  streams.setOutput(STDOUT_FILENO, std::move(out.read), StreamMode::capture, 100);
  streams.setOutput(STDERR_FILENO, std::move(err.read), StreamMode::capture, 100);
  ASSERT_EQ(::write(out.write.get(), "one", 3), 3);
  ASSERT_EQ(::write(err.write.get(), "two", 3), 3);
  out.write.reset();
  err.write.reset();
  streams.start([] {});
  runToEnd();
  RunResult result;
  streams.take(result);
  EXPECT_EQ(result.out.data, "one");
  EXPECT_EQ(result.err.data, "two");
  char text[16] = {};
  EXPECT_EQ(::read(input.read.get(), text, sizeof(text)), 5);
  EXPECT_STREQ(text, "given");
  EXPECT_EQ(::read(input.read.get(), text, sizeof(text)), 0) << "the input must end";
}

TEST_F(StreamRelayTest, PausedStreamMovesNothing) {
  std::string seen;
  streams.setOutput(STDOUT_FILENO, std::move(out.read), StreamMode::capture, 100,
                    [&](std::string_view piece) { seen += piece; });
  streams.start([] {});
  streams.setPaused(true);
  ASSERT_EQ(::write(out.write.get(), "x", 1), 1);
  runFor(milliseconds(30));
  EXPECT_EQ(seen, "");
  streams.setPaused(false);
  out.write.reset();
  runToEnd();
  EXPECT_EQ(seen, "x");
}

/// A host prompt opens in the handler of another descriptor, in the same round in which output arrives.
TEST_F(StreamRelayTest, PauseHoldsForOutputOfTheSameRound) {
  RelayPipe egress;
  // The loop serves lower descriptors first: the prompt before the output.
  if (egress.read.get() > out.read.get()) std::swap(egress, out);
  std::string seen;
  streams.setOutput(STDOUT_FILENO, std::move(out.read), StreamMode::capture, 100,
                    [&](std::string_view piece) { seen += piece; });
  loop.on(egress.read.get(), POLLIN, [&](short) { streams.setPaused(true); });
  ASSERT_EQ(::write(egress.write.get(), "q", 1), 1);
  ASSERT_EQ(::write(out.write.get(), "x", 1), 1);
  streams.start([] {});
  loop.afterTurn([this] { loop.stop(); });
  loop.run();
  EXPECT_EQ(seen, "");
}

TEST_F(StreamRelayTest, TailHasTheLastOutput) {
  streams.setOutput(STDERR_FILENO, std::move(err.read), StreamMode::discard, 100);
  ASSERT_EQ(::write(err.write.get(), "last", 4), 4);
  err.write.reset();
  streams.start([] {});
  runToEnd();
  EXPECT_EQ(streams.tail(STDERR_FILENO), "last");
  EXPECT_EQ(streams.tail(STDOUT_FILENO), "");
}

}  // namespace
}  // namespace caisson::supervise
