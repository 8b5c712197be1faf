// Executable lists against a real busybox: a shell and about a hundred programs in one file, selected by the name under
// which it is called.
#include <unistd.h>

#include <filesystem>

#include "security/attack.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

constexpr const char* kBusybox = "/usr/bin/busybox";

class Busybox : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    requireOrSkip(fullIsolationAvailable(&why), why);
    requireOrSkip(access(kBusybox, X_OK) == 0, "busybox is not installed");
    workspace_.write("busybox", readFile(kBusybox), 0755);
    workspace_.openToAll();
    files_.openToAll();
  }

  [[nodiscard]] std::string policy(const std::string& process) const {
    return files_.write("policy.toml", "[process]\n" + process + "\n");
  }

  /// Tries `verb` where only the payload itself and these may be started; the workspace contains a busybox.
  [[nodiscard]] Attack attack(std::vector<std::string> verb, const std::string& also = "/usr/bin/id") const {
    const std::string list = "allowed_executables = ['" + payloadPath() + "', '" + also + "']";
    return {
        .verb = std::move(verb), .workspace = workspace_.path() + ":overlay", .options = {"--policy", policy(list)}};
  }

  const TempDir files_, workspace_;
};

TEST_F(Busybox, ProvidesNoShell) {
  expectOnlyStoppedBy("noexec,programs,landlock", attack({"execute", kBusybox, "sh", "-c", "exit 0"}));
  expectOnlyStoppedBy("noexec,landlock", attack({"execute", "/workspace/busybox", "sh", "-c", "exit 0"}));
}

TEST_F(Busybox, AnAppletBySymbolicLink) {
  expectOnlyStoppedBy("noexec,programs,landlock", attack({"execute-symlink", kBusybox, "/tmp/true"}));
  expectOnlyStoppedBy("noexec,landlock", attack({"execute-symlink", "/workspace/busybox", "/tmp/true"}));
}

TEST_F(Busybox, AnAppletByHardLink) {
  expectOnlyStoppedBy("noexec,landlock", attack({"execute-hard-link", "/workspace/busybox", "/workspace/true"}));
}

TEST_F(Busybox, AnAppletByCopy) {
  expectOnlyStoppedBy("noexec,landlock", attack({"execute-copy", "/workspace/busybox", "/tmp/true"}));
  EXPECT_TRUE(contained(inSandbox(attack({"execute-copy", kBusybox, "/tmp/true"})))) << "it can't even be read";
}

TEST_F(Busybox, AnAppletThroughTheLoader) {
  const bool dynamic = readFile(kBusybox).find("/ld-linux") != std::string::npos;
  if (!dynamic) GTEST_SKIP() << "this busybox is linked statically: no loader can start it";
  expectOnlyStoppedBy("noexec", attack({"execute-by-loader", kLoader, "/workspace/busybox", "/tmp/true"}));
}

/// A list with `ls` does not include a shell: not by link, hard link or copy, in any directory.
TEST_F(Busybox, AListedNameThatIsBusyboxIsRefused) {
  const TempDir bin;
  bin.openToAll();
  const std::string original = bin.write("busybox", readFile(kBusybox), 0755);
  ASSERT_EQ(symlink("busybox", (bin / "by-symlink").c_str()), 0);
  ASSERT_EQ(link(original.c_str(), (bin / "by-hard-link").c_str()), 0);
  bin.write("by-copy", readFile(kBusybox), 0755);
  for (const char* name : {"by-symlink", "by-hard-link", "by-copy"}) {
    const RunOutput refused = inSandbox(attack({"execute", bin / name, "sh", "-c", "exit 0"}, bin / name));
    EXPECT_EQ(refused.exit_status, 125) << refused.describe();
    EXPECT_NE(refused.err.find("it is busybox here, which is a shell"), std::string::npos) << refused.describe();
  }
  EXPECT_TRUE(succeeded(inSandbox(attack({"execute", kBusybox, "sh", "-c", "exit 0"}, kBusybox)))) << "named, it runs";
}

/// A blocklist removes it under all names on the system, and so every shell in it.
TEST_F(Busybox, IsBlockedWhereShellsAre) {
  CONFORMS("R-PROCESS-8");
  const std::string blocked = policy("blocked_executables = ['sh', 'busybox']");
  const std::string script =
      "busybox sh -c 'echo ran'; /usr/bin/busybox echo ran; ln -s /usr/bin/busybox /tmp/echo; /tmp/echo ran;"
      "cp /usr/bin/busybox /tmp/copy && /tmp/copy echo ran; cp /workspace/busybox /tmp/echo2; /tmp/echo2 ran;"
      "/workspace/busybox echo ran; " +
      std::string(kLoader) + " /workspace/busybox echo ran";
  const RunOutput held = runCaisson(
      {"run", "--policy", blocked, "--workspace", workspace_.path() + ":overlay", "--", "bash", "-c", script});
  EXPECT_EQ(held.out, "") << held.describe();
  if (!mayWeaken()) return;
  const RunOutput loose = runProgram({weakenedPath(), "noexec,masks,landlock", "--policy", blocked, "--workspace",
                                      workspace_.path() + ":overlay", "--", "bash", "-c", script});
  EXPECT_NE(loose.out.find("ran\nran\nran"), std::string::npos) << loose.describe();
}

/// File tools have no shell, also not busybox's.
TEST_F(Busybox, ProvidesNoShellToFileTools) {
  CONFORMS("R-POLICY-10");
  const std::string place = workspace_.path() + ":rw";
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"busybox", "sh", "-c", "echo ran"},
           {"env", "busybox", "sh", "-c", "echo ran"},
           {"env", workspace_ / "busybox", "sh", "-c", "echo ran"},
           {"env", "-S", std::string(kLoader) + " " + kBusybox + " echo ran"},
           {"env", "-S", std::string(kLoader) + " " + (workspace_ / "busybox") + " echo ran"}}) {
    std::vector<std::string> words{"run", "--profile", "files", "--workspace", place, "--"};
    words.insert(words.end(), command.begin(), command.end());
    const RunOutput output = runCaisson(words);
    EXPECT_EQ(output.out, "") << output.describe();
    EXPECT_NE(output.exit_status, 0) << output.describe();
  }
}

/// With a single exec, a multi-call shell cannot start a second program.
TEST_F(Busybox, StartsNothingElseWithoutExecAndWithoutFork) {
  CONFORMS("R-PROCESS-6");
  const std::string no_exec = policy("allow_exec = false");
  const RunOutput executed = runCaisson(
      {"run", "--policy", no_exec, "--workspace", ":none", "--", "busybox", "sh", "-c", "/usr/bin/id; echo end"});
  EXPECT_EQ(executed.out, "end\n") << executed.describe();
  const std::string no_fork = policy("allow_fork = false");
  const RunOutput forked = runCaisson({"run", "--policy", no_fork, "--workspace", ":none", "--", "busybox", "sh", "-c",
                                       "(echo forked) & wait; echo end"});
  EXPECT_EQ(forked.out.find("forked"), std::string::npos) << forked.describe();
}

}  // namespace
}  // namespace caisson::test
