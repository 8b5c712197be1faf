#include "cli/agent/program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "support/environment.h"
#include "support/temp_dir.h"

namespace caisson::cli {
namespace {

/// Runs `check` in a child where `home` is the user's home in /etc/passwd. False: no such namespace is possible here.
template <class Check>
bool withHomeInPasswd(const std::string& home, const test::TempDir& scratch, Check check) {
  const std::string line = "me:x:" + std::to_string(::getuid()) + ":0::" + home + ":/bin/sh\n";
  const std::string passwd = scratch.write("passwd", line);
  const std::string map = std::to_string(::getuid()) + " " + std::to_string(::getuid()) + " 1";
  const bool root = ::geteuid() == 0;
  const pid_t child = ::fork();
  if (child == 0) {
    if (::unshare(CLONE_NEWNS | (root ? 0 : CLONE_NEWUSER)) != 0) ::_exit(77);
    const int file = root ? -1 : ::open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
    if (!root && ::write(file, map.data(), map.size()) != static_cast<ssize_t>(map.size())) ::_exit(77);
    if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) ::_exit(77);
    if (::mount(passwd.c_str(), "/etc/passwd", nullptr, MS_BIND, nullptr) != 0) ::_exit(77);
    ::_exit(check() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) return false;
  EXPECT_EQ(status, 0);
  return true;
}

TEST(AgentProgram, HomeOfTheUserDatabaseIsNotShownIfHomeIsAnother) {
  const test::TempDir scratch;
  const test::TempDir other;
  for (const std::string name : {"bin/agent", ".local/bin/agent"}) {
    const std::string program = scratch.write(name, "#!/bin/sh\n", 0755);
    const bool possible = withHomeInPasswd(scratch.path(), scratch, [&] {
      ::setenv("HOME", other.path().c_str(), 1);
      const auto found = findProgram(program, "/nowhere");
      return found && found->shown == std::vector{program};
    });
    requireOrSkip(possible, "no mount namespace");
  }
}

}  // namespace
}  // namespace caisson::cli
