#include "sys/pipe.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cerrno>
#include <functional>

namespace caisson::sys {
namespace {

/// Runs `body` in a child, whose descriptors it may change; returns what it returns.
int inPipeChild(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Pipe, CarriesDataAndIsClosedOnExec) {
  auto pipe = makePipe(Stage::launch);
  ASSERT_TRUE(pipe) << pipe.error().message();
  for (const Fd* end : {&pipe->read, &pipe->write}) EXPECT_EQ(::fcntl(end->get(), F_GETFD), FD_CLOEXEC);
  ASSERT_EQ(::write(pipe->write.get(), "x", 1), 1);
  pipe->write.reset();
  char byte = 0;
  EXPECT_EQ(::read(pipe->read.get(), &byte, 1), 1);
  EXPECT_EQ(byte, 'x');
  EXPECT_EQ(::read(pipe->read.get(), &byte, 1), 0) << "an end was left open";
}

TEST(Pipe, LeavesClosedStandardDescriptorsClosed) {
  EXPECT_EQ(inPipeChild([] {
              for (int number = 0; number <= 2; ++number) ::close(number);
              const auto pipe = makePipe(Stage::launch);
              if (!pipe || pipe->read.get() <= 2 || pipe->write.get() <= 2) return 1;
              for (int number = 0; number <= 2; ++number) {
                if (::fcntl(number, F_GETFD) != -1) return 2;
              }
              for (const Fd* end : {&pipe->read, &pipe->write}) {
                if (::fcntl(end->get(), F_GETFD) != FD_CLOEXEC) return 3;
              }
              return 0;
            }),
            0);
}

TEST(Pipe, FullDescriptorTableIsAnErrorThatNamesItsUser) {
  EXPECT_EQ(inPipeChild([] {
              const rlimit none{0, 0};
              ::setrlimit(RLIMIT_NOFILE, &none);
              const auto pipe = makePipe(Stage::mounts, "object");
              if (pipe) return 1;
              const Error& error = pipe.error();
              return error.sys_errno == EMFILE && error.stage == Stage::mounts && error.object == "object" ? 0 : 2;
            }),
            0);
}

}  // namespace
}  // namespace caisson::sys
