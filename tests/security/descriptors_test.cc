// Only 0, 1 and 2 are inherited, and they lead nowhere else (CVE-2024-21626, CVE-2019-5736).
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "security/attack.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

/// A descriptor that programs started during its lifetime inherit.
class InheritedDescriptor {
 public:
  InheritedDescriptor(const std::string& path, int number) : number_(number) {
    const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    dup2(fd, number_);
    close(fd);
  }
  ~InheritedDescriptor() { close(number_); }
  InheritedDescriptor(const InheritedDescriptor&) = delete;
  InheritedDescriptor& operator=(const InheritedDescriptor&) = delete;

 private:
  int number_;
};

TEST(Descriptors, OfTheCallerAreClosed) {
  CONFORMS("R-PROCESS-13");
  const TempDir directory;
  const InheritedDescriptor left_open(directory.path(), 9);
  expectOnlyStoppedBy("closed-descriptors", {.verb = {"list-descriptors"}});
}

/// bubblewrap's strictest command line fails here: an inherited directory reaches the host.
TEST(Descriptors, OfTheCallerDoNotLeadToTheHost) {
  CONFORMS("R-PROCESS-13");
  const TempDir directory;
  const Canary canary(directory / "canary");
  const InheritedDescriptor left_open("/", 9);
  for (const std::string& path : {canary.path().substr(1), std::string("etc/hostname")}) {
    const Attack attack{.verb = {"open-through", "9", path}};
    const RunOutput output = inSandbox(attack);
    EXPECT_TRUE(contained(output));
    EXPECT_FALSE(canary.leakedInto(output.out));
    if (runsAsRoot() || path != canary.path().substr(1)) continue;
    // Landlock has no rule for that directory either.
    EXPECT_TRUE(canary.leakedInto(weakened("closed-descriptors,landlock", attack).out));
  }
}

/// CVE-2024-21626: a working directory that is a descriptor of the host.
TEST(WorkingDirectory, IsInsideTheSandbox) {
  const TempDir directory;
  const InheritedDescriptor left_open("/", 9);
  for (const std::string& workspace : {std::string(":none"), directory.path() + ":ro", directory.path() + ":overlay"}) {
    const RunOutput output =
        inSandbox({.verb = {"working-directory"}, .workspace = workspace, .how = {.cwd = "/proc/self/fd/9"}});
    EXPECT_TRUE(output.out == "done: /home/sandbox\n" || output.out == "done: /workspace\n") << output.describe();
  }
}

/// `--ro /` is rejected as "the whole host"; no spelling of the workspace may bypass that.
TEST(WholeHost, CannotBecomeTheWorkspace) {
  const InheritedDescriptor left_open("/", 9);
  for (const char* path : {"/", "/proc/self/fd/9", "/proc/self/root"}) {
    const RunOutput output =
        runCaisson({"run", "--quiet", "--workspace", std::string(path) + ":ro", "--", "/bin/true"});
    EXPECT_EQ(output.exit_status, 125) << path;
  }
}

/// A file given as read-only standard input must not be writable through /proc/self/fd/0.
TEST(StandardInput, CannotBeReopenedForWriting) {
  CONFORMS("R-PROCESS-13");
  const TempDir directory;
  const Canary canary(directory / "canary");
  const std::string verb = payloadPath() + " reopen-for-writing 0 < " + canary.path();
  const RunOutput output = runProgram(
      {"/bin/sh", "-c", caissonBinary() + " run --quiet --workspace :none --ro " + payloadPath() + " -- " + verb});
  EXPECT_TRUE(contained(output));
  EXPECT_TRUE(canary.untouched());
  if (!mayWeaken()) return;
  EXPECT_TRUE(succeeded(runProgram({"/bin/sh", "-c", verb})));
  EXPECT_FALSE(canary.untouched());
}

TEST(StandardOutput, CannotBeReopenedForReading) {
  const TempDir directory;
  const Canary canary(directory / "canary");
  const RunOutput output = runProgram({"/bin/sh", "-c",
                                       caissonBinary() + " run --quiet --workspace :none --ro " + payloadPath() +
                                           " -- " + payloadPath() + " read /proc/self/fd/2 2>>" + canary.path()},
                                      {.timeout = std::chrono::seconds(3)});
  EXPECT_FALSE(canary.leakedInto(output.out));
}

class OwnProgram : public testing::TestWithParam<const char*> {};

/// CVE-2019-5736: `#!/proc/self/exe` makes the kernel start caisson's own binary as the payload's interpreter, and its
/// magic link then leads to the host's file. The binary here is a copy that belongs to the attacker's user.
TEST_P(OwnProgram, CannotBeReachedThroughProc) {
  const TempDir directory;
  directory.openToAll();
  const std::string copy = directory.write("caisson", readFile(caissonBinary()), 0755);
  directory.write("work/script", std::string("#!") + GetParam() + "\n", 0755);
  const RunOutput started = runProgram(
      {copy, "run", "--quiet", "--workspace", directory / "work" + std::string(":rw"), "--", "/workspace/script"});
  EXPECT_NE(started.exit_status, 0) << "caisson's own program was started inside: " << started.describe();
  EXPECT_TRUE(contained(runProgram({copy, "run", "--quiet", "--workspace", ":none", "--ro", payloadPath(), "--",
                                    payloadPath(), "overwrite-program", "/proc/1/exe"})));
  EXPECT_EQ(readFile(copy), readFile(caissonBinary()));
  if (std::string(GetParam()) != "/proc/self/exe" || !mayWeaken()) return;
  // Landlock grants no execution outside the plan's tree, and is the only layer that does so.
  const std::string own = directory.write("weakened", readFile(weakenedPath()), 0755);
  const RunOutput inside =
      runProgram({own, "landlock", "--workspace", directory / "work:rw", "--", "/workspace/script"});
  EXPECT_NE(inside.err.find("usage: caisson-weakened"), std::string::npos) << inside.describe();
}

INSTANTIATE_TEST_SUITE_P(ByLink, OwnProgram,
                         testing::Values("/proc/self/exe", "/proc/1/exe", "/proc/thread-self/../exe"),
                         [](const auto& test) { return "way" + std::to_string(test.index); });

/// Pid 1 is caisson's own program, of the same user where that user installed it.
TEST(OwnProgram, CannotBeOverwrittenByItsUser) {
  expectOnlyStoppedBy("hidden-processes,hidden-init,landlock", {.verb = {"stat", "/proc/1/exe"}});
}

/// A file that the policy passes, opened for reading only. Landlock alone keeps it from being opened again.
TEST(PassedDescriptor, CannotBeReopenedForWriting) {
  CONFORMS("R-PROCESS-13");
  const TempDir directory;
  const Canary canary(directory / "canary");
  const std::string policy = directory.write("policy.toml", "extends = 'bash'\n[process]\npass_descriptors = [9]\n");
  directory.openToAll();
  const auto reopened = [&](const std::string& program) {
    return runProgram({"/bin/sh", "-c",
                       program + " --policy " + policy + " --workspace :none --ro " + payloadPath() + " -- " +
                           payloadPath() + " reopen-for-writing 9 9< " + canary.path()});
  };
  EXPECT_TRUE(contained(reopened(caissonBinary() + " run --quiet")));
  EXPECT_TRUE(canary.untouched());
  if (!mayWeaken()) return;
  EXPECT_TRUE(succeeded(reopened(weakenedPath() + " landlock")));
  EXPECT_FALSE(canary.untouched());
}

/// The caller's keys (Kerberos, fscrypt, cloud tools keep them there).
TEST(SessionKeyring, OfTheCallerCannotBeRead) {
  CONFORMS("R-PROCESS-13");
  constexpr int kJoin = 1;
  constexpr long kSessionKeyring = -3;
  const std::string name = uniqueWord("caisson-test");
  const std::string secret = uniqueWord("key");
  const bool planted = syscall(SYS_keyctl, kJoin, nullptr) >= 0 &&
                       syscall(SYS_add_key, "user", name.c_str(), secret.data(), secret.size(), kSessionKeyring) >= 0;
  requireOrSkip(planted, "this kernel or its filter has no keyrings");
  const Attack attack{.verb = {"read-session-key", name}};
  EXPECT_TRUE(contained(inSandbox(attack)));
  if (!mayWeaken()) return;
  EXPECT_TRUE(contained(weakened("seccomp", attack))) << "only the filter held the caller's keys back";
  EXPECT_TRUE(contained(weakened("new-keyring", attack))) << "only the new keyring held the caller's keys back";
  EXPECT_NE(weakened("seccomp,new-keyring", attack).out.find(secret), std::string::npos);
}

}  // namespace
}  // namespace caisson::test
