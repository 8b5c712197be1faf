// Kernel objects counted per user or per machine: one sandbox cannot use up its caller's.
#include <sys/fanotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "security/attack.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

struct Bound {
  const char* name;
  const char* protections;
  std::vector<std::string> verb;  ///< takes more than a sandbox may have, and less than its caller has
};

std::ostream& operator<<(std::ostream& out, const Bound& bound) { return out << bound.name; }

class KernelBound : public testing::TestWithParam<Bound> {};

TEST_P(KernelBound, StopsSandboxBelowWhatItsCallerHas) {
  CONFORMS("R-LIMIT-14");
  expectOnlyStoppedBy(GetParam().protections, {.verb = GetParam().verb});
}

INSTANTIATE_TEST_SUITE_P(All, KernelBound,
                         testing::Values(Bound{"inotify_instances", "kernel-quotas", {"take-inotify", "40"}},
                                         Bound{"ptys", "pty-limit", {"take-ptys", "80"}},
                                         Bound{"pending_signals", "limits", {"take-timers", "1100"}},
                                         Bound{"posix_queues", "limits,landlock", {"take-posix-queues", "6"}},
                                         Bound{"aio_contexts", "seccomp", {"take-aio", "8"}},
                                         Bound{"keys", "seccomp", {"take-keys", "20"}}),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(KernelQuotas, WatchesAreQuarterOfHosts) {
  CONFORMS("R-LIMIT-14");
  const std::uint64_t host = std::stoull(readFile("/proc/sys/fs/inotify/max_user_watches"));
  const std::vector<std::string> rest{"--workspace", ":none", "--", "cat", "/proc/sys/user/max_inotify_watches"};
  const auto with = [&](std::vector<std::string> words) {
    words.insert(words.end(), rest.begin(), rest.end());
    return words;
  };
  const RunOutput output = runCaisson(with({"run"}));
  EXPECT_EQ(output.out, std::to_string(host / 4) + "\n") << output.describe();
  if (!mayWeaken()) return;
  EXPECT_NE(runProgram(with({weakenedPath(), "kernel-quotas"})).out, output.out);
}

TEST(KernelQuotas, NamespacesAreRefusedWithoutFilter) {
  if (!mayWeaken()) GTEST_SKIP() << "a weakened sandbox is never given to root";
  const RunOutput output = weakened("seccomp", {.verb = {"unshare", "user"}});
  EXPECT_EQ(output.out, "refused: unshare: ENOSPC\n") << output.describe();
  for (const char* kind : {"mnt", "net", "pid", "ipc", "uts", "cgroup", "time"}) {
    const RunOutput other = weakened("seccomp", {.verb = {"unshare", kind}});
    EXPECT_EQ(other.out, "refused: unshare: EPERM\n") << kind << ": " << other.describe();
    const RunOutput both = weakened("seccomp", {.verb = {"unshare", std::string("user,") + kind}});
    EXPECT_EQ(both.out, "refused: unshare: ENOSPC\n") << kind << ": " << both.describe();
  }
}

TEST(KernelQuotas, FanotifyGroupsAreRefusedWithoutFilter) {
  if (!mayWeaken()) GTEST_SKIP() << "a weakened sandbox is never given to root";
  const Attack attack{.verb = {"call", std::to_string(SYS_fanotify_init), std::to_string(FAN_REPORT_FID)}};
  const RunOutput output = weakened("seccomp", attack);
  EXPECT_TRUE(output.out.ends_with("EMFILE\n")) << output.describe();
  EXPECT_TRUE(succeeded(weakened("seccomp,kernel-quotas", attack)));
}

/// Landlock denies POSIX message queues; on a kernel without it the limit on their bytes applies.
TEST(KernelQuotas, PosixQueuesAreBoundedWithoutLandlock) {
  if (!mayWeaken()) GTEST_SKIP() << "a weakened sandbox is never given to root";
  const RunOutput output = weakened("landlock", {.verb = {"take-posix-queues", "6"}});
  EXPECT_EQ(output.out, "refused: mq_open: EMFILE\n") << output.describe();
}

/// On cgroup v1 and without a cgroup no memory limit covers them.
TEST(KernelQuotas, TcpBuffersAreBounded) {
  const auto mebibytes = [](const RunOutput& output) {
    return output.out.starts_with("done: ") ? std::stoi(output.out.substr(6)) : -1;
  };
  const Attack attack{.verb = {"fill-tcp-buffers", "40"}};
  const RunOutput inside = inSandbox(attack);
  EXPECT_GE(mebibytes(inside), 1) << inside.describe();
  EXPECT_LE(mebibytes(inside), 40) << inside.describe();
  if (!mayWeaken()) return;
  EXPECT_GT(mebibytes(unprotected(attack)), 40) << "this kernel's own bounds are as low: the test proves nothing";
}

TEST(KernelQuotas, AreInResult) {
  CONFORMS("R-LIMIT-14");
  const auto result = runCaisson({"run", "--json", "--workspace", ":none", "--", "true"}).json();
  EXPECT_EQ(result["layers"].value("kernel_quotas", ""), "inotify, fanotify, namespaces") << result.dump();
}

/// Two sandboxes of one user: the first has more descriptors in flight than the starter of the second may have open.
class DescriptorsInFlight : public testing::Test {
 protected:
  /// Starts the first sandbox after LIMITS, commands of the shell.
  void hold(const std::string& count, const std::string& limits = ":") {
    ASSERT_EQ(chmod(shared_.path().c_str(), 0777), 0);
    const std::string many = files_.write("many.toml", "extends = \"bash\"\n[resources]\nopen_files = 2048\n");
    hostile_.emplace(std::vector<std::string>{"sh", "-c", limits + "; exec \"$@\"", "sh", caissonBinary(), "run",
                                              "--policy", many, "--workspace", shared_.path() + ":rw", "--ro",
                                              payloadPath(), "--", payloadPath(), "hold-in-flight", count,
                                              "/workspace/holds", "40"});
    ASSERT_TRUE(eventually([&] { return exists(shared_ / "holds"); }, std::chrono::seconds(20)));
  }

  [[nodiscard]] static RunOutput start(std::vector<std::string> command, const std::string& limits) {
    command.insert(command.begin(), {"sh", "-c", limits + "; exec \"$@\"", "sh"});
    return runProgram(command, {.env = {{"CAISSON_BIN", caissonBinary()}}});
  }

  const TempDir shared_, files_;
  const std::string policy_ = files_.write(
      "policy.toml", "extends = \"bash\"\n[network]\nmode = \"proxy\"\nallowed_hosts = [\"example.org\"]\n");
  std::optional<BackgroundProgram> hostile_;
};

TEST_F(DescriptorsInFlight, DoNotKeepSecondSandboxFromItsEgress) {
  const std::string usual = "ulimit -Sn 1024";
  hold("1250");
  const RunOutput output = start(
      {caissonBinary(), "run", "--policy", policy_, "--workspace", ":none", "--", "sh", "-c", "ulimit -Sn; ulimit -Hn"},
      usual);
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_EQ(output.out, "1024\n1024\n") << "the payload has the policy's limit";
  if (!mayWeaken()) return;
  const RunOutput without =
      start({weakenedPath(), "limits", "--policy", policy_, "--workspace", ":none", "--", "true"}, usual);
  EXPECT_EQ(without.exit_status, 125) << without.describe();
  EXPECT_NE(without.err.find("ETOOMANYREFS"), std::string::npos) << without.describe();
  EXPECT_NE(without.err.find("ulimit -Hn"), std::string::npos) << without.describe();
}

/// With the whole hard limit, the first sandbox could keep all others of the user from starting.
TEST_F(DescriptorsInFlight, AreFewerThanHardLimit) {
  const std::string low = "ulimit -n 2048";
  hold("4000", low);
  const RunOutput output =
      start({caissonBinary(), "run", "--policy", policy_, "--workspace", ":none", "--", "echo", "works"}, low);
  EXPECT_EQ(output.out, "works\n") << output.describe();
}

}  // namespace
}  // namespace caisson::test
