#include "http/workers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace caisson::http {
namespace {

constexpr std::chrono::seconds kLong{30};

/// Tasks that run until they are released.
class Gate {
 public:
  std::function<void()> task() {
    return [this] {
      ++running;
      opened_.wait();
      ++done;
    };
  }
  void open() { open_.set_value(); }
  std::atomic<int> running = 0, done = 0;

 private:
  std::promise<void> open_;
  std::shared_future<void> opened_ = open_.get_future().share();
};

bool runsWithin(Workers& workers, const std::string& caller) {
  auto ran = std::make_shared<std::promise<void>>();
  auto future = ran->get_future();
  return workers.run([ran] { ran->set_value(); }, caller) && future.wait_for(kLong) == std::future_status::ready;
}

void waitFor(const std::atomic<int>& value, int wanted) {
  const auto end = std::chrono::steady_clock::now() + kLong;
  while (value < wanted && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ASSERT_EQ(value, wanted);
}

TEST(Workers, CallerThatBlocksLeavesThreadsForOthers) {
  Gate gate;
  Workers workers({.threads = 4, .queue = 16, .threads_per_caller = 2, .queue_per_caller = 8, .reserved = 1});
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(workers.run(gate.task(), "a"));
  waitFor(gate.running, 2);
  EXPECT_TRUE(runsWithin(workers, "b"));
  EXPECT_TRUE(runsWithin(workers, ""));
  EXPECT_EQ(gate.running, 2) << "one caller has more threads than its share";
  gate.open();
  waitFor(gate.done, 5);
}

TEST(Workers, SomeThreadsAreReserved) {
  Gate gate;
  Workers workers({.threads = 3, .queue = 16, .threads_per_caller = 1, .reserved = 1});
  for (const char* caller : {"a", "b", "c"}) ASSERT_TRUE(workers.run(gate.task(), caller));
  waitFor(gate.running, 2);
  EXPECT_TRUE(runsWithin(workers, "")) << "callers use the thread of the owner";
  EXPECT_EQ(gate.running, 2);
  gate.open();
  waitFor(gate.done, 3);
}

TEST(Workers, CallersTakeTurns) {
  Gate gate;
  Workers workers({.threads = 1, .queue = 16, .threads_per_caller = 1});
  ASSERT_TRUE(workers.run(gate.task(), "a"));
  std::mutex mutex;
  std::string order;
  std::atomic<int> ended = 0;
  const auto note = [&](char name) {
    return [&, name] {
      const std::lock_guard lock(mutex);
      order += name;
      ++ended;
    };
  };
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(workers.run(note('a'), "a"));
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(workers.run(note('b'), "b"));
  gate.open();
  waitFor(ended, 5);
  const std::lock_guard lock(mutex);
  EXPECT_EQ(order, "ababa");
}

TEST(Workers, TasksThatWaitAreBounded) {
  Gate gate;
  Workers workers({.threads = 1, .queue = 3, .threads_per_caller = 1, .queue_per_caller = 2});
  ASSERT_TRUE(workers.run(gate.task(), "a"));
  EXPECT_TRUE(workers.run(gate.task(), "a"));
  EXPECT_TRUE(workers.run(gate.task(), "a"));
  EXPECT_FALSE(workers.run(gate.task(), "a")) << "more wait than one caller may have";
  EXPECT_TRUE(workers.run(gate.task(), "b"));
  EXPECT_FALSE(workers.run(gate.task(), "b")) << "more wait than all may have";
  gate.open();
  waitFor(gate.done, 4);
}

}  // namespace
}  // namespace caisson::http
