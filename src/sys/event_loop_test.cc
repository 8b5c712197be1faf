#include "sys/event_loop.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace caisson::sys {
namespace {

using Clock = EventLoop::Clock;
using std::chrono::milliseconds;

class EventLoopTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(loop.open()); }
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
  std::uint32_t seen = 0;
  loop.on(event.get(), EPOLLIN, [&](std::uint32_t events) {
    seen = events;
    loop.stop();
  });
  loop.run();
  EXPECT_NE(seen & EPOLLIN, 0U);
}

TEST_F(EventLoopTest, RemovedDescriptorOfTheSameRoundIsNotCalled) {
  const Fd first(::eventfd(1, EFD_CLOEXEC)), second(::eventfd(1, EFD_CLOEXEC));
  int calls = 0;
  const auto ready = [&](int other) {
    return [&, other](std::uint32_t) {
      ++calls;
      loop.remove(other);
      loop.at(Clock::now() + milliseconds(5), [&] { loop.stop(); });
      std::uint64_t value = 0;
      (void)!::read(first.get(), &value, sizeof(value));
    };
  };
  loop.on(first.get(), EPOLLIN, ready(second.get()));
  loop.on(second.get(), EPOLLIN, ready(first.get()));
  loop.run();
  EXPECT_GE(calls, 1);
}

TEST_F(EventLoopTest, NumberThatIsUsedAgainIsAnotherDescriptor) {
  Fd event(::eventfd(1, EFD_CLOEXEC));
  const int number = event.get();
  bool old_called = false, new_called = false;
  loop.on(number, EPOLLIN, [&](std::uint32_t) { old_called = true; });
  loop.remove(number);
  event.reset();
  event = Fd(::eventfd(1, EFD_CLOEXEC));
  ASSERT_EQ(event.get(), number);
  loop.on(number, EPOLLIN, [&](std::uint32_t) {
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
  loop.on(event.get(), EPOLLIN, [&](std::uint32_t) {
    ++calls;
    loop.remove(event.get());
    loop.at(Clock::now() + milliseconds(3), [&] { loop.stop(); });
  });
  loop.run();
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace caisson::sys
