// The search for secrets before a program starts: it is complete on a busy machine, in large trees, and with its index.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <random>

#include "functional/sandbox.h"
#include "support/temp_dir.h"

namespace caisson::test {
namespace {

/// Keeps the processors busy while it lives.
class Load {
 public:
  explicit Load(int count) {
    for (int i = 0; i < count; ++i) {
      const pid_t pid = ::fork();
      if (pid == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) (void)::getppid();
      }
      pids_.push_back(pid);
    }
  }
  ~Load() {
    for (const pid_t pid : pids_) {
      if (pid <= 0) continue;
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
  }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

 private:
  std::vector<pid_t> pids_;
};

class SecretSearch : public SandboxTest, public testing::WithParamInterface<const char*> {
 protected:
  RunOutput read(const std::string& command) {
    return script(command + " 2>/dev/null; true", {"--workspace", std::string(".:") + GetParam()});
  }
};

INSTANTIATE_TEST_SUITE_P(Modes, SecretSearch, testing::Values("overlay", "ro", "rw"),
                         [](const auto& mode) { return std::string(mode.param); });

TEST_P(SecretSearch, DoesNotDependOnTheLoadOfTheMachine) {
  std::mt19937 random(5);
  std::vector<std::string> directories;
  for (int i = 0; i < 3000; ++i) {
    const bool top = directories.empty() || random() % 8 == 0;
    const std::string above = top ? "" : directories[random() % directories.size()] + "/";
    directories.push_back(above + "d" + std::to_string(i));
    std::filesystem::create_directories(workspace / directories.back());
  }
  const Load load(16);
  for (int round = 0; round < 2; ++round) {
    const std::string path = directories[random() % directories.size()] + "/.env";
    workspace.write(path, "canary\n");
    const RunOutput output = read("cat " + path + "; echo done");
    EXPECT_EQ(output.out, "done\n") << path << output.describe();
    std::filesystem::remove(workspace / path);
  }
}

TEST_P(SecretSearch, HidesOtherNamesOfAHiddenFile) {
  workspace.write("a/.env", "canary\n");
  workspace.write("b/other", "visible\n");
  ASSERT_EQ(::link((workspace / "a/.env").c_str(), (workspace / "b/notes.txt").c_str()), 0);
  const RunOutput output = read("cat b/other b/notes.txt a/.env");
  EXPECT_EQ(output.out, "visible\n") << output.describe();
  EXPECT_NE(output.err.find("b/notes.txt"), std::string::npos) << output.err;
}

TEST_P(SecretSearch, ThousandsOfHitsAreHiddenOrRefused) {
  for (int i = 0; i < 2100; ++i) workspace.write("d" + std::to_string(i) + "/.env", "canary\n");
  workspace.write("code", "visible\n");
  const RunOutput output = read("cat code; cat d*/.env");
  if (std::string(GetParam()) == "rw") {
    EXPECT_EQ(output.exit_status, 125) << output.describe();
    EXPECT_NE(output.err.find("each needs a mount"), std::string::npos) << output.err;
  } else {
    EXPECT_EQ(output.out, "visible\n") << output.describe();
  }
}

/// The second and later runs use what the first one found out.
TEST_P(SecretSearch, IndexHidesNothingFromTheSearch) {
  for (int i = 0; i < 300; ++i) workspace.write("d" + std::to_string(i) + "/deploy_key", "nothing\n");
  // Older than two seconds, so that entries are trusted.
  const RunOutput first = read("sleep 2.5; cat d7/deploy_key");
  EXPECT_EQ(first.out, "nothing\n") << first.describe();
  read("true");
  struct stat directory{}, file{};
  ASSERT_EQ(::stat((workspace / "d7").c_str(), &directory), 0);
  ASSERT_EQ(::stat((workspace / "d9/deploy_key").c_str(), &file), 0);
  workspace.write("d7/.env", "canary\n");
  workspace.write("d9/deploy_key", "-----BEGIN RSA PRIVATE KEY-----\ncanary\n");
  const timespec directory_times[] = {directory.st_atim, directory.st_mtim},
                 file_times[] = {file.st_atim, file.st_mtim};
  ASSERT_EQ(::utimensat(AT_FDCWD, (workspace / "d7").c_str(), directory_times, 0), 0);
  ASSERT_EQ(::utimensat(AT_FDCWD, (workspace / "d9/deploy_key").c_str(), file_times, 0), 0);
  std::filesystem::rename(workspace / "d11", workspace / "moved");
  workspace.write("moved/.netrc", "canary\n");
  const RunOutput output = read("cat d7/.env d9/deploy_key moved/.netrc; cat d8/deploy_key");
  EXPECT_EQ(output.out, "nothing\n") << output.describe();
}

}  // namespace
}  // namespace caisson::test
