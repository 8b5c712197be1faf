// Nothing uses the workspace of a session while a secret file of the host in it cannot be hidden.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "functional/session.h"
#include "support/processes.h"

namespace caisson::test {
namespace {

/// Those that it has; poll(2) fails with a limit below the number that it waits for.
constexpr rlim_t kFew = 4;
constexpr const char* kKey = "-----BEGIN PRIVATE KEY-----\ncanary\n";

class SecretsRefusal : public SessionTest {
 protected:
  /// The launcher makes no mask without descriptors.
  static void limitDescriptors(const Session& session, rlim_t limit) {
    rlimit value{};
    const auto supervisor = processState(sessionSupervisor(session.id()));
    ASSERT_TRUE(supervisor);
    ASSERT_EQ(::prlimit(supervisor->parent, RLIMIT_NOFILE, nullptr, &value), 0);
    value.rlim_cur = limit;
    ASSERT_EQ(::prlimit(supervisor->parent, RLIMIT_NOFILE, &value, nullptr), 0);
  }
  static void expectRefused(const Result<RunResult>& result) {
    ASSERT_TRUE(result) << result.error().message();
    ASSERT_TRUE(result->error) << result->out.data;
    EXPECT_NE(result->error->message().find(".env"), std::string::npos) << result->error->message();
    EXPECT_EQ(result->out.data, "");
  }
};

TEST_F(SecretsRefusal, NoCommandStarts) {
  Session session = create();
  const auto busy = session.start({.command = {"sleep", "60"}});
  ASSERT_TRUE(busy) << busy.error().message();
  limitDescriptors(session, kFew);
  workspace.write(".env", "canary\n");
  for (int round = 0; round < 2; ++round) {
    expectRefused(session.exec({.command = {"sh", "-c", "cat .env; echo ran"}}));
  }
  limitDescriptors(session, 1024);
  const RunResult result = exec(session, "cat .env; echo ran");
  EXPECT_EQ(result.out.data, "ran\n") << "it is hidden now";
}

TEST_F(SecretsRefusal, NoClientReads) {
  workspace.write("plain", "shown\n");
  Session session = create();
  const auto busy = session.start({.command = {"sleep", "60"}});
  ASSERT_TRUE(busy) << busy.error().message();
  limitDescriptors(session, kFew);
  workspace.write(".env", "canary\n");
  const auto refused = session.read("plain");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find(".env"), std::string::npos) << refused.error().message();
  limitDescriptors(session, 1024);
  EXPECT_TRUE(session.read("plain"));
  EXPECT_FALSE(session.read(".env"));
}

/// A process in a session's PID namespace that is none of pid 1's descendants.
class Intruder {
 public:
  explicit Intruder(const Session& session) {
    pid_t init = -1;
    for (const pid_t pid : processTree(sessionSupervisor(session.id()))) {
      if (const auto state = processState(pid); state && state->name.starts_with("memfd:caisson")) init = pid;
    }
    const std::string target = "--target=" + std::to_string(init);
    entering_ = ::fork();
    if (entering_ == 0) {
      ::execlp("nsenter", "nsenter", target.c_str(), "--user", "--preserve-credentials", "--pid", "sleep", "60",
               nullptr);
      ::_exit(127);
    }
    EXPECT_TRUE(eventually([this] { return inside() > 0; }));
  }
  ~Intruder() {
    signalProcess(inside(), SIGKILL);
    signalProcess(entering_, SIGKILL);
    ::waitpid(entering_, nullptr, 0);
  }
  Intruder(const Intruder&) = delete;
  Intruder& operator=(const Intruder&) = delete;

 private:
  [[nodiscard]] pid_t inside() const {
    for (const pid_t pid : processTree(entering_)) {
      if (const auto state = processState(pid); pid != entering_ && state && state->name == "sleep") return pid;
    }
    return -1;
  }
  pid_t entering_ = -1;
};

TEST_F(SecretsRefusal, FileIsHiddenAtOnceIfTheLayersCannotBeMountedAnew) {
  workspace.write("example.env", "none yet\n");
  Session session = create();
  EXPECT_EQ(output(session, "cat example.env"), "none yet\n") << "the overlay has the name in its cache";
  {
    const Intruder intruder(session);
    workspace.write("example.env", kKey);
    EXPECT_EQ(exec(session, "cat example.env").out.data, "");
    EXPECT_EQ(exec(session, "cat example.env").out.data, "");
  }
  EXPECT_EQ(exec(session, "cat example.env").out.data, "");
}

}  // namespace
}  // namespace caisson::test
