// The verbs other than `run`: policy check, explain, schema; plan; doctor; version and help.
#include <gtest/gtest.h>

#include <sstream>

#include "functional/sandbox.h"
#include "functional/tree_state.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

using nlohmann::json;

class Verbs : public SandboxTest {
 protected:
  [[nodiscard]] RunOutput caisson(const std::vector<std::string>& arguments, RunOptions how = {}) const {
    if (how.cwd.empty()) how.cwd = workspace.path();
    return runCaisson(arguments, how);
  }
};

TEST_F(Verbs, GoodPoliciesPassInEveryFormat) {
  CONFORMS("R-POLICY-14");
  workspace.write("p.toml",
                  "[resources]\nmemory = \"256M\"\nwall_seconds = \"30s\"\n\n[process]\nmax_processes = 20\n");
  workspace.write("p.json",
                  R"({"resources": {"memory": "256M", "wall_seconds": "30s"}, "process": {"max_processes": 20}})");
  workspace.write("p.yaml", "resources:\n  memory: 256M\n  wall_seconds: 30s\nprocess:\n  max_processes: 20\n");
  EXPECT_EQ(caisson({"policy", "check", "p.toml", "p.json", "p.yaml"}).exit_status, 0);
  std::vector<std::string> explained;
  for (const std::string name : {"p.toml", "p.json", "p.yaml"}) {
    EXPECT_EQ(run({"--policy", name}, {"echo", "ran"}).out, "ran\n") << name;
    const RunOutput output = caisson({"policy", "explain", name});
    EXPECT_EQ(output.exit_status, 0) << output.describe();
    EXPECT_TRUE(contains(output.out, "256 MiB")) << output.describe();
    explained.push_back(output.out);
  }
  EXPECT_EQ(explained[0], explained[1]) << "one schema, one decoder";
  EXPECT_EQ(explained[0], explained[2]);
}

TEST_F(Verbs, PolicyInitWritesAFileThatWorks) {
  const RunOutput made = caisson({"policy", "init"});
  ASSERT_EQ(made.exit_status, 0) << made.describe();
  EXPECT_EQ(caisson({"policy", "check", "caisson.toml"}).exit_status, 0);
  EXPECT_EQ(run({"--policy", "caisson.toml"}, {"echo", "ran"}).out, "ran\n");
  const RunOutput again = caisson({"policy", "init"});
  EXPECT_EQ(again.exit_status, 125) << "an existing file was replaced";
  EXPECT_TRUE(contains(again.err, "--force")) << again.describe();
  EXPECT_EQ(caisson({"policy", "init", "--force"}).exit_status, 0);
  EXPECT_EQ(caisson({"policy", "init", "-"}).out, readFile(workspace / "caisson.toml"));
}

TEST_F(Verbs, ExamplesInTheNewPolicyAreValid) {
  std::istringstream lines(caisson({"policy", "init", "-"}).out);
  std::string all;
  int examples = 0;
  for (std::string line; std::getline(lines, line);) {
    const bool example = line.starts_with("# ") && line.find(" = ") != std::string::npos;
    examples += example ? 1 : 0;
    all += (example ? line.substr(2) : line) + "\n";
  }
  EXPECT_GE(examples, 8);
  workspace.write("all.toml", all);
  const RunOutput checked = caisson({"policy", "check", "all.toml"});
  EXPECT_EQ(checked.exit_status, 0) << checked.describe() << all;
}

TEST_F(Verbs, PolicyReferenceDescribesKeys) {
  const RunOutput output = caisson({"policy", "reference"});
  EXPECT_EQ(output.exit_status, 0);
  EXPECT_TRUE(contains(output.out, "resources.memory\n")) << output.describe();
  EXPECT_TRUE(contains(output.out, "at most 2 GiB")) << output.describe();
  EXPECT_TRUE(contains(output.out, "filesystem.max_file_size\n    The largest file the payload may write.\n"))
      << output.describe();
}

TEST_F(Verbs, APolicyFileIsInForce) {
  workspace.write("p.toml", "[resources]\nwall_seconds = \"300ms\"\n");
  EXPECT_EQ(run({"--policy", "p.toml"}, {"sleep", "20"}).exit_status, 124);
  workspace.write("q.toml", "extends = \"strict\"\n");
  EXPECT_EQ(run({"--policy", "q.toml"}, {"pwd"}).exit_status, 0);
  workspace.write("r.toml", "[filesystem.workspace]\nmode = \"ro\"\n");
  EXPECT_EQ(script("touch new || echo no", {"--policy", "r.toml"}).out, "no\n");
}

TEST_F(Verbs, EveryMistakeOfAPolicyIsReportedTogether) {
  CONFORMS("R-POLICY-14");
  workspace.write("bad.toml",
                  "[resources]\nmemroy = 3\ncpus = 'many'\nwall_seconds = '1000h'\n[network]\nmode = 'maybe'\n"
                  "[nonsense]\nx = 1\n");
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"policy", "check", "bad.toml"}, {"run", "--policy", "bad.toml", "--", "true"}}) {
    const RunOutput output = caisson(command);
    EXPECT_NE(output.exit_status, 0);
    for (const std::string part : {"bad.toml:2: resources.memroy", "bad.toml:3: resources.cpus",
                                   "bad.toml:4: resources.wall_seconds", "bad.toml:6: network.mode", "nonsense"}) {
      EXPECT_TRUE(contains(output.err, part)) << part << " is missing: " << output.describe();
    }
    EXPECT_FALSE(contains(output.err, "stage")) << output.describe();
    EXPECT_FALSE(contains(output.err, "decode(")) << output.describe();
  }
}

TEST_F(Verbs, PolicyCheckNamesWhatThisMachineRefuses) {
  workspace.write("here.toml", "[filesystem]\nread_only = ['/nonexistent-directory']\n");
  const RunOutput output = caisson({"policy", "check", "here.toml"});
  EXPECT_EQ(output.exit_status, 0) << "the file itself is correct: " << output.describe();
  EXPECT_TRUE(contains(output.err, "here.toml: `caisson run` refuses it on this machine")) << output.describe();
  EXPECT_TRUE(contains(output.err, "/nonexistent-directory")) << output.describe();
  workspace.write("fine.toml", "[filesystem]\nread_only = ['/usr/bin']\n");
  EXPECT_EQ(caisson({"policy", "check", "fine.toml"}).err, "");
}

struct BadPolicy {
  const char* file;
  const char* content;
  const char* key;
  const char* line;
};

TEST_F(Verbs, ErrorsNameFileLineAndKey) {
  CONFORMS("R-POLICY-2");
  for (const BadPolicy& bad : {
           BadPolicy{"a.toml", "[resources]\n\nmemroy = 3\n", "memroy", ":3"},
           BadPolicy{"b.toml", "[resources]\nmemory = \"lots\"\n", "resources.memory", ":2"},
           BadPolicy{"c.toml", "[resources]\nmemory = true\n", "resources.memory", ":2"},
           BadPolicy{"d.toml", "[process]\nmax_processes = 100000\n", "process.max_processes", ":2"},
           BadPolicy{"e.toml", "[syscalls]\nallow = [\"read\", \"no_such_call\"]\n", "no_such_call", ":2"},
           BadPolicy{"f.toml", "x = = 1\n", "f.toml", ":1"},
           BadPolicy{"g.json", "{\n\"resources\": {\n\"memroy\": 3}}", "memroy", ":3"},
           BadPolicy{"h.json", "{\"a\": ", "h.json", ":1"},
           BadPolicy{"i.yaml", "resources:\n  wal: 3\n", "resources.wal", ":2"},
           BadPolicy{"j.yaml", "resources: [", "j.yaml", "j.yaml:"},
           BadPolicy{"k.toml", "[isolation]\nlevel = \"maximum\"\n", "isolation.level", ":2"},
           BadPolicy{"l.toml", "extends = \"no-such-profile\"\n", "no-such-profile", "l.toml"},
       }) {
    workspace.write(bad.file, bad.content);
    const RunOutput checked = caisson({"policy", "check", bad.file});
    EXPECT_NE(checked.exit_status, 0) << bad.file << checked.describe();
    for (const char* part : {bad.file, bad.key, bad.line}) {
      EXPECT_TRUE(contains(checked.err + checked.out, part))
          << bad.file << " should say " << part << checked.describe();
    }
    const RunOutput refused = run({"--policy", bad.file}, {"echo", "ran"});
    EXPECT_EQ(refused.exit_status, 125) << bad.file << refused.describe();
    EXPECT_EQ(refused.out, "");
    EXPECT_TRUE(contains(refused.err, bad.key)) << refused.describe();
  }
}

TEST_F(Verbs, AnEmptyAllowlistAllowsNothing) {
  CONFORMS("R-POLICY-14");
  workspace.write("p.toml", "[process]\nallowed_executables = []\n");
  const RunOutput output = run({"--policy", "p.toml"}, {"echo", "ran"});
  EXPECT_NE(output.exit_status, 0) << output.describe();
  EXPECT_EQ(output.out, "");
}

TEST_F(Verbs, SchemaIsJsonAndListsTheKeys) {
  CONFORMS("R-POLICY-1");
  const RunOutput output = caisson({"policy", "schema"});
  EXPECT_EQ(output.exit_status, 0);
  const json schema = output.json();
  ASSERT_FALSE(schema.is_discarded());
  EXPECT_TRUE(schema.contains("$schema"));
  for (const char* section :
       {"isolation", "filesystem", "process", "network", "resources", "syscalls", "environment"}) {
    EXPECT_TRUE(schema["properties"].contains(section)) << section;
    EXPECT_EQ(schema["properties"][section]["additionalProperties"], false) << section;
  }
}

TEST_F(Verbs, ExplainDistinguishesProfiles) {
  std::string previous;
  for (const std::string profile : {"bash", "shell", "strict"}) {
    const RunOutput output = caisson({"policy", "explain", "--profile", profile});
    EXPECT_EQ(output.exit_status, 0) << output.describe();
    EXPECT_NE(output.out, previous);
    previous = output.out;
  }
  EXPECT_EQ(caisson({"policy", "explain", "--profile", "nope"}).exit_status, 125);
}

TEST_F(Verbs, ExplainListsWidenings) {
  workspace.write("p.toml", "extends = \"strict\"\n\n[process]\nallow_exec = true\n");
  const RunOutput output = caisson({"policy", "explain", "p.toml"});
  EXPECT_TRUE(contains(output.out + output.err, "widen") && contains(output.out + output.err, "process.allow_exec"))
      << output.describe();
}

TEST_F(Verbs, PlanRunsNothingAndPrintsEveryLayer) {
  workspace.write("file", "x");
  const auto before = treeState(workspace.path());
  const RunOutput text = caisson({"plan", "--workspace", ".:rw", "--", "touch", "new"});
  EXPECT_EQ(text.exit_status, 0) << text.describe();
  EXPECT_TRUE(contains(text.out, "/workspace")) << text.describe();
  EXPECT_EQ(differences(before, treeState(workspace.path())), "");

  const RunOutput output = caisson({"plan", "--json", "--timeout", "7s", "--", "ls"});
  const json plan = output.json();
  ASSERT_FALSE(plan.is_discarded()) << output.describe();
  EXPECT_TRUE(plan["layers"].is_object());
  EXPECT_EQ(plan["command"], json::array({"ls"}));
  EXPECT_EQ(plan["limits"]["wall_seconds"], 7) << plan["limits"].dump();
}

TEST_F(Verbs, ThePlanAgreesWithTheRun) {
  CONFORMS("R-POLICY-19");
  EXPECT_EQ(caisson({"plan", "--json", "--", "true"}).json()["layers"], run({"--json"}, {"true"}).json()["layers"]);
}

TEST_F(Verbs, PlanRefusesWhatRunWouldRefuse) {
  CONFORMS("R-POLICY-19");
  workspace.write("big.toml", "[resources]\nmemory = '64G'\n");
  workspace.write("rules.toml", "commands.blocked_patterns = ['^true']\n");
  for (const std::vector<std::string>& options :
       std::vector<std::vector<std::string>>{{"--policy", "big.toml"},
                                             {"--no-such-option"},
                                             {"--workspace", "/does/not/exist"},
                                             {"--policy", "rules.toml"},
                                             {"--workspace", ".:rw", "--deny", "absent"},
                                             {"--tier", "landlock", "--workspace", ".:ro", "--deny", "sec"}}) {
    std::vector<std::string> words{"plan"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", "true"});
    const RunOutput planned = caisson(words);
    EXPECT_NE(planned.exit_status, 0) << options.back() << planned.describe();
    EXPECT_NE(planned.err, "") << options.back();
    EXPECT_EQ(run(options, {"true"}).exit_status, 125) << options.back();
  }
}

TEST_F(Verbs, DoctorPrintsJsonAndReportsLevelFull) {
  CONFORMS("R-USE-4");
  if (kThreadSanitizer) GTEST_SKIP() << "a program with a thread of its sanitizer's cannot try namespaces";
  const RunOutput output = caisson({"doctor", "--json"});
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  const json report = output.json();
  ASSERT_FALSE(report.is_discarded()) << output.describe();
  EXPECT_EQ(report["full_available"], true);
  ASSERT_TRUE(report["items"].is_array());
  for (const json& item : report["items"]) {
    EXPECT_TRUE(item["state"] == "pass" || item["state"] == "fail" || item["state"] == "degraded") << item.dump();
    EXPECT_TRUE(item["state"] == "pass" || item["remedy"] != "") << item.dump();
  }
  const RunOutput text = caisson({"doctor"});
  EXPECT_EQ(text.exit_status, 0);
  for (const char* word : {"kernel", "landlock", "seccomp", "cgroup", "overlay", "full"}) {
    EXPECT_TRUE(contains(text.out, word)) << word << text.describe();
  }
}

TEST_F(Verbs, DoctorNamesTheObstacleInsideASandbox) {
  const RunOutput output = run({"--ro", caissonBinary()}, {caissonBinary(), "doctor", "--json"});
  EXPECT_EQ(output.exit_status, 1) << output.describe();
  EXPECT_EQ(output.json()["full_available"], false) << output.describe();
}

TEST_F(Verbs, HelpAndVersionWork) {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{{"--help"},
                                                                                         {"help"},
                                                                                         {"run", "--help"},
                                                                                         {"plan", "--help"},
                                                                                         {"doctor", "--help"},
                                                                                         {"policy", "--help"},
                                                                                         {"policy", "check", "--help"},
                                                                                         {"--version"},
                                                                                         {"version"}}) {
    const RunOutput output = caisson(arguments);
    EXPECT_EQ(output.exit_status, 0) << arguments[0] << output.describe();
    EXPECT_NE(output.out, "");
    EXPECT_EQ(output.err, "");
  }
  EXPECT_TRUE(contains(caisson({"help", "run"}).out, "--workspace"));
  EXPECT_EQ(caisson({"--help"}, {.close = {1}}).timed_out, false);
}

TEST_F(Verbs, VersionPrintsCommitAndBuildOptions) {
  const std::string line = caisson({"--version"}).out;
  EXPECT_TRUE(line.starts_with("caisson ") && line.find('\n') == line.size() - 1) << line;
  const RunOutput text = caisson({"version"});
  EXPECT_TRUE(text.out.starts_with(line) && contains(text.out, "commit:")) << text.describe();
  const auto stated = caisson({"version", "--json"}).json();
  EXPECT_EQ("caisson " + stated["version"].get<std::string>() + "\n", line);
  for (const char* key : {"commit", "compiler", "flavour", "architecture"})
    EXPECT_NE(stated[key].get<std::string>(), "");
}

TEST_F(Verbs, SelfVerifyRefusesABuildDirectory) {
  const RunOutput output = caisson({"self", "verify"});
  EXPECT_EQ(output.exit_status, 125) << output.describe();
  EXPECT_TRUE(contains(output.err, "not installed from a package")) << output.describe();
}

TEST_F(Verbs, UnknownVerbsAreErrorsWithAHint) {
  CONFORMS("R-USE-5");
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"rum"}, {"policy", "chek"}, {""}, {"--nope"}}) {
    const RunOutput output = caisson(arguments);
    EXPECT_NE(output.exit_status, 0);
    EXPECT_TRUE(output.err.starts_with("caisson: ")) << output.describe();
    EXPECT_TRUE(contains(output.err, "try")) << output.describe();
  }
}

}  // namespace
}  // namespace caisson::test
