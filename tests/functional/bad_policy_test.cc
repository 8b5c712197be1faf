// Invalid policies through the command line: each is rejected with the file and the reason.
#include "functional/sandbox.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

struct BadPolicy {
  const char* name;
  const char* file;
  const char* text;
  const char* complaint;
};

void PrintTo(const BadPolicy& one, std::ostream* out) { *out << one.name; }

constexpr BadPolicy kBad[] = {
    {"CircularExtends", "p.toml", "extends = \"p.toml\"\n", "extends itself"},
    {"MissingFile", "p.toml", "extends = \"nowhere.toml\"\n", "nowhere.toml"},
    {"MissingProfile", "p.toml", "extends = \"no-such-profile\"\n", "no-such-profile"},
    {"PatternThatNeverMatches", "p.toml", "commands.blocked_patterns = [\"x^\"]\n", "commands.blocked_patterns[0]"},
    {"PatternTooLarge", "p.toml", "commands.blocked_patterns = [\"((a{99}){99}){99}\"]\n",
     "commands.blocked_patterns[0]"},
    {"DuplicateKeyInToml", "p.toml", "name = \"a\"\nname = \"b\"\n", "p.toml:2"},
    {"DuplicateKeyInJson", "p.json", R"({"name": "a", "name": "b"})", "name"},
    {"DuplicateKeyInYaml", "p.yaml", "name: a\nname: b\n", "p.yaml:2"},
    {"YamlTag", "p.yaml", "name: !!python/object:os.system a\n", "p.yaml:1"},
    {"YamlCycle", "p.yaml", "name: &a [*a]\n", "p.yaml"},
    {"YamlAnchorWhereTextIsExpected", "p.yaml", "network: &n {mode: none}\nname: *n\n", "name"},
    {"TomlDate", "p.toml", "name = 2026-01-01\n", "dates and times"},
    {"TomlTime", "p.toml", "resources.wall_seconds = 07:32:00\n", "dates and times"},
    {"NumberBeyondEveryWord", "p.json", R"({"resources": {"memory": 99999999999999999999999999}})", "too large"},
    {"NumberThatADoubleWouldRound", "p.json", R"({"resources": {"memory": 9007199254740993}})", "resources.memory"},
    {"NumberThatIsNoWholeOne", "p.json", R"({"resources": {"memory": 1e400}})", ""},
    {"BidiInAName", "p.toml",
     "name = \"a\xe2\x80\xae"
     "b\"\nunknown = 1\n",
     "unknown"},
    {"AboveTheCeiling", "p.toml", "resources.memory = \"100G\"\n", "resources.memory"},
    {"UnknownKey", "p.yaml", "filesystem: {read_onyl: [/x]}\n", "read_onyl"},
};

class BadPolicies : public SandboxTest, public testing::WithParamInterface<BadPolicy> {};

TEST_P(BadPolicies, AreRefusedWithTheReason) {
  CONFORMS("R-POLICY-2");
  const BadPolicy& bad = GetParam();
  workspace.write(bad.file, bad.text);
  workspace.openToAll();
  RunOptions how;
  how.cwd = workspace.path();
  const RunOutput checked = runCaisson({"policy", "check", bad.file}, how);
  EXPECT_EQ(checked.exit_status, 1) << checked.describe();
  EXPECT_TRUE(contains(checked.err, bad.file)) << checked.describe();
  EXPECT_TRUE(contains(checked.err, bad.complaint)) << checked.describe();
  EXPECT_FALSE(contains(checked.err, "\xe2\x80\xae")) << checked.describe();
  const RunOutput ran = run({"--policy", bad.file}, {"echo", "ran"});
  EXPECT_EQ(ran.exit_status, 125) << ran.describe();
  EXPECT_EQ(ran.out, "") << ran.describe();
}

INSTANTIATE_TEST_SUITE_P(Bad, BadPolicies, testing::ValuesIn(kBad),
                         [](const auto& one) { return std::string(one.param.name); });

using Widenings = SandboxTest;

/// A wider policy is listed, key by key, with the old and the new value.
TEST_F(Widenings, EachIsReported) {
  CONFORMS("R-POLICY-3");
  workspace.write("wide.toml", "extends = \"strict\"\nprocess.allow_exec = true\nresources.memory = \"100M\"\n");
  workspace.openToAll();
  RunOptions how;
  how.cwd = workspace.path();
  const RunOutput explained = runCaisson({"policy", "explain", "wide.toml"}, how);
  EXPECT_EQ(explained.exit_status, 0) << explained.describe();
  for (const char* part : {"process.allow_exec", "resources.memory", "50 MiB", "100 MiB"}) {
    EXPECT_TRUE(contains(explained.out, part)) << part << explained.describe();
  }
}

}  // namespace
}  // namespace caisson::test
