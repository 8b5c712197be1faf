#include "sys/event_loop.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdio>

#include "sys/fd.h"

namespace caisson::sys {
namespace {

using Clock = EventLoop::Clock;
using std::chrono::milliseconds;

class EventLoopTest : public testing::Test {
 protected:
  EventLoop loop;
};

TEST_F(EventLoopTest, RunsTimersInOrderOfTheirTime) {
  std::string order;
  loop.at(Clock::now() + milliseconds(4), [&] {
    order += "b";
    loop.stop();
  });
  loop.at(Clock::now() + milliseconds(1), [&] { order += "a"; });
  loop.run();
  EXPECT_EQ(order, "ab");
}

TEST_F(EventLoopTest, CancelledTimerDoesNotRun) {
  bool ran = false;
  const auto timer = loop.at(Clock::now() + milliseconds(1), [&] { ran = true; });
  loop.cancel(timer);
  loop.cancel(timer);
  loop.cancel(0);
  loop.at(Clock::now() + milliseconds(5), [&] { loop.stop(); });
  loop.run();
  EXPECT_FALSE(ran);
}

TEST_F(EventLoopTest, TimerMayAddAndCancelTimers) {
  int count = 0;
  std::function<void()> again = [&] {
    if (++count == 3) return loop.stop();
    loop.at(Clock::now(), again);
  };
  loop.at(Clock::now(), again);
  loop.run();
  EXPECT_EQ(count, 3);
}

TEST_F(EventLoopTest, ReadyDescriptorRunsItsFunction) {
  const Fd event(::eventfd(1, EFD_CLOEXEC));
  short seen = 0;
  loop.on(event.get(), POLLIN, [&](short events) {
    seen = events;
    loop.stop();
  });
  loop.run();
  EXPECT_NE(seen & POLLIN, 0U);
}

/// Standard input may be a regular file, which epoll rejects.
TEST_F(EventLoopTest, RegularFileIsReady) {
  std::FILE* file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  bool called = false;
  loop.on(::fileno(file), POLLIN, [&](short) {
    called = true;
    loop.stop();
  });
  loop.at(Clock::now() + std::chrono::seconds(5), [&] { loop.stop(); });
  loop.run();
  std::fclose(file);
  EXPECT_TRUE(called);
}

TEST_F(EventLoopTest, RemovedDescriptorOfTheSameRoundIsNotCalled) {
  const Fd first(::eventfd(1, EFD_CLOEXEC)), second(::eventfd(1, EFD_CLOEXEC));
  int calls = 0;
  const auto ready = [&](int other) {
    return [&, other](short) {
      ++calls;
      loop.remove(other);
      loop.at(Clock::now() + milliseconds(5), [&] { loop.stop(); });
      std::uint64_t value = 0;
      (void)!::read(first.get(), &value, sizeof(value));
    };
  };
  loop.on(first.get(), POLLIN, ready(second.get()));
  loop.on(second.get(), POLLIN, ready(first.get()));
  loop.run();
  EXPECT_GE(calls, 1);
}

TEST_F(EventLoopTest, NumberThatIsUsedAgainIsAnotherDescriptor) {
  Fd event(::eventfd(1, EFD_CLOEXEC));
  const int number = event.get();
  bool old_called = false, new_called = false;
  loop.on(number, POLLIN, [&](short) { old_called = true; });
  loop.remove(number);
  event.reset();
  event = Fd(::eventfd(1, EFD_CLOEXEC));
  ASSERT_EQ(event.get(), number);
  loop.on(number, POLLIN, [&](short) {
    new_called = true;
    loop.stop();
  });
  loop.run();
  EXPECT_FALSE(old_called);
  EXPECT_TRUE(new_called);
}

TEST_F(EventLoopTest, FunctionMayRemoveItself) {
  const Fd event(::eventfd(1, EFD_CLOEXEC));
  int calls = 0;
  loop.on(event.get(), POLLIN, [&](short) {
    ++calls;
    loop.remove(event.get());
    loop.at(Clock::now() + milliseconds(3), [&] { loop.stop(); });
  });
  loop.run();
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace caisson::sys
