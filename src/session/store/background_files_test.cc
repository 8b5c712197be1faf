#include "session/store/background_files.h"

#include <gtest/gtest.h>
#include <signal.h>

#include "sys/root_dir_testing.h"

namespace caisson::session {
namespace {

class BackgroundFiles : public testing::Test {
 protected:
  std::uint32_t start(const std::vector<std::string>& command) {
    const auto number = claimNumber(logs_);
    EXPECT_TRUE(number && writeCommandFile(logs_, *number, command));
    return number ? *number : 0;
  }

  sys::fixtures::TempDir directory_;
  sys::RootDir logs_ = std::move(*sys::RootDir::open(directory_.path()));
};

TEST_F(BackgroundFiles, NumbersAreNotUsedTwice) {
  EXPECT_EQ(start({"a"}), 1U);
  EXPECT_EQ(start({"b"}), 2U);
  removeCommandFiles(logs_, 1);
  EXPECT_EQ(start({"c"}), 3U);
  const auto numbers = listCommands(logs_);
  ASSERT_TRUE(numbers);
  EXPECT_EQ(*numbers, (std::vector<std::uint32_t>{2, 3}));
}

TEST_F(BackgroundFiles, RunningCommandIsDescribed) {
  const std::uint32_t exec = start({"sh", "-c", "echo \"ä\n\""});
  sys::fixtures::writeText(directory_.path() + "/1.out", "12345");
  const auto info = describeCommand(logs_, exec, true);
  ASSERT_TRUE(info);
  EXPECT_TRUE(info->running);
  EXPECT_EQ(info->command, (std::vector<std::string>{"sh", "-c", "echo \"ä\n\""}));
  EXPECT_EQ(info->out_bytes, 5U);
}

TEST_F(BackgroundFiles, EndedCommandIsDescribed) {
  const std::uint32_t exec = start({"a"});
  EndRecord record{.status = 3 << 8, .outcome = static_cast<std::uint32_t>(OutcomeKind::exited), .wall_ms = 5};
  record.dropped[1] = 9;
  ASSERT_TRUE(writeEnd(logs_, exec, record));
  const auto info = describeCommand(logs_, exec, true);
  ASSERT_TRUE(info);
  EXPECT_FALSE(info->running);
  EXPECT_EQ(info->outcome, OutcomeKind::exited);
  EXPECT_EQ(info->exit_code, 3);
  EXPECT_EQ(info->err_dropped, 9U);
  EXPECT_DOUBLE_EQ(info->usage.wall_ms, 5);
}

TEST_F(BackgroundFiles, CommandOfASandboxThatIsGoneWasKilled) {
  const std::uint32_t exec = start({"a"});
  const auto before = describeCommand(logs_, exec, false);
  ASSERT_TRUE(before);
  EXPECT_FALSE(before->running);
  EXPECT_EQ(before->signal, SIGKILL);
  writeMissingEnds(logs_);
  const auto after = describeCommand(logs_, exec, true);
  ASSERT_TRUE(after);
  EXPECT_FALSE(after->running) << "the end was written, a new sandbox does not revive it";
  EXPECT_EQ(after->signal, SIGKILL);
  EXPECT_TRUE(before->ended_with_sandbox && after->ended_with_sandbox);
}

TEST_F(BackgroundFiles, StopMarkIsReadOnceTheCommandEnded) {
  const std::uint32_t exec = start({"a"});
  ASSERT_TRUE(markStopped(logs_, exec));
  EXPECT_FALSE(describeCommand(logs_, exec, true)->stopped);
  ASSERT_TRUE(writeEnd(logs_, exec, {.status = SIGTERM, .wall_ms = 5}));
  const auto info = describeCommand(logs_, exec, true);
  ASSERT_TRUE(info);
  EXPECT_TRUE(info->stopped);
  EXPECT_FALSE(info->ended_with_sandbox);
}

TEST_F(BackgroundFiles, StopMarkAfterTheEndChangesNothing) {
  const std::uint32_t exec = start({"a"});
  ASSERT_TRUE(writeEnd(logs_, exec, {.wall_ms = 5}));
  EXPECT_FALSE(describeCommand(logs_, exec, true)->stopped);
  ASSERT_TRUE(markStopped(logs_, exec));
  EXPECT_FALSE(describeCommand(logs_, exec, true)->stopped);
}

TEST_F(BackgroundFiles, OldEndedCommandsAreRemovedRunningOnesStay) {
  std::vector<std::uint32_t> numbers;
  for (int count = 0; count < 5; ++count) numbers.push_back(start({"a"}));
  for (const int at : {0, 2, 3, 4}) ASSERT_TRUE(writeEnd(logs_, numbers[at], {.wall_ms = 1}));
  ASSERT_TRUE(removeEnded(logs_, 2, true));
  EXPECT_EQ(*listCommands(logs_), (std::vector<std::uint32_t>{numbers[1], numbers[3], numbers[4]}));
  ASSERT_TRUE(removeEnded(logs_, 1, false));
  EXPECT_EQ(*listCommands(logs_), (std::vector<std::uint32_t>{numbers[4]}));
  EXPECT_EQ(start({"a"}), numbers[4] + 1) << "numbers are not used twice";
}

TEST_F(BackgroundFiles, BlockedCallsAreReadAsWrittenAndPrintable) {
  const std::uint32_t exec = start({"a"});
  Violation one;
  one.syscall = "bpf";
  one.object = "\x1b[2Jx";
  one.number = 321;
  one.count = 4;
  one.arguments[5] = UINT64_MAX;
  ASSERT_TRUE(writeBlocked(logs_, exec, {one}));
  const auto info = describeCommand(logs_, exec, true);
  ASSERT_TRUE(info);
  ASSERT_EQ(info->violations.size(), 1U);
  EXPECT_EQ(info->violations[0].syscall, "bpf");
  EXPECT_EQ(info->violations[0].object, "?[2Jx");
  EXPECT_EQ(info->violations[0].count, 4U);
  EXPECT_EQ(info->violations[0].arguments[5], UINT64_MAX);
}

TEST_F(BackgroundFiles, DamagedEndRecordIsIgnored) {
  const std::uint32_t exec = start({"a"});
  sys::fixtures::writeText(directory_.path() + "/1.end", "short");
  const auto info = describeCommand(logs_, exec, true);
  ASSERT_TRUE(info);
  EXPECT_TRUE(info->running);
}

TEST_F(BackgroundFiles, UnknownNumberIsAnError) { EXPECT_FALSE(describeCommand(logs_, 7, true)); }

}  // namespace
}  // namespace caisson::session
