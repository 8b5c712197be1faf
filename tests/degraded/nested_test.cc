// caisson inside a sandbox of caisson: the outer one allows neither namespaces nor a second listener, so the Landlock
// tier is left.
#include "degraded/degraded.h"

namespace caisson::test {
namespace {

class Nested : public DegradedTest {
 protected:
  /// Runs a script in a sandbox; $caisson is the program under test.
  [[nodiscard]] RunOutput inside(std::vector<std::string> options, const std::string& script) const {
    options.insert(options.begin(), {"run", "--ro", caissonBinary()});
    if (std::ranges::find(options, "--workspace") == options.end()) {
      options.insert(options.end(), {"--workspace", ":none"});
    }
    options.insert(options.end(), {"--", "sh", "-c", "caisson=" + caissonBinary() + "\n" + script});
    return runCaisson(options, {.env = {{"CAISSON_HOME", home.path()}}});
  }
};

TEST_F(Nested, RunIsRefusedWithTheReasonAndTheRemainingRung) {
  for (const char* level : {"full", "process"}) {
    const RunOutput output = inside({"--level", level}, "$caisson run --workspace :none -- echo ran");
    EXPECT_EQ(output.exit_status, 125) << output.describe();
    EXPECT_EQ(output.out, "") << output.describe();
    EXPECT_TRUE(contains(output.err, "inside a caisson sandbox")) << output.describe();
    EXPECT_TRUE(contains(output.err, "--allow-weaker landlock")) << output.describe();
  }
}

TEST_F(Nested, RunConfinesInTheLandlockTierInsideEachLevel) {
  const std::vector<std::vector<std::string>> outer{
      {"--level", "full"}, {"--level", "process"}, {"--tier", "landlock"}};
  for (const auto& options : outer) {
    for (const char* inner : {"--tier landlock", "--allow-weaker landlock"}) {
      const RunOutput output =
          inside(options, "echo secret > $TMPDIR/outer; $caisson run " + std::string(inner) +
                              " --workspace :none -- sh -c \"echo ran; echo own > \\$HOME/f && cat \\$HOME/f; cat "
                              "$TMPDIR/outer; echo x > $TMPDIR/outer\"; cat $TMPDIR/outer");
      EXPECT_EQ(output.out, "ran\nown\nsecret\n") << options.back() << ", " << inner << output.describe();
      EXPECT_TRUE(contains(output.err, "Not protected")) << output.describe();
    }
  }
}

TEST_F(Nested, ResultNamesWhatTheOuterListenerPrevents) {
  const RunOutput output =
      inside({"--workspace", workspace.path()},
             "$caisson run --json --tier landlock --workspace .:rw -- sh -c 'echo x > file; chmod 600 file; echo end'");
  const nlohmann::json result = output.json();
  ASSERT_TRUE(result.is_object()) << output.describe();
  EXPECT_EQ(result.value("stdout", ""), "end\n") << output.describe();
  EXPECT_TRUE(contains(result.value("stderr", ""), "not permitted")) << output.describe();
  EXPECT_TRUE(result["layers"].value("seccomp_notify", "").starts_with("missing")) << output.describe();
  EXPECT_TRUE(contains(result["warnings"].dump(), "chmod")) << output.describe();
}

TEST_F(Nested, SessionsWorkOnACopy) {
  workspace.write("file", "content\n");
  workspace.openToAll();
  const RunOutput output = inside(
      {"--workspace", workspace.path()},
      "id=$($caisson session create --allow-weaker landlock --workspace .) && $caisson session exec $id -- sh -c "
      "'cat file; echo changed > file' && $caisson session diff $id && cat file");
  EXPECT_EQ(output.out, "content\nM file\ncontent\n") << output.describe();
}

TEST_F(Nested, DoctorNamesTheOuterSandboxAndTheTier) {
  const RunOutput output = inside({}, "$caisson doctor --json");
  const nlohmann::json report = output.json();
  ASSERT_TRUE(report.is_object()) << output.describe();
  std::string found;
  for (const auto& item : report["items"]) {
    if (item["name"] == "user-namespaces") found = item.dump();
  }
  EXPECT_TRUE(contains(found, "caisson sandbox")) << found;
  EXPECT_TRUE(contains(found, "--allow-weaker landlock")) << found;
  EXPECT_FALSE(contains(report.dump(), "docker run")) << report.dump(2);
  EXPECT_FALSE(contains(report.dump(), "sysctl -w")) << report.dump(2);
}

}  // namespace
}  // namespace caisson::test
