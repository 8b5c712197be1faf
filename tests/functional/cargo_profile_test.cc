// The profile `cargo` with real crates, and with a hostile build script.
#include <map>
#include <sstream>

#include "functional/sandbox.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

class CargoProfile : public SandboxTest {
 protected:
  void SetUp() override {
    SandboxTest::SetUp();
    if (IsSkipped()) return;
    requireOrSkip(findToolchain(), "there is no cargo and rustc that this user can run");
    workspace.write("Cargo.toml",
                    "[package]\nname = 'demo'\nversion = '0.1.0'\nedition = '2021'\nbuild = 'build.rs'\n"
                    "[dependencies]\nhelper = { path = 'helper' }\n");
    workspace.write("helper/Cargo.toml", "[package]\nname = 'helper'\nversion = '0.1.0'\nedition = '2021'\n");
    workspace.write("helper/src/lib.rs", "pub fn answer() -> i32 { 42 }\n");
    workspace.write("src/lib.rs", "");
    workspace.write("build.rs", "fn main() { println!(\"cargo:rustc-env=BUILT_BY=script\"); }\n");
    workspace.write("tests/built.rs",
                    "#[test] fn by_script_and_helper() {\n"
                    "  assert_eq!((env!(\"BUILT_BY\"), helper::answer()), (\"script\", 42));\n}\n");
    RunOptions lock;
    lock.cwd = workspace.path();
    lock.env["CARGO_HOME"] = home_.path();
    ASSERT_EQ(runProgram({cargo_, "generate-lockfile", "--offline"}, lock).exit_status, 0);
    workspace.openToAll();
    how_.timeout = std::chrono::minutes(5);
    how_.env["CAISSON_HOME"] = state_.path();
  }

  /// The system's, or one in the caller's home, which the profile shows.
  bool findToolchain() {
    if (systemHas("cargo") && systemHas("rustc")) return true;
    const RunOutput root = runProgram({"sh", "-c", "cd / && rustc --print sysroot"});
    const std::string sysroot = root.out.substr(0, root.out.find('\n'));
    cargo_ = sysroot + "/bin/cargo";
    return root.exit_status == 0 && exists(cargo_);
  }

  [[nodiscard]] RunOutput cargo(const std::vector<std::string>& words, std::vector<std::string> options = {}) const {
    std::vector<std::string> command{"cargo"};
    command.insert(command.end(), words.begin(), words.end());
    options.insert(options.begin(), {"--profile", "cargo"});
    return run(options, command, how_);
  }

  /// A build script with this body; it panics on a problem.
  void buildScript(const std::string& body) const {
    workspace.write(
        "build.rs",
        "use std::{fs, fs::OpenOptions, io::Write, process::Command};\n#[allow(unused_imports)]\nfn main() {\n" + body +
            "\nlet _ = (Command::new(\"x\"), OpenOptions::new(), fs::metadata(\"/\"), std::io::sink().flush());\n"
            "println!(\"cargo:rustc-env=BUILT_BY=script\");\n}\n");
    workspace.openToAll();
  }

  RunOptions how_;
  std::string cargo_ = "/usr/bin/cargo";
  const TempDir home_;
  const TempDir state_;
};

TEST_F(CargoProfile, BuildsAndTestsACrateWithABuildScriptAndAPathDependency) {
  CONFORMS("R-CARGO-1");
  const RunOutput built = cargo({"build", "--quiet"});
  EXPECT_EQ(built.exit_status, 0) << built.describe();
  const RunOutput tested = cargo({"test", "--quiet", "--tests"});
  EXPECT_EQ(tested.exit_status, 0) << tested.describe();
  EXPECT_TRUE(contains(tested.out, "1 passed")) << tested.describe();
  EXPECT_FALSE(exists(workspace / "target"));
}

TEST_F(CargoProfile, UsesTheToolchainOfRustupInTheHome) {
  const RunOutput root = runProgram({"sh", "-c", "cd / && rustup which rustc"});
  requireOrSkip(root.exit_status == 0, "this user has no rustup");
  const std::string rustc = root.out.substr(0, root.out.find('\n'));
  const std::string programs = rustc.substr(0, rustc.rfind('/'));
  const RunOutput built = cargo({"build", "--quiet"}, {"--json"});
  EXPECT_EQ(built.json()["exit_code"], 0) << built.describe();
  EXPECT_TRUE(contains(built.json()["layers"]["toolchains"], programs)) << built.describe();
  buildScript("println!(\"cargo:warning=built by {}\", std::env::var(\"RUSTC\").unwrap());");
  const RunOutput named = cargo({"build"});
  EXPECT_TRUE(contains(named.err, "built by rustc")) << named.describe();
}

TEST_F(CargoProfile, BuildOutputMayBeLargerThanTheMemoryLimit) {
  // 600 MiB in the target directory, with the profile's 512 MiB of memory.
  buildScript(R"(
    let path = format!("{}/large", std::env::var("OUT_DIR").unwrap());
    let mut file = fs::File::create(&path).unwrap();
    for _ in 0..600 { file.write_all(&vec![1u8; 1 << 20]).unwrap(); }
    assert_eq!(fs::metadata(&path).unwrap().len(), 600 << 20);
)");
  const RunOutput built = cargo({"build", "--quiet"}, {"--json"});
  EXPECT_EQ(built.exit_status, 0) << built.describe();
  EXPECT_TRUE(contains(built.json()["layers"]["disk_quota"], "watched: /target 5 GiB")) << built.describe();
  EXPECT_EQ(runProgram({"ls", "-A", state_ / "runs"}).out, "");
}

TEST_F(CargoProfile, BuildScriptFindsNoShellOrInterpreterAndCannotAddOne) {
  CONFORMS("R-CARGO-6");
  workspace.write("build.rs", R"(
use std::process::Command;
fn main() {
    for program in ["sh", "/bin/sh", "/usr/bin/bash", "python3", "node", "perl", "/usr/bin/env"] {
        if Command::new(program).arg("--version").output().is_ok() { panic!("ran {program}"); }
    }
    let own = std::env::current_exe().unwrap();
    if std::env::args().len() > 1 { return; }
    for place in ["/tmp", "/cargo-home", "/home/sandbox", "/dev/shm", "/var/tmp", "/run", "/logs", "/workspace"] {
        let copy = format!("{place}/copy");
        let made = std::fs::copy(&own, &copy).is_ok();
        if !made && (place == "/tmp" || place == "/cargo-home") { panic!("no room in {place}"); }
        if made && Command::new(&copy).arg("again").output().is_ok() { panic!("ran {copy}"); }
    }
    std::fs::copy(&own, "/target/copy").unwrap();
    if !Command::new("/target/copy").arg("again").status().unwrap().success() { panic!("/target runs nothing"); }
    if std::fs::write("/workspace/written", "x").is_ok() { panic!("wrote to the workspace"); }
    println!("cargo:rustc-env=BUILT_BY=script");
}
)");
  const RunOutput built = cargo({"build", "--quiet"});
  EXPECT_EQ(built.exit_status, 0) << built.describe();
}

TEST_F(CargoProfile, OnlyItsCommandsRun) {
  CONFORMS("R-CARGO-7");
  EXPECT_EQ(cargo({"--version"}).exit_status, 0);
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"check", "--quiet"}, {"doc", "--quiet", "--no-deps"}, {"clean"}}) {
    const RunOutput output = cargo(words);
    EXPECT_EQ(output.exit_status, 0) << words[0] << output.describe();
  }
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"install", "x"},
                                             {"run"},
                                             {"build", "--config", "build.rustc-wrapper='/target/x'"},
                                             {"publish"},
                                             {"+nightly", "build"}}) {
    const RunOutput refused = cargo(words);
    EXPECT_EQ(refused.exit_status, 125) << refused.describe();
    EXPECT_TRUE(contains(refused.err, "commands.")) << refused.describe();
  }
  EXPECT_EQ(run({"--profile", "cargo"}, {"bash", "-c", "true"}).exit_status, 125);
}

/// The states of a result, as one text.
std::string statesOf(const nlohmann::json& result) {
  std::string text;
  for (const auto& step : result["lifecycle"]) text += (text.empty() ? "" : " ") + step["state"].get<std::string>();
  return text;
}

TEST_F(CargoProfile, LogsCanBeWrittenAndNothingElse) {
  CONFORMS("R-CARGO-3");
  buildScript(R"(
    let mut log = OpenOptions::new().create(true).append(true).open("/logs/build.log").expect("a log can be made");
    writeln!(log, "first").unwrap();
    let mut again = OpenOptions::new().append(true).open("/logs/build.log").expect("and appended to");
    writeln!(again, "second").unwrap();
    if fs::read("/logs/build.log").is_ok() { panic!("read it back"); }
    if fs::read(format!("/proc/self/fd/{}", std::os::unix::io::AsRawFd::as_raw_fd(&log))).is_ok() { panic!("read by descriptor"); }
    if fs::remove_file("/logs/build.log").is_ok() { panic!("removed it"); }
    if fs::rename("/logs/build.log", "/logs/other").is_ok() { panic!("renamed it"); }
    if fs::rename("/logs/build.log", "/tmp/other").is_ok() { panic!("moved it away"); }
    if fs::hard_link("/logs/build.log", "/tmp/other").is_ok() { panic!("linked it"); }
    if OpenOptions::new().write(true).truncate(true).open("/logs/build.log").is_ok() { panic!("emptied it"); }
)");
  const RunOutput built = cargo({"build", "--quiet"});
  EXPECT_EQ(built.exit_status, 0) << built.describe();
}

/// Without cargo: the profile's directories, used by programs that every host has.
class CargoDirectories : public SandboxTest {
 protected:
  void SetUp() override {
    SandboxTest::SetUp();
    if (IsSkipped()) return;
    policy_ = workspace.write("cargo.toml",
                              "extends = 'cargo'\n[process]\nallowed_executables = ['bash', 'cat']\n"
                              "blocked_executables = []\n[commands]\nallowed_patterns = ['^bash']\n"
                              "blocked_patterns = []\n");
    workspace.openToAll();
    how_.env["CAISSON_HOME"] = state_.path();
  }

  std::string policy_;
  RunOptions how_;
  const TempDir state_;
};

TEST_F(CargoDirectories, LogsAreReadableForTheOwnerAfterwards) {
  CONFORMS("R-CARGO-3");
  const RunOutput output =
      run({"--policy", policy_, "--json"},
          {"bash", "-c", "echo one >> /logs/build.log; echo two >> /logs/build.log; cat /logs/build.log"}, how_);
  const auto result = output.json();
  EXPECT_NE(result["exit_code"], 0) << "the program cannot read it: " << output.describe();
  const std::string path = state_ / ("logs/" + result["sandbox_id"].get<std::string>() + "-logs/build.log");
  EXPECT_EQ(readFile(path), "one\ntwo\n") << output.describe();
  EXPECT_TRUE(contains(result["notices"].dump(), "/logs is kept in " + state_.path())) << output.describe();
  const RunOutput silent = run({"--policy", policy_, "--json"}, {"bash", "-c", "true"}, how_);
  EXPECT_FALSE(contains(silent.json()["notices"].dump(), "is kept in")) << silent.describe();
}

TEST_F(CargoDirectories, LogsOfASessionAreReadableAfterItIsDestroyed) {
  CONFORMS("R-CARGO-3");
  const auto caisson = [&](std::vector<std::string> words) { return runCaisson(words, how_); };
  const RunOutput made =
      caisson({"session", "create", "--policy", policy_, "--workspace", workspace.path() + ":overlay"});
  const std::string id = made.out.substr(0, made.out.find('\n'));
  const RunOutput one = caisson({"session", "exec", id, "--", "bash", "-c", "echo one >> /logs/build.log"});
  EXPECT_EQ(one.exit_status, 0) << one.describe();
  const RunOutput two = caisson({"session", "exec", id, "--", "bash", "-c", "echo two >> /logs/build.log"});
  EXPECT_EQ(two.exit_status, 0) << two.describe();
  const RunOutput gone = caisson({"session", "destroy", id});
  EXPECT_EQ(gone.exit_status, 0) << gone.describe();
  const std::string kept = state_ / ("logs/" + id + "-logs");
  EXPECT_EQ(readFile(kept + "/build.log"), "one\ntwo\n") << gone.describe();
  EXPECT_TRUE(contains(gone.err, "are kept in " + kept)) << gone.describe();
  EXPECT_TRUE(contains(caisson({"audit", "show", "--json"}).out, "/logs is kept in " + kept));
}

TEST_F(CargoDirectories, MetadataDescribesTheSandboxAndCannotBeChanged) {
  CONFORMS("R-CARGO-2");
  const RunOutput output = run({"--policy", policy_},
                               {"bash", "-c",
                                "cat /metadata/sandbox.json; echo x > /metadata/sandbox.json; "
                                "echo x > /metadata/new; exit 0"},
                               how_);
  const auto described = nlohmann::json::parse(output.out, nullptr, false);
  ASSERT_TRUE(described.is_object()) << output.describe();
  EXPECT_EQ(described["memory_bytes"], 512 << 20) << output.describe();
  EXPECT_EQ(described["open_files"], 500) << output.describe();
  EXPECT_EQ(described["network"], "none") << output.describe();
  EXPECT_TRUE(contains(output.err, "/metadata/sandbox.json: Permission denied")) << output.describe();
  EXPECT_TRUE(contains(output.err, "/metadata/new: Permission denied")) << output.describe();
}

TEST_F(CargoProfile, MetadataAndWorkspaceAreReadOnly) {
  CONFORMS("R-CARGO-2");
  buildScript(R"(
    fs::read_dir("/metadata").expect("it is there");
    for place in ["/metadata/x", "/workspace/x", "/usr/x", "/x"] {
        if fs::write(place, "x").is_ok() { panic!("wrote {place}"); }
    }
    for place in ["/target/x", "/cargo-home/x", "/tmp/x", "/home/sandbox/x"] {
        fs::write(place, "x").unwrap_or_else(|error| panic!("{place}: {error}"));
        fs::read(place).unwrap_or_else(|error| panic!("{place}: {error}"));
    }
)");
  const RunOutput built = cargo({"build", "--quiet"});
  EXPECT_EQ(built.exit_status, 0) << built.describe();
}

TEST_F(CargoProfile, DirectoriesHaveTheirSizes) {
  CONFORMS("R-CARGO-4");
  buildScript(R"(
    let block = vec![0u8; 1 << 20];
    let mut log = fs::OpenOptions::new().create(true).append(true).open("/logs/full").unwrap();
    let mut written = 0;
    while log.write_all(&block).is_ok() { written += 1; }
    if written > 100 || written < 90 { panic!("{written} MiB of logs"); }
)");
  const RunOutput built = cargo({"build", "--quiet"});
  EXPECT_EQ(built.exit_status, 0) << built.describe();
  const auto policy = runCaisson({"policy", "explain", "--profile", "cargo", "--json"}).json()["policy"];
  std::map<std::string, std::uint64_t> sizes;
  for (const auto& mount : policy["filesystem"]["tmpfs"]) sizes[mount["path"]] = mount["size"];
  EXPECT_EQ(sizes["/target"], 5ULL << 30);
  EXPECT_EQ(sizes["/logs"], 100ULL << 20);
  EXPECT_EQ(sizes["/tmp"], 1ULL << 30);
  EXPECT_EQ(policy["resources"]["cpu_seconds"], 300);
  EXPECT_EQ(policy["resources"]["wall_seconds"], 600);
}

/// /target has a size limit; a build that hits it fails, and the result names the limit.
TEST_F(CargoProfile, ABuildThatFillsTargetIsEndedByDisk) {
  CONFORMS("R-CARGO-5", "R-AUDIT-16");
  std::string policy = "extends = \"cargo\"\n";  // a list replaces the inherited one
  for (const std::string place :
       {"/target\"\nexec = true\nsize = \"24M", "/tmp\"\nsize = \"64M", "/cargo-home\"\nsize = \"64M"}) {
    policy += "[[filesystem.tmpfs]]\npath = \"" + place + "\"\n";
  }
  workspace.write("small.toml", policy);
  buildScript(R"(
    let block = vec![7u8; 1 << 20];
    let mut file = fs::File::create("/target/big").unwrap();
    for _ in 0..200 { file.write_all(&block).expect("no room"); }
)");
  const std::vector<std::string> build{"cargo", "build", "--quiet"};
  const RunOutput full = run({"--policy", "small.toml", "--json"}, build, how_);
  EXPECT_EQ(full.json()["outcome"], "limit") << full.describe();
  EXPECT_EQ(full.json()["limit"], "disk") << full.describe();
  EXPECT_EQ(full.json()["denials"][0]["rule"], "filesystem.tmpfs") << full.describe();
  EXPECT_EQ(full.json()["denials"][0]["object"], "/target") << full.describe();
  EXPECT_EQ(statesOf(full.json()), "Created Initialized Running Monitoring Error Cleanup") << full.describe();
  EXPECT_EQ(cargo({"build", "--quiet"}).exit_status, 0) << "the same build has room in the profile's own /target";
}

/// The size of /tmp is the policy's, as that of /target is; 1 GiB is too much to write here.
TEST_F(CargoProfile, ABuildThatFillsTheTemporaryFilesIsEndedByDisk) {
  CONFORMS("R-CARGO-4");
  workspace.write("small.toml", "extends = \"cargo\"\nfilesystem.tmpfs.\"/tmp\".size = \"24M\"\n");
  buildScript(R"(
    let block = vec![7u8; 1 << 20];
    let mut file = fs::File::create("/tmp/big").unwrap();
    for _ in 0..200 { file.write_all(&block).expect("no room"); }
)");
  const RunOutput full = run({"--policy", "small.toml", "--json"}, {"cargo", "build", "--quiet"}, how_);
  EXPECT_EQ(full.json()["limit"], "disk") << full.describe();
  EXPECT_EQ(full.json()["denials"][0]["object"], "/tmp") << full.describe();
  EXPECT_EQ(cargo({"build", "--quiet"}).exit_status, 0) << "the same build has room in the profile's own /tmp";
}

TEST_F(CargoProfile, StatesAreInTheResultAndTheAuditLog) {
  CONFORMS("R-CARGO-8", "R-AUDIT-16");
  EXPECT_EQ(statesOf(cargo({"--version"}, {"--json"}).json()),
            "Created Initialized Running Monitoring Completed Cleanup");
  buildScript("std::thread::sleep(std::time::Duration::from_secs(60));");
  EXPECT_EQ(statesOf(cargo({"build", "--quiet"}, {"--json", "--timeout", "3s"}).json()),
            "Created Initialized Running Monitoring Timeout Cleanup");
  buildScript("std::process::abort();");
  const RunOutput failed = cargo({"build", "--quiet"}, {"--json"});
  EXPECT_EQ(statesOf(failed.json()), "Created Initialized Running Monitoring Completed Cleanup")
      << "cargo itself reports that its script crashed";
  EXPECT_NE(failed.json()["exit_code"], 0);

  const RunOutput log = runCaisson({"audit", "show", "--json", "--event", "lifecycle"}, how_);
  std::istringstream lines(log.out);
  std::map<std::string, std::string> of_run;
  std::vector<std::string> order;
  for (std::string line; std::getline(lines, line);) {
    const auto event = nlohmann::json::parse(line, nullptr, false);
    const std::string id = event["sandbox"];
    if (!of_run.contains(id)) order.push_back(id);
    of_run[id] += (of_run[id].empty() ? "" : " ") + event["data"]["state"].get<std::string>();
  }
  ASSERT_EQ(order.size(), 3U) << log.describe();
  EXPECT_EQ(of_run[order[0]], "Created Initialized Running Monitoring Completed Cleanup");
  EXPECT_EQ(of_run[order[1]], "Created Initialized Running Monitoring Timeout Cleanup");
}

}  // namespace
}  // namespace caisson::test
