#include "sys/host_program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdlib>

namespace caisson::sys {
namespace {

using std::chrono::seconds;

constexpr seconds kEnough{20};

/// Runs a shell script with descriptor `to` as a memory file, and returns what it wrote there.
std::string output(const std::string& script, int to, HostProgramOptions options = {}) {
  const Fd file(::memfd_create("output", MFD_CLOEXEC));
  options.arguments = {"/bin/sh", "-c", script};
  options.descriptors.push_back({file.get(), to});
  auto program = HostProgram::start(options);
  if (!program) return program.error().message();
  const auto status = program->wait(kEnough);
  if (status != 0) return "status " + std::to_string(status.value_or(-1));
  char text[512] = {};
  const ssize_t got = ::pread(file.get(), text, sizeof(text), 0);
  return {text, got > 0 ? static_cast<std::size_t>(got) : 0};
}

TEST(HostProgram, UnlistedStreamsAreNull) {
  const char* script = "for fd in 0 1 2; do all=\"$all $(readlink /proc/$$/fd/$fd)\"; done; echo $all >&5";
  EXPECT_EQ(output(script, 5), "/dev/null /dev/null /dev/null\n");
}

TEST(HostProgram, DescriptorsGetTheirNumbersWhateverOursAre) {
  const Fd first(::memfd_create("first", MFD_CLOEXEC)), second(::memfd_create("second", MFD_CLOEXEC));
  HostProgramOptions options;
  options.descriptors = {{first.get(), second.get()}, {second.get(), first.get()}};
  const std::string links =
      output("readlink /proc/self/fd/" + std::to_string(first.get()) + " /proc/self/fd/" + std::to_string(second.get()),
             STDOUT_FILENO, options);
  EXPECT_EQ(links, "/memfd:second (deleted)\n/memfd:first (deleted)\n");
}

TEST(HostProgram, EnvironmentIsEmptyUnlessInherited) {
  ::setenv("HOST_PROGRAM_TEST", "value", 1);
  EXPECT_EQ(output("echo \"$HOST_PROGRAM_TEST\"", STDOUT_FILENO), "\n");
  EXPECT_EQ(output("echo \"$HOST_PROGRAM_TEST\"", STDOUT_FILENO, {.inherit_environment = true}), "value\n");
  ::unsetenv("HOST_PROGRAM_TEST");
}

TEST(HostProgram, SignalsAreNeitherBlockedNorIgnored) {
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, &blocked, &before), 0);
  const auto handler = ::signal(SIGUSR2, SIG_IGN);
  const std::string first = output("kill -USR1 $$; echo alive", STDOUT_FILENO);
  const std::string second = output("kill -USR2 $$; echo alive", STDOUT_FILENO);
  ::signal(SIGUSR2, handler);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  EXPECT_EQ(first, "status " + std::to_string(SIGUSR1));
  EXPECT_EQ(second, "status " + std::to_string(SIGUSR2));
}

TEST(HostProgram, ProgramThatDoesNotExitInTimeIsKilled) {
  auto program = HostProgram::start({.arguments = {"sleep", "1000"}, .search_path = true, .inherit_environment = true});
  ASSERT_TRUE(program) << program.error().message();
  EXPECT_EQ(program->wait(std::chrono::milliseconds(1)), std::nullopt);
  siginfo_t info{};
  EXPECT_EQ(::waitid(P_PIDFD, static_cast<id_t>(program->pidfd()), &info, WEXITED | WNOHANG | WNOWAIT), -1);
  EXPECT_EQ(errno, ECHILD) << "it was not reaped";
}

TEST(HostProgram, StatusIsThatOfTheProgram) {
  auto program = HostProgram::start({.arguments = {"/bin/sh", "-c", "exit 3"}});
  ASSERT_TRUE(program) << program.error().message();
  const auto status = program->wait(kEnough);
  ASSERT_TRUE(status);
  EXPECT_TRUE(WIFEXITED(*status) && WEXITSTATUS(*status) == 3) << *status;
}

TEST(HostProgram, MissingProgramIsAnError) {
  const auto program = HostProgram::start({.arguments = {"/nowhere/program"}});
  ASSERT_FALSE(program);
  EXPECT_NE(program.error().message().find("/nowhere/program"), std::string::npos) << program.error().message();
}

TEST(HostProgram, PathIsSearchedOnlyOnRequest) { EXPECT_FALSE(HostProgram::start({.arguments = {"sleep", "0"}})); }

}  // namespace
}  // namespace caisson::sys
