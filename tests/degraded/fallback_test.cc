// Features with a fallback: the same sandbox in another way.
#include "degraded/degraded.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

class WithFallback : public DegradedTest, public testing::WithParamInterface<const char*> {};

TEST_P(WithFallback, SandboxIsTheSame) { expectSameAs(probe(GetParam()), probe()); }

TEST_P(WithFallback, OverlayShowsTheWorkspaceAndKeepsItUnchanged) {
  workspace.write("deep/er/file", "content\n");
  workspace.write(".env", "secret\n");
  const RunOutput output = caissonWithout(
      GetParam(), {"run", "--workspace", workspace.path(), "--deny", "/workspace/deep/hidden", "--", "sh", "-c",
                   "cat deep/er/file; ls -A; echo changed > deep/er/file; cat deep/er/file"});
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_EQ(output.out, "content\ndeep\nchanged\n") << output.describe();
  EXPECT_EQ(readFile(workspace / "deep/er/file"), "content\n");
}

TEST_P(WithFallback, DeniedPathsStayDenied) {
  workspace.write("secret/key", "secret\n");
  const RunOutput output =
      caissonWithout(GetParam(), {"run", "--workspace", workspace.path() + ":rw", "--deny", "/workspace/secret", "--",
                                  "sh", "-c", "cat secret/key; echo after"});
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_EQ(output.out, "after\n") << output.describe();
}

TEST_P(WithFallback, OverlayOnDiskIsRemovedAtTheEnd) {
  CONFORMS("R-FILES-18");
  const std::string on_disk = policy("[filesystem]\noverlay_store = \"disk\"\n");
  RunOptions how;
  how.env["CAISSON_HOME"] = home.path();
  const RunOutput output = caissonWithout(GetParam(),
                                          {"run", "--policy", on_disk, "--workspace", workspace.path(), "--", "sh",
                                           "-c", "mkdir -p a/b && echo x > a/b/c && ln -s / a/root && cat a/b/c"},
                                          how);
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_EQ(output.out, "x\n") << output.describe();
  EXPECT_EQ(runProgram({"ls", "-A", home / "runs"}).out, "");
  EXPECT_FALSE(exists(workspace / "a"));
}

INSTANTIATE_TEST_SUITE_P(Degraded, WithFallback,
                         testing::Values("openat2:ENOSYS", "openat2:EPERM", "clone3:ENOSYS", "clone3:EPERM",
                                         "clone3,openat2:ENOSYS", "rseq:ENOSYS", "keyctl:ENOSYS", "keyctl:EPERM",
                                         "sched_setaffinity:EPERM"),
                         [](const auto& test) { return asTestName(test.param); });

class WithoutOpenat2 : public DegradedTest {};

TEST_F(WithoutOpenat2, LinkInTheWorkspacePathIsFollowedOnlyIfItExistedBefore) {
  workspace.write("real/file", "content\n");
  ASSERT_EQ(runProgram({"ln", "-s", "real", workspace / "link"}).exit_status, 0);
  const RunOutput output = caissonWithout("openat2", {"run", "--workspace", workspace / "link", "--", "cat", "file"});
  EXPECT_EQ(output.out, "content\n") << output.describe();
}

class WithoutListener : public DegradedTest {};

TEST_F(WithoutListener, CallsAreStillDeniedAndTheResultReportsTheMissingListener) {
  CONFORMS("R-LEVEL-9");
  const Ending ending = probe("seccomp_listener");
  EXPECT_TRUE(ending.ran) << ending.describe();
  EXPECT_TRUE(ending.layer("seccomp_notify").starts_with("missing")) << ending.describe();
  EXPECT_FALSE(ending.warnings().empty());
  const RunOutput output =
      caissonWithout("seccomp_listener", {"run", "--workspace", ":none", "--", "unshare", "-r", "true"});
  EXPECT_TRUE(contains(output.err, "blocked system calls are not reported")) << output.describe();
  EXPECT_EQ(output.exit_status, 1) << output.describe();
  EXPECT_NE(output.err.find("Operation not permitted"), std::string::npos) << output.describe();
}

class WithoutTimeNamespace : public DegradedTest {};

TEST_F(WithoutTimeNamespace, RunWorksAndReportsIt) {
  CONFORMS("R-LEVEL-22");
  const Ending ending = probe("time_namespace");
  EXPECT_EQ(ending.output.exit_status, 0) << ending.describe();
  EXPECT_TRUE(ending.ran);
  EXPECT_TRUE(ending.layer("time_namespace").starts_with("missing")) << ending.describe();
  bool warned = false;
  for (const std::string& warning : ending.warnings()) warned = warned || contains(warning, "time namespace");
  EXPECT_TRUE(warned) << ending.describe();
}

TEST_F(WithoutTimeNamespace, TheRunIsRefusedWhereThePolicyRequiresOne) {
  CONFORMS("R-LEVEL-22");
  const std::string strict = policy("[isolation]\nmay_be_missing = [\"landlock_scoping\", \"cgroup\"]\n");
  EXPECT_EQ(probe({"--policy", strict}).output.exit_status, 0);
  expectRefusal(probe("time_namespace", {"--policy", strict}), {"time namespace"});
  expectRefusal(probe("time_namespace:EPERM", {"--policy", strict}), {"time namespace", "caisson doctor"});
}

class WithoutPerfEvents : public DegradedTest {};

TEST_F(WithoutPerfEvents, CpuTimeIsSampledAndTheResultReportsIt) {
  const std::string limited = policy("[resources]\ncpu_seconds = \"1s\"\n");
  if (probe({"--policy", limited}).layer("cpu") != "counted (perf)") GTEST_SKIP() << "a cgroup counts CPU time here";
  const Ending ending = probe("perf_event_open:EACCES", {"--policy", limited});
  EXPECT_TRUE(ending.ran) << ending.describe();
  EXPECT_EQ(ending.layer("cpu"), "sampled") << ending.describe();
  bool warned = false;
  for (const std::string& warning : ending.warnings()) warned = warned || contains(warning, "cpu time is sampled");
  EXPECT_TRUE(warned) << ending.describe();
  RunOptions how;
  how.env["CAISSON_HOME"] = home.path();
  const RunOutput busy = caissonWithout("perf_event_open:EACCES",
                                        {"run", "--json", "--policy", limited, "--workspace", ":none", "--", "sh", "-c",
                                         "(while :; do :; done) & (while :; do :; done) & wait"},
                                        how);
  EXPECT_EQ(busy.json()["limit"], "cpu") << busy.describe();
}

class WithoutLandlock : public DegradedTest {};

TEST_F(WithoutLandlock, LevelFullRunsWithItsOtherLayersAndReportsIt) {
  CONFORMS("R-LEVEL-9");
  const Ending ending = probe("landlock_create_ruleset");
  EXPECT_EQ(ending.output.exit_status, 0) << ending.describe();
  EXPECT_EQ(ending.text("stdout"), probe().text("stdout"));
  EXPECT_EQ(ending.layer("landlock"), "missing");
  bool warned = false;
  for (const std::string& warning : ending.warnings()) warned = warned || contains(warning, "Landlock");
  EXPECT_TRUE(warned) << ending.describe();
  // Also in the log of a script, where standard error is not a terminal.
  const RunOutput plain = caissonWithout("landlock_create_ruleset", {"run", "--workspace", ":none", "--", "true"});
  EXPECT_TRUE(contains(plain.err, "Landlock is missing")) << plain.describe();
}

}  // namespace
}  // namespace caisson::test
