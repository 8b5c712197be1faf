// Real results of every outcome against the schema that `caisson policy schema --result` prints.
#include <csignal>
#include <functional>
#include <optional>

#include "functional/sandbox.h"
#include "support/conforms.h"
#include "support/json_schema.h"

namespace caisson::test {
namespace {

using nlohmann::json;

class ResultSchema : public SandboxTest {
 protected:
  void SetUp() override {
    SandboxTest::SetUp();
    how_.env["CAISSON_HOME"] = state_.path();
    schema_ = runCaisson({"policy", "schema", "--result"}).json();
    ASSERT_TRUE(schema_.is_object());
  }

  void expectValid(const std::string& text, const std::string& outcome) const {
    const json result = json::parse(text, nullptr, false);
    ASSERT_TRUE(result.is_object()) << text;
    EXPECT_EQ(result["outcome"], outcome) << text;
    JsonSchemaCheck validator;
    validator.check(schema_, result, "result");
    for (const std::string& error : validator.errors) ADD_FAILURE() << outcome << ": " << error;
  }

  void expectRun(const std::string& outcome, std::vector<std::string> options,
                 const std::vector<std::string>& command) {
    options.insert(options.begin(), "--json");
    expectValid(run(options, command, how_).out, outcome);
  }

  RunOptions how_;
  const TempDir state_;
  json schema_;
};

TEST_F(ResultSchema, DescribesEveryOutcome) {
  CONFORMS("R-PROCESS-20");
  workspace.write(".env", "x");
  workspace.openToAll();
  expectRun("exited", {}, {"sh", "-c", "echo out; echo err >&2; exit 3"});
  expectRun("exited", {"--output-limit", "4K"}, {"head", "-c", "100000", "/dev/urandom"});
  expectRun("exited", {"--trace", "files"}, {"sh", "-c", "cat .env /nowhere; : > new; true"});
  expectRun("exited", {}, {"sh", "-c", "unshare -r true; true"});
  expectRun("signaled", {}, {"sh", "-c", "kill -SEGV $$"});
  expectRun("limit", {"--timeout", "1s"}, {"sleep", "60"});
  expectRun("setup_failed", {"--policy", "missing.toml"}, {"true"});
  workspace.write("p.toml", "commands.blocked_patterns = ['^true']\n");
  expectRun("denied", {"--policy", "p.toml"}, {"true"});
}

TEST_F(ResultSchema, DescribesEscapesAndResultFiles) {
  requireOrSkip(systemHas("python3"), "no python3");
  expectRun("denied", {},
            {"/usr/bin/python3", "-c",
             "import ctypes, platform; bpf = 280 if platform.machine() == 'aarch64' else 321\n"
             "ctypes.CDLL(None).syscall(bpf, 0, 0, 0)"});
  const std::string file = state_ / "result.json";
  EXPECT_EQ(run({"--result", file}, {"true"}, how_).exit_status, 0);
  expectValid(readFile(file), "exited");
}

TEST_F(ResultSchema, OfASessionsCommandIsTheSame) {
  const RunOutput made = runCaisson({"session", "create", "--workspace", workspace.path()}, how_);
  ASSERT_EQ(made.exit_status, 0) << made.describe();
  const std::string id = made.out.substr(0, made.out.find('\n'));
  expectValid(runCaisson({"session", "exec", id, "--json", "--", "sh", "-c", "echo x; exit 2"}, how_).out, "exited");
  expectValid(runCaisson({"session", "exec", id, "--json", "--timeout", "1s", "--", "sleep", "60"}, how_).out, "limit");
  runCaisson({"session", "destroy", id}, how_);
}

/// The third request to end kills a command that ignores the first two.
TEST_F(ResultSchema, DescribesACancelledCommand) {
  CONFORMS("R-PROCESS-20");
  const RunOutput made = runCaisson({"session", "create", "--workspace", workspace.path()}, how_);
  ASSERT_EQ(made.exit_status, 0) << made.describe();
  const std::string id = made.out.substr(0, made.out.find('\n'));
  const std::string file = state_ / "cancelled.json";
  {
    BackgroundProgram command({"sh", "-c", "exec \"$0\" session exec \"$1\" --json -- sh -c \"$2\" > \"$3\"",
                               caissonBinary(), id, "trap : INT; echo x > started; while :; do sleep 0.1; done", file},
                              how_);
    ASSERT_TRUE(eventually([&] { return runCaisson({"session", "read", id, "started"}, how_).exit_status == 0; },
                           std::chrono::seconds(30)));
    std::optional<int> status;
    for (int i = 0; i < 300 && !status; ++i) {  // equal signals that are pending count once
      command.signal(SIGINT);
      status = command.wait(std::chrono::milliseconds(100));
    }
    EXPECT_EQ(status, 128 + SIGTERM);
  }
  expectValid(readFile(file), "cancelled");
  runCaisson({"session", "destroy", id}, how_);
}

/// The validator itself must notice mistakes, or the tests above show nothing.
TEST_F(ResultSchema, ValidatorFindsMistakes) {
  json result = run({"--json"}, {"true"}, how_).json();
  const auto broken = [&](const std::function<void(json&)>& change) {
    json changed = result;
    change(changed);
    JsonSchemaCheck validator;
    validator.check(schema_, changed, "result");
    return !validator.errors.empty();
  };
  EXPECT_FALSE(broken([](json&) {}));
  EXPECT_TRUE(broken([](json& one) { one.erase("usage"); }));
  EXPECT_TRUE(broken([](json& one) { one["version"] = 2; }));
  EXPECT_TRUE(broken([](json& one) { one["outcome"] = "other"; }));
  EXPECT_TRUE(broken([](json& one) { one["usage"]["wall_ms"] = "1"; }));
  EXPECT_TRUE(broken([](json& one) { one["layers"]["x"] = 1; }));
  EXPECT_TRUE(broken([](json& one) { one["undescribed"] = 1; }));
}

}  // namespace
}  // namespace caisson::test
