// Who may use a session's socket, and what a payload can do to pid 1 of a session.
#include <sys/stat.h>

#include "functional/session.h"
#include "session/protocol.h"

namespace caisson::test {
namespace {

using SessionSocket = SessionTest;

/// Connects and says hello; prints how many bytes came back.
std::string helloScript(const std::string& socket) {
  return "import socket, struct\n"
         "s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
         "s.settimeout(5)\n"
         "s.connect('" +
         socket +
         "')\n"
         "try:\n"
         "  s.send(struct.pack('<II', " +
         std::to_string(session::kProtocol) + ", 0) + bytes(" + std::to_string(sizeof(session::Request) - 8) +
         "))\n"
         "  print(len(s.recv(4096)))\n"
         "except OSError: print(0)\n";
}

TEST_F(SessionSocket, IsPrivateAndOutOfTheSandboxesSight) {
  Session session = create();
  struct stat status{};
  ASSERT_EQ(::stat((home_path + "/sessions").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700U);
  ASSERT_EQ(::stat((home_path + "/sessions/" + session.id()).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700U);
  EXPECT_EQ(output(session, "ls " + home_path + " 2>/dev/null || echo unseen; grep -c control /proc/net/unix || true"),
            "unseen\n0\n");
}

TEST_F(SessionSocket, TurnsAwayWhoeverIsInsideThePidNamespace) {
  requireOrSkip(runsAsRoot() && hasProgram("nsenter") && hasProgram("python3"),
                "entering a session's pid namespace by hand needs root, nsenter and python3");
  Session session = create();
  const auto json = nlohmann::json::parse(readFile(home_path + "/sessions/" + session.id() + "/init.json"));
  const std::string pid = std::to_string(json["pid"].get<pid_t>());
  const std::string script = helloScript(home_path + "/sessions/" + session.id() + "/control");
  EXPECT_EQ(runProgram({"python3", "-c", script}).out, std::to_string(sizeof(session::Reply)) + "\n")
      << "its owner outside is welcome";
  EXPECT_EQ(runProgram({"nsenter", "-t", pid, "-p", "python3", "-c", script}).out, "0\n");
}

TEST_F(SessionSocket, OutlivesGarbageAndSilentPeers) {
  requireOrSkip(hasProgram("python3"), "no python3 here");
  Session session = create();
  const std::string socket = home_path + "/sessions/" + session.id() + "/control";
  const RunOutput out = runProgram({"python3", "-c",
                                    "import socket, os\n"
                                    "keep = []\n"
                                    "for i in range(200):\n"
                                    "  s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
                                    "  s.settimeout(2)\n"
                                    "  try:\n"
                                    "    s.connect('" +
                                        socket +
                                        "')\n"
                                        "    s.send(os.urandom(i))\n"
                                        "  except OSError: pass\n"
                                        "  keep.append(s)\n"});
  EXPECT_EQ(out.exit_status, 0) << out.describe();
  EXPECT_EQ(output(session, "echo fine"), "fine\n");
}

TEST_F(SessionSocket, Pid1CannotBeSeenReadTracedOrStopped) {
  Session session = create();
  EXPECT_EQ(output(session,
                   "for f in environ maps mem fd root exe cwd status; do cat /proc/1/$f >/dev/null 2>&1 && echo $f; "
                   "ls /proc/1/$f >/dev/null 2>&1 && echo $f; done; ls -d /proc/1 2>/dev/null; kill -9 1 2>/dev/null; "
                   "kill -STOP 1 2>/dev/null; kill -9 -1 2>/dev/null; true"),
            "");
  EXPECT_EQ(output(session, "echo lives"), "lives\n");
}

}  // namespace
}  // namespace caisson::test
