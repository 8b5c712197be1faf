// Executable lists against every known way around a name. Each attack succeeds once its protection is disabled.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <sstream>

#include "security/attack.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

constexpr const char* kListed = "/usr/bin/true";
constexpr const char* kUnlisted = "/usr/bin/id";

/// A small library that every program can load.
std::string systemLibrary() {
  for (const char* file : {"/lib/x86_64-linux-gnu/libutil.so.1", "/lib/aarch64-linux-gnu/libutil.so.1",
                           "/lib64/libutil.so.1", "/usr/lib/libutil.so.1"}) {
    if (access(file, R_OK) == 0) return file;
  }
  return {};
}

/// Whether /proc/PID/maps shows code of this file. A loader that failed may leave data mapped.
bool mapsCode(const std::string& maps, const std::string& file) {
  std::istringstream lines(maps);
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with(file) && line.find("r-xp") != std::string::npos) return true;
  }
  return false;
}

class ExecutableList : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    requireOrSkip(fullIsolationAvailable(&why), why);
    files_.openToAll();
  }

  /// A policy that allows the payload itself and `true`, or what `process` sets instead.
  [[nodiscard]] Attack attack(std::vector<std::string> verb, const std::string& process = {}) const {
    const std::string list = "allowed_executables = ['" + payloadPath() + "', '" + kListed + "']";
    const std::string file = files_.write("policy.toml", "[process]\n" + (process.empty() ? list : process) + "\n");
    return {.verb = std::move(verb), .options = {"--policy", file}};
  }

  const TempDir files_;
};

TEST_F(ExecutableList, LetsTheListedProgramsRun) { EXPECT_TRUE(succeeded(inSandbox(attack({"execute", kListed})))); }

TEST_F(ExecutableList, HoldsAgainstAnAbsolutePath) {
  CONFORMS("R-PROCESS-7");
  expectOnlyStoppedBy("noexec,programs,landlock", attack({"execute", kUnlisted}));
}

TEST_F(ExecutableList, HoldsAgainstARelativePath) {
  expectOnlyStoppedBy("noexec,programs,landlock", attack({"execute-from", "/tmp", "../usr/bin/id"}));
}

TEST_F(ExecutableList, HoldsAgainstASymbolicLink) {
  CONFORMS("R-PROCESS-7");
  expectOnlyStoppedBy("noexec,programs,landlock", attack({"execute-symlink", kUnlisted, "/tmp/true"}));
}

TEST_F(ExecutableList, HoldsAgainstAShell) {
  CONFORMS("R-PROCESS-7");
  expectOnlyStoppedBy("noexec,programs,landlock", attack({"execute", "/bin/sh", "-c", "exit 0"}));
}

TEST_F(ExecutableList, HoldsAgainstAScriptsInterpreter) {
  CONFORMS("R-PROCESS-7");
  expectOnlyStoppedBy("noexec,programs,landlock", attack({"execute-script", "/bin/sh", "/tmp/script"}));
}

TEST_F(ExecutableList, HoldsAgainstACopyInAWritableDirectory) {
  CONFORMS("R-PROCESS-7");
  for (const char* copy : {"/tmp/copy", "/dev/shm/copy", "/home/sandbox/copy", "/run/copy", "/var/tmp/copy"}) {
    expectOnlyStoppedBy("noexec,landlock", attack({"execute-copy", kListed, copy}));
  }
}

TEST_F(ExecutableList, HoldsAgainstACopyInTheWorkspace) {
  const TempDir workspace;
  workspace.openToAll();
  for (const std::string mode : {":overlay", ":rw"}) {
    Attack copy = attack({"execute-copy", kListed, "/workspace/copy"});
    copy.workspace = workspace.path() + mode;
    expectOnlyStoppedBy("noexec,landlock", copy);
    unlink((workspace / "copy").c_str());
  }
}

TEST_F(ExecutableList, HoldsAgainstAProgramThatTheWorkspaceBrings) {
  CONFORMS("R-FILES-8");
  const TempDir workspace;
  workspace.write("brought", readFile(kListed), 0755);
  workspace.openToAll();
  for (const std::string mode : {":overlay", ":ro"}) {
    Attack brought = attack({"execute", "/workspace/brought"});
    brought.workspace = workspace.path() + mode;
    expectOnlyStoppedBy("noexec,landlock", brought);
  }
}

TEST_F(ExecutableList, HoldsAgainstTheLoader) {
  CONFORMS("R-PROCESS-7");
  // Landlock stays enabled: it does not cover what ld.so maps, so only noexec protects here.
  expectOnlyStoppedBy("noexec", attack({"execute-by-loader", kLoader, kListed, "/tmp/copy"}));
}

TEST_F(ExecutableList, HoldsAgainstLibrariesOfThePayloadsOwn) {
  expectOnlyStoppedBy("noexec", attack({"map-code", kListed, "/tmp/preload.so"}));
}

TEST_F(ExecutableList, HoldsAgainstMemoryFiles) {
  CONFORMS("R-PROCESS-7");
  expectOnlyStoppedBy("allow:memfd_create", attack({"execute-memory", kListed}));
  EXPECT_TRUE(contained(inSandbox(attack({"execute-memory", kListed, "exec"}))));
}

TEST_F(ExecutableList, HoldsAgainstFilesWithoutAName) {
  CONFORMS("R-PROCESS-7");
  expectOnlyStoppedBy("noexec,landlock", attack({"execute-unnamed", kListed, "/tmp"}));
}

TEST_F(ExecutableList, HoldsAgainstHardLinksOfThePayloadsOwn) {
  EXPECT_TRUE(contained(inSandbox(attack({"execute-hard-link", kListed, "/tmp/link"}))));
  EXPECT_TRUE(contained(inSandbox(attack({"execute-hard-link", kUnlisted, "/tmp/link"}))));
}

TEST_F(ExecutableList, HoldsAgainstAHardLinkBesideTheProgram) {
  CONFORMS("R-PROCESS-7");
  const TempDir workspace;
  workspace.write("brought", readFile(kListed), 0755);
  workspace.openToAll();
  Attack link = attack({"execute-hard-link", "/workspace/brought", "/workspace/link"});
  link.workspace = workspace.path() + ":overlay";
  expectOnlyStoppedBy("noexec,landlock", link);
}

TEST_F(ExecutableList, HoldsAgainstPreloading) {
  CONFORMS("R-PROCESS-7");
  const TempDir workspace;
  const std::string library = workspace.write("library.so", readFile(systemLibrary()), 0755);
  workspace.openToAll();
  const Attack attempt =
      attack({}, "allowed_executables = ['cat']\n[environment.set]\nLD_PRELOAD = '/workspace/library.so'");
  std::vector<std::string> words{
      attempt.options[0], attempt.options[1], "--workspace", workspace.path() + ":overlay", "--", "cat",
      "/proc/self/maps"};
  std::vector<std::string> command{"run"};
  command.insert(command.end(), words.begin(), words.end());
  const RunOutput held = runCaisson(command);
  EXPECT_EQ(held.exit_status, 0) << held.describe();
  EXPECT_FALSE(mapsCode(held.out, "library.so")) << held.describe();
  EXPECT_NE(held.err.find("cannot be preloaded"), std::string::npos) << held.describe();
  if (!mayWeaken()) return;
  std::vector<std::string> without{weakenedPath(), "noexec"};
  without.insert(without.end(), words.begin(), words.end());
  const RunOutput loaded = runProgram(without);
  EXPECT_TRUE(mapsCode(loaded.out, "library.so")) << loaded.describe();
}

TEST_F(ExecutableList, UnlistedProgramsAreNotEvenReadable) {
  const RunOutput output = inSandbox(attack({"execute-copy", kUnlisted, "/tmp/copy"}));
  EXPECT_TRUE(contained(output));
  EXPECT_NE(output.out.find("copy: ENOENT"), std::string::npos) << output.describe();
}

TEST_F(ExecutableList, HoldsAtLevelProcess) {
  CONFORMS("R-PROCESS-7");
  EXPECT_TRUE(succeeded(inSandbox(atLevelProcess(attack({"execute", kListed})))));
  EXPECT_TRUE(contained(inSandbox(atLevelProcess(attack({"execute", kUnlisted})))));
  EXPECT_TRUE(contained(inSandbox(atLevelProcess(attack({"execute-copy", kListed, "/tmp/copy"})))));
  EXPECT_TRUE(contained(inSandbox(atLevelProcess(attack({"execute-by-loader", kLoader, kUnlisted, "/tmp/copy"})))));
  EXPECT_TRUE(contained(inSandbox(atLevelProcess(attack({"execute-memory", kListed})))));
}

TEST_F(ExecutableList, AllowsOneAppletOfAMultiCallProgramWithoutTheOthers) {
  files_.write("busybox", readFile(kListed), 0755);
  ASSERT_EQ(symlink("busybox", (files_ / "ls").c_str()), 0);
  const std::string list = "allowed_executables = ['" + payloadPath() + "', '" + (files_ / "ls") + "']";
  const RunOutput refused = inSandbox(attack({"execute", kListed}, list));
  EXPECT_EQ(refused.exit_status, 125);
  EXPECT_NE(refused.err.find("busybox"), std::string::npos) << refused.describe();
}

TEST_F(ExecutableList, ListedScriptDoesNotAllowItsInterpreter) {
  files_.write("tool", "#!/bin/sh\nexit 0\n", 0755);
  const std::string list = "allowed_executables = ['" + payloadPath() + "', '" + (files_ / "tool") + "'";
  const RunOutput refused = inSandbox(attack({"execute", files_ / "tool"}, list + "]"));
  EXPECT_EQ(refused.exit_status, 125);
  EXPECT_NE(refused.err.find("is a script for"), std::string::npos) << refused.describe();
  EXPECT_TRUE(succeeded(inSandbox(attack({"execute", files_ / "tool"}, list + ", 'sh']"))));
}

TEST_F(ExecutableList, DirectoryIsExecutableWhereThePolicyAllowsIt) {
  CONFORMS("R-FILES-8");
  const std::string list =
      "allowed_executables = ['" + payloadPath() + "', '" + kListed + "']\nexecutable_directories = ['/tmp']";
  const Attack built = attack({"execute-copy", kListed, "/tmp/built"}, list);
  const RunOutput output = runCaisson({"run", "--ro", payloadPath(), built.options[0], built.options[1], "--workspace",
                                       ":none", "--json", "--", payloadPath(), "execute-copy", kListed, "/tmp/built"});
  EXPECT_EQ(output.json()["exit_code"], 0) << output.describe();
  EXPECT_NE(output.json()["warnings"].dump().find("/tmp"), std::string::npos) << output.describe();
  EXPECT_TRUE(contained(inSandbox(attack({"execute-copy", kListed, "/var/tmp/built"}, list))));
}

class Blocklist : public ExecutableList {};

TEST_F(Blocklist, BlocksAProgramUnderEveryName) {
  CONFORMS("R-PROCESS-8");
  const std::string list = "blocked_executables = ['sh', 'id']";
  const std::unique_ptr<char, decltype(&std::free)> shell(realpath("/bin/sh", nullptr), &std::free);
  // The list makes the payload's own directory noexec; it is started from the system's.
  for (const std::string& program :
       std::vector<std::string>{"sh", "/bin/sh", "/usr/bin/sh", shell.get(), "/usr/bin/id"}) {
    const Attack attempt = attack({}, list);
    const std::vector<std::string> script{
        "run", attempt.options[0],      attempt.options[1], "--workspace", ":none", "--", "bash",
        "-c",  program + " -c 'exit 0'"};
    const RunOutput output = runCaisson(script);
    EXPECT_EQ(output.exit_status, 126) << program << output.describe();
  }
}

TEST_F(Blocklist, CoversHardLinks) {
  CONFORMS("R-PROCESS-8");
  struct stat status{};
  requireOrSkip(stat("/usr/bin/perl", &status) == 0 && status.st_nlink > 1, "perl has no second name here");
  const Attack attempt = attack({}, "blocked_executables = ['perl']");
  const RunOutput output = runCaisson({"run", attempt.options[0], attempt.options[1], "--workspace", ":none", "--",
                                       "bash", "-c", "for p in /usr/bin/perl5.*.*; do $p -e 0 && echo $p; done"});
  EXPECT_EQ(output.out, "") << output.describe();
  if (!mayWeaken()) return;
  const RunOutput without =
      runProgram({weakenedPath(), "masks", attempt.options[0], attempt.options[1], "--workspace", ":none", "--", "bash",
                  "-c", "for p in /usr/bin/perl5.*.*; do $p -e 0 && echo $p; done"});
  EXPECT_NE(without.out, "") << without.describe();
}

TEST_F(Blocklist, HoldsAgainstCopiesAndMemoryFiles) {
  CONFORMS("R-PROCESS-8");
  const Attack attempt = attack({}, "blocked_executables = ['id']");
  const std::vector<std::string> words{attempt.options[0],
                                       attempt.options[1],
                                       "--workspace",
                                       ":none",
                                       "--",
                                       "bash",
                                       "-c",
                                       "cp /usr/bin/id /tmp/copy; cp /usr/bin/true /tmp/t && /tmp/t"};
  std::vector<std::string> command{"run"};
  command.insert(command.end(), words.begin(), words.end());
  EXPECT_EQ(runCaisson(command).exit_status, 126);
  if (!mayWeaken()) return;
  std::vector<std::string> without{weakenedPath(), "noexec,landlock"};
  without.insert(without.end(), words.begin(), words.end());
  EXPECT_EQ(runProgram(without).exit_status, 0);
}

/// The blocked program's bytes, under other names and through other ways to start them. Each would print "uid=".
TEST_F(Blocklist, OtherNamesForTheBytesOfABlockedProgramDoNotRun) {
  CONFORMS("R-PROCESS-8");
  requireOrSkip(hasProgram("python3"), "no python3");
  const TempDir shown, state;
  const std::string copy = shown / "copy";
  std::filesystem::copy_file("/usr/bin/id", copy);
  shown.openToAll();
  const std::string policy = shown.write("p.toml", "extends = 'bash'\n[process]\nblocked_executables = ['id']\n");
  const std::string memory =
      "import os; f = os.memfd_create('x', 0); os.write(f, open('COPY', 'rb').read()); os.execve(f, ['id'], {})";
  for (const std::string level : {"full", "process"}) {
    const std::string at = level == "full" ? "/workspace/copy" : copy;
    std::string code = memory;
    code.replace(code.find("COPY"), 4, at);
    const std::vector<std::vector<std::string>> ways{
        {"python3", "-c", code}, {kLoader, "/usr/bin/id"}, {kLoader, at}, {at}, {"/usr/bin/id"}};
    for (const std::vector<std::string>& way : ways) {
      std::vector<std::string> words{"run",         "--policy",           policy, "--level", level,
                                     "--workspace", shown.path() + ":ro", "--"};
      // Through a shell: the plan already refuses a command that names the program itself.
      words.insert(words.end(), {"sh", "-c", "exec \"$@\"", "sh"});
      words.insert(words.end(), way.begin(), way.end());
      const RunOutput output = runCaisson(words, {.env = {{"CAISSON_HOME", state.path()}}});
      EXPECT_EQ(output.out.find("uid="), std::string::npos) << level << " " << way.back() << output.describe();
      EXPECT_NE(output.exit_status, 0) << level << " " << way.back() << output.describe();
      if (!mayWeaken()) continue;
      words.front() = "noexec,masks,landlock,allow:memfd_create,self-test";
      words.insert(words.begin(), weakenedPath());
      const RunOutput without = runProgram(words, {.env = {{"CAISSON_HOME", state.path()}}});
      EXPECT_NE(without.out.find("uid="), std::string::npos) << level << " " << way.back() << without.describe();
    }
  }
}

TEST_F(ExecutableList, AppliesToTheCommandItself) {
  const Attack attempt = attack({}, "allowed_executables = ['true']");
  const RunOutput output = runCaisson({"run", attempt.options[0], attempt.options[1], "--json", "--", "id"});
  EXPECT_EQ(output.json()["outcome"], "denied") << output.describe();
  EXPECT_EQ(output.json()["denials"][0]["rule"], "process.allowed_executables") << output.describe();
}

}  // namespace
}  // namespace caisson::test
