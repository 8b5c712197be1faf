#include "cli/reader_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>

#include "plan/own_filter_testing.h"

namespace caisson::cli {
namespace {

class ReaderFilter : public testing::TestWithParam<Architecture> {};
INSTANTIATE_TEST_SUITE_P(, ReaderFilter, testing::ValuesIn(kArchitectures),
                         [](const auto& each) { return std::string(architectureName(each.param)); });

TEST_P(ReaderFilter, AllowsEveryCallThatTheLibraryMayMakeForTheSameFunction) {
  const plan::SyscallFilter filter = readerFilter(1, GetParam());
  EXPECT_EQ(plan::missingSiblings(filter), std::vector<std::string>());
  EXPECT_EQ(plan::unnoticedRemovals(filter), std::vector<std::string>());
}

std::string failureOf(const std::function<Result<std::string>()>& read) {
  const auto result = readConfined("the file", read);
  return result ? "no failure: " + *result : result.error().message();
}

TEST(ReaderProcess, ReturnsResultsAndErrors) {
  const std::string large(3U << 20, 'x');
  const auto result = readConfined("f", [&]() -> Result<std::string> { return large; });
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_EQ(*result, large);
  EXPECT_NE(failureOf([]() -> Result<std::string> {
              return fail(plainError(Stage::policy, "parse", "f:3", "a reason", "a hint"));
            }).find("f:3"),
            std::string::npos);
}

TEST(ReaderProcess, CrashEndsTheProcessAlone) {
  const std::string killed = failureOf([]() -> Result<std::string> {
    ::raise(SIGKILL);
    ::_exit(0);
  });
  EXPECT_NE(killed.find("was ended"), std::string::npos) << killed;
  const std::string aborted = failureOf([]() -> Result<std::string> { std::abort(); });
  EXPECT_NE(aborted.find("was ended"), std::string::npos) << aborted;
}

TEST(ReaderProcess, ReadsNoFileAndReachesNoSocketOrProcess) {
  const auto result = readConfined("f", []() -> Result<std::string> {
    std::string allowed;
    if (::open("/etc/passwd", O_RDONLY | O_CLOEXEC) >= 0) allowed += "open ";
    if (::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) >= 0) allowed += "socket ";
    if (::fork() >= 0) allowed += "fork ";
    if (::kill(::getppid(), 0) == 0) allowed += "kill ";
    if (::write(2, "", 0) >= 0) allowed += "standard error ";
    return allowed;
  });
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_EQ(*result, "");
}

}  // namespace
}  // namespace caisson::cli
