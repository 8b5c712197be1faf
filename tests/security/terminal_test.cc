// The payload cannot use the caller's terminal (CVE-2017-5226, CVE-2019-10063).
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include "security/attack.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

struct TerminalOutput {
  std::string screen;  ///< output on the terminal
  int exit_status = -1;
};

/// Runs a command on a new terminal, as a login does. Its output goes to the terminal.
TerminalOutput onTerminal(const std::vector<std::string>& command) {
  int master = -1;
  std::vector<char*> words;
  std::vector<std::string> copies = command;
  for (std::string& word : copies) words.push_back(word.data());
  words.push_back(nullptr);
  const pid_t pid = forkpty(&master, nullptr, nullptr, nullptr);
  if (pid == 0) {
    execvp(words[0], words.data());
    _exit(127);
  }
  TerminalOutput result;
  char buffer[4096];
  for (;;) {
    pollfd waiting{master, POLLIN, 0};
    if (poll(&waiting, 1, 10000) <= 0) break;
    const ssize_t count = read(master, buffer, sizeof(buffer));
    if (count <= 0) break;
    result.screen.append(buffer, static_cast<std::size_t>(count));
  }
  int status = 0;
  if (waitpid(pid, &status, WNOHANG) != pid) {
    sleepFor(std::chrono::milliseconds(500));
    if (waitpid(pid, &status, WNOHANG) != pid) {
      kill(pid, SIGKILL);
      waitpid(pid, &status, 0);
    }
  }
  result.exit_status = WEXITSTATUS(status);
  close(master);
  return result;
}

std::string sandboxed(const std::string& program, const std::string& verb) {
  return program + " --workspace :none --ro " + payloadPath() + " -- " + payloadPath() + " " + verb;
}

std::string real() { return caissonBinary() + " run --quiet"; }
std::string without(const std::string& protections) { return weakenedPath() + " " + protections; }

/// The standard streams are not a terminal, but the session has one: /dev/tty.
TEST(CallersTerminal, CannotBeWrittenOn) {
  CONFORMS("R-PROCESS-12");
  const std::string mark = uniqueWord("mark");
  const std::string verb = "write-on-terminal /dev/tty " + mark;
  const std::string quiet = " </dev/null >/dev/null 2>&1";
  EXPECT_EQ(onTerminal({"/bin/sh", "-c", sandboxed(real(), verb) + quiet}).screen.find(mark), std::string::npos);
  if (!mayWeaken()) return;
  EXPECT_NE(onTerminal({"/bin/sh", "-c", sandboxed(without("new-session"), verb) + quiet}).screen.find(mark),
            std::string::npos);
}

TEST(CallersTerminal, CannotBeTypedInto) {
  CONFORMS("R-PROCESS-12", "R-SYSCALL-11");
  const std::string quiet = " </dev/null 2>&1 | cat";
  const std::string verb = "type-character /dev/tty";
  EXPECT_NE(onTerminal({"/bin/sh", "-c", sandboxed(real(), verb) + quiet}).screen.find("refused: open"),
            std::string::npos);
  if (!mayWeaken() || readFile("/proc/sys/dev/tty/legacy_tiocsti") == "0\n") return;
  // Without a separate session the filter still protects; without the filter, nothing does.
  EXPECT_NE(
      onTerminal({"/bin/sh", "-c", sandboxed(without("new-session"), verb) + quiet}).screen.find("refused: ioctl"),
      std::string::npos);
  EXPECT_NE(onTerminal({"/bin/sh", "-c", sandboxed(without("new-session,seccomp"), verb) + quiet}).screen.find("done"),
            std::string::npos);
}

class TerminalRequest : public testing::TestWithParam<const char*> {};

/// Also on the sandbox's own terminal: the filter cannot tell them apart. The kernel reads 32 of the request's 64 bits,
/// and so must the filter.
TEST_P(TerminalRequest, IsRefusedWhateverItsHighBits) {
  CONFORMS("R-PROCESS-12", "R-SYSCALL-11");
  for (const std::string bits : {"", " high-bits"}) {
    const std::string verb = std::string(GetParam()) + " /dev/tty" + bits;
    EXPECT_NE(onTerminal({"/bin/sh", "-c", sandboxed(real(), verb)}).screen.find("refused: ioctl: EPERM"),
              std::string::npos)
        << verb;
    if (runsAsRoot()) continue;
    if (std::string(GetParam()) == "type-character" && readFile("/proc/sys/dev/tty/legacy_tiocsti") == "0\n") continue;
    EXPECT_NE(onTerminal({"/bin/sh", "-c", sandboxed(without("seccomp"), verb)}).screen.find("done"), std::string::npos)
        << verb;
    // The bug of CVE-2019-10063: the plain request is denied, the disguised one is not.
    const char* expected = bits.empty() ? "refused: ioctl: EPERM" : "done";
    EXPECT_NE(onTerminal({"/bin/sh", "-c", sandboxed(without("request-mask"), verb)}).screen.find(expected),
              std::string::npos)
        << verb;
  }
}

INSTANTIATE_TEST_SUITE_P(Each, TerminalRequest, testing::Values("type-character", "ask-console"),
                         [](const auto& test) { return test.index == 0 ? "TIOCSTI" : "TIOCLINUX"; });

TEST(InteractiveRun, HasAPrivateTerminal) {
  const TerminalOutput output = onTerminal({"/bin/sh", "-c", sandboxed(real(), "terminal-name")});
  EXPECT_NE(output.screen.find("done: /dev/pts/0"), std::string::npos) << output.screen;
  EXPECT_EQ(output.exit_status, 0);
}

}  // namespace
}  // namespace caisson::test
