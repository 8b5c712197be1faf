// Who may use a session's socket, and what a payload can do to pid 1 of a session.
#include <sys/stat.h>

#include "functional/session.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

using SessionSocket = SessionTest;

/// Connects; prints how many bytes of a welcome it received.
std::string connectScript(const std::string& socket) {
  return "import socket\n"
         "s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
         "s.settimeout(5)\n"
         "s.connect('" +
         socket +
         "')\n"
         "try: print(len(s.recv(4096)) > 0)\n"
         "except OSError: print(False)\n";
}

TEST_F(SessionSocket, IsPrivateAndInvisibleInTheSandbox) {
  CONFORMS("R-SESSION-13");
  Session session = create();
  struct stat status{};
  ASSERT_EQ(::stat((home_path + "/sessions").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700U);
  ASSERT_EQ(::stat((home_path + "/sessions/" + session.id()).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700U);
  EXPECT_EQ(output(session, "ls " + home_path + " 2>/dev/null || echo unseen; grep -c control /proc/net/unix || true"),
            "unseen\n0\n");
}

TEST_F(SessionSocket, AcceptsOnlyTheOwner) {
  requireOrSkip(runsAsRoot() && hasProgram("setpriv") && exists("/usr/bin/python3"),
                "connecting as another user needs root, setpriv and python3");
  Session session = create();
  const std::string path = home_path + "/sessions/" + session.id() + "/control";
  EXPECT_EQ(runProgram({"python3", "-c", connectScript(path)}).out, "True\n") << "its owner is welcome";
  // With its directories opened to all users: the supervisor itself refuses.
  for (const std::string& directory :
       {home.path(), home_path, home_path + "/sessions", home_path + "/sessions/" + session.id()}) {
    ASSERT_EQ(::chmod(directory.c_str(), 0755), 0);
  }
  ASSERT_EQ(::chmod(path.c_str(), 0777), 0);
  EXPECT_EQ(
      runProgram({"setpriv", "--reuid", "65534", "--clear-groups", "/usr/bin/python3", "-c", connectScript(path)}).out,
      "False\n");
}

/// A payload that could see the socket is such a caller: same user, other user namespace.
TEST_F(SessionSocket, RefusesTheOwnersProgramsInAnotherUserNamespace) {
  requireOrSkip(runProgram({"unshare", "-r", "true"}).exit_status == 0, "unshare cannot make a user namespace here");
  Session session = create();
  EXPECT_EQ(output(session, "echo lives"), "lives\n");  // its supervisor runs
  const RunOutput out = runProgram({"unshare", "-r", caissonBinary(), "session", "exec", session.id(), "--", "true"});
  EXPECT_EQ(out.exit_status, 125) << out.describe();
  EXPECT_NE(out.err.find("in another user namespace"), std::string::npos) << out.describe();
  EXPECT_EQ(output(session, "echo still"), "still\n");
}

TEST_F(SessionSocket, SurvivesGarbageAndSilentPeers) {
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
