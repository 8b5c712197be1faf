// A run whose audit log can no longer be written has no network any more.
#include <sys/resource.h>

#include <sstream>

#include "network/network.h"

namespace caisson::test {
namespace {

using std::chrono::seconds;

class RunAudit : public NetworkTest {
 protected:
  void SetUp() override {
    NetworkTest::SetUp();
    home_ = files.makeDir("home", 0700);
    workspace_ = files.makeDir("workspace", 0777);
  }

  /// Starts a run that makes one request after the other and notes each: "begin 1", "ok 1", "begin 2", "failed 2".
  void start() {
    const std::string script = "while n=$((n + 1)); do echo begin $n; curl -sS -m 2 -o /dev/null http://" +
                               std::string(kHost) + "/request-$n- && echo ok $n || echo failed $n; done > notes";
    RunOptions how;
    how.cwd = files.path();
    how.env["CAISSON_HOME"] = home_;
    run_ = std::make_unique<BackgroundProgram>(
        std::vector<std::string>{caissonBinary(), "run", "--policy", policyFor({kHost}, ""), "--workspace",
                                 workspace_ + ":rw", "--result", files / "result", "--", "bash", "-c", script},
        how);
  }
  /// How many requests were noted like this.
  [[nodiscard]] int noted(const std::string& what) const {
    std::istringstream lines(readFile(workspace_ + "/notes"));
    int count = 0;
    for (std::string line; std::getline(lines, line);) count += line.starts_with(what) ? 1 : 0;
    return count;
  }
  [[nodiscard]] bool isNoted(const std::string& line) const {
    return contains("\n" + readFile(workspace_ + "/notes"), "\n" + line + "\n");
  }
  static bool arrived(int number) {
    return contains(requestsSeen(), std::string(" ") + kHost + " /request-" + std::to_string(number) + "-");
  }
  /// Lets writes beyond the first byte of a file fail, as on a full disk, or succeed again.
  void limitFiles(bool limit) const {
    rlimit now{};
    ASSERT_EQ(::prlimit(run_->pid(), RLIMIT_FSIZE, nullptr, &now), 0);
    now.rlim_cur = limit ? 1 : now.rlim_max;
    ASSERT_EQ(::prlimit(run_->pid(), RLIMIT_FSIZE, &now, nullptr), 0);
  }

  static constexpr const char* kHost = "unrecorded.wild.example.org";
  std::string home_, workspace_;
  std::unique_ptr<BackgroundProgram> run_;
};

TEST_F(RunAudit, NoConnectionCarriesDataAfterOneCouldNotBeRecorded) {
  start();
  ASSERT_TRUE(eventually([&] { return noted("ok") > 0; }, seconds(20)));
  limitFiles(true);
  const int last = noted("begin");  // this one may have been recorded already
  const auto expectRefused = [&](int number) {
    const std::string text = std::to_string(number);
    ASSERT_TRUE(eventually([&] { return isNoted("failed " + text) || isNoted("ok " + text); }, seconds(20))) << text;
    EXPECT_TRUE(isNoted("failed " + text)) << text;
    EXPECT_FALSE(arrived(number)) << text;
  };
  for (int number = last + 1; number <= last + 3; ++number) expectRefused(number);
  EXPECT_TRUE(arrived(1)) << "requests are not recognised";
  limitFiles(false);
  const int later = noted("begin") + 1;  // the log has a gap, so it stays so
  expectRefused(later);
  run_->signal(SIGTERM);
  EXPECT_TRUE(run_->wait(seconds(20)));
  EXPECT_TRUE(contains(readFile(files / "result"), "a network request could not be recorded in the audit log"))
      << readFile(files / "result");
}

}  // namespace
}  // namespace caisson::test
