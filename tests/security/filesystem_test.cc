// Unnamed files are not visible, and read-only stays read-only.
#include <dirent.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <regex>

#include "security/attack.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

std::vector<std::string> namesIn(const std::string& directory) {
  std::vector<std::string> names;
  DIR* stream = opendir(directory.c_str());
  if (stream == nullptr) return names;
  while (const dirent* entry = readdir(stream)) names.emplace_back(entry->d_name);
  closedir(stream);
  std::sort(names.begin(), names.end());
  return names;
}

/// Denied, and the canary's secret appears nowhere.
void expectHidden(const Canary& canary, const Attack& attack) {
  const RunOutput output = inSandbox(attack);
  EXPECT_TRUE(contained(output));
  EXPECT_FALSE(canary.leakedInto(output.out + output.err));
  EXPECT_TRUE(canary.untouched());
}

void expectShownWithout(const std::string& protections, const Canary& canary, const Attack& attack) {
  if (!mayWeaken()) return;
  const RunOutput output = weakened(protections, attack);
  EXPECT_TRUE(canary.leakedInto(output.out)) << "without " << protections << ": " << output.describe();
}

// --- the host's files ---

class HostFile : public testing::TestWithParam<const char*> {};

/// Different paths to the same file, which is outside everything that the policy names.
TEST_P(HostFile, IsNotThere) {
  CONFORMS("R-LEVEL-3", "R-FILES-10");
  const TempDir directory;
  const Canary canary(directory / "id_ed25519");
  const std::string prefix = GetParam();
  const Attack attack{.verb = {"read", prefix + canary.path()}};
  expectHidden(canary, attack);
  expectShownWithout("own-root,self-test", canary, attack);
}

constexpr const char* kWays[] = {"", "/proc/self/root", "/proc/thread-self/root", "/../../.."};
constexpr const char* kWayNames[] = {"plain", "self_root", "thread_root", "dots"};
INSTANTIATE_TEST_SUITE_P(ByWay, HostFile, testing::ValuesIn(kWays),
                         [](const auto& test) { return std::string(kWayNames[test.index]); });

TEST(HomeDirectory, SecretsAreNeverVisible) {
  CONFORMS("R-FILES-15");
  const TempDir home;
  const std::vector<std::string> secrets{
      ".ssh/id_rsa", ".aws/credentials", ".config/gcloud/token", ".kube/config",        ".gnupg/key",
      ".gitconfig",  ".netrc",           ".git-credentials",     ".docker/config.json", ".bash_history"};
  for (const std::string& name : secrets) {
    home.write(name, "");
    const Canary canary(home / name);
    const Attack attack{.verb = {"read", canary.path()}, .how = {.env = {{"HOME", home.path()}}, .cwd = home.path()}};
    expectHidden(canary, attack);
    // Started in the home directory, without a workspace option.
    const RunOutput output = runCaisson(
        {"run", "--quiet", "--ro", payloadPath(), "--", payloadPath(), "read", "/workspace/" + name}, attack.how);
    EXPECT_FALSE(canary.leakedInto(output.out)) << name;
  }
}

/// The home directory is shown itself, below its own name or as the workspace.
TEST(HomeDirectory, SecretsAreHiddenWhereItIsShown) {
  CONFORMS("R-FILES-15");
  const TempDir home, state;
  const std::vector<std::string> secrets{".ssh/id_rsa",
                                         ".aws/credentials",
                                         ".config/gcloud/token",
                                         ".kube/config",
                                         ".gnupg/key",
                                         ".gitconfig",
                                         ".netrc",
                                         ".git-credentials",
                                         ".docker/config.json",
                                         ".bash_history",
                                         ".zsh_history",
                                         ".mozilla/firefox/x/key4",
                                         ".config/chromium/x",
                                         ".npmrc",
                                         ".password-store/x",
                                         ".config/gh/hosts"};
  for (const std::string& name : secrets) home.write(name, "");
  home.write("plain", "plain");
  const std::map<std::string, std::string> environment{{"HOME", home.path()}, {"CAISSON_HOME", state.path()}};
  for (const std::string& name : secrets) {
    const Canary canary(home / name);
    const Attack shown{.verb = {"read", canary.path()}, .options = {"--ro", home.path()}, .how = {.env = environment}};
    expectHidden(canary, shown);
    expectShownWithout("masks", canary, shown);
    const Attack workspace{
        .verb = {"read", "/workspace/" + name}, .workspace = home.path() + ":ro", .how = {.env = environment}};
    expectHidden(canary, workspace);
    expectShownWithout("masks,whiteouts", canary, workspace);
  }
  EXPECT_EQ(
      inSandbox({.verb = {"read", home / "plain"}, .options = {"--ro", home.path()}, .how = {.env = environment}}).out,
      "done: plain\n")
      << "the rest of it is there";
}

class WorkspaceLink : public testing::TestWithParam<const char*> {};

/// Links in the workspace resolve inside the sandbox.
TEST_P(WorkspaceLink, DoesNotLeadToTheHost) {
  CONFORMS("R-FILES-11");
  const TempDir outside;
  const TempDir workspace;
  const Canary canary(outside / "canary");
  ASSERT_EQ(symlink(canary.path().c_str(), (workspace / "file").c_str()), 0);
  ASSERT_EQ(symlink("/proc/self/root", (workspace / "root").c_str()), 0);
  ASSERT_EQ(symlink("/proc/1/root", (workspace / "init").c_str()), 0);
  const std::string mode = std::string(":") + GetParam();
  for (const std::string& way :
       {std::string("/workspace/file"), "/workspace/root" + canary.path(), "/workspace/init" + canary.path()}) {
    expectHidden(canary, {.verb = {"read", way}, .workspace = workspace.path() + mode});
  }
  expectShownWithout("own-root,self-test", canary, {.verb = {"read", workspace / "file"}});
}

INSTANTIATE_TEST_SUITE_P(InEveryMode, WorkspaceLink, testing::Values("ro", "rw", "overlay"),
                         [](const auto& test) { return std::string(test.param); });

/// Like runc CVE-2021-30465: between the check and the mount, the directory becomes a link.
TEST(Workspace, ReplacedByALinkAfterItWasCheckedIsRefused) {
  CONFORMS("R-FILES-13", "R-SYSCALL-14");
  if (!mayWeaken())
    GTEST_SKIP() << "a weakened sandbox is never given to root";  // only caisson-weakened can stop between the two
  for (const std::string protections : {"nothing", "guarded-links", "file-identity", "guarded-links,file-identity"}) {
    const bool open = protections == "guarded-links,file-identity";
    const TempDir outside;
    const TempDir parent;
    const Canary canary(outside / "canary");
    const std::string workspace = parent.makeDir("workspace");
    const RunOutput output = weakened(
        protections,
        {.verb = {"read", "/workspace/canary"}, .workspace = workspace + ":ro", .options = {"--swap", outside.path()}});
    EXPECT_EQ(canary.leakedInto(output.out), open) << protections << output.describe();
    EXPECT_EQ(output.exit_status, open ? 0 : 125) << protections << output.describe();
  }
}

// --- read-only ---

TEST(Root, CannotBeWritten) {
  CONFORMS("R-FILES-1");
  // The mount is read-only and Landlock grants no write there; the self-test would detect either.
  expectOnlyStoppedBy("read-only-root,landlock,self-test", {.verb = {"write", "/planted"}});
  expectOnlyStoppedBy("read-only-root,landlock,self-test", {.verb = {"write", "/etc/planted"}});
  expectOnlyStoppedBy("read-only-root,landlock,self-test", {.verb = {"write", "/etc/passwd"}});
}

TEST(SystemDirectories, CannotBeWritten) {
  CONFORMS("R-FILES-1");
  for (const char* path :
       {"/usr/planted", "/usr/bin/planted", "/bin/planted", "/lib/planted", "/dev/planted", "/proc/planted"}) {
    EXPECT_TRUE(contained(inSandbox({.verb = {"write", path}}))) << path;
  }
}

TEST(RootsHome, IsInaccessible) {
  CONFORMS("R-FILES-4");
  expectOnlyStoppedBy("hidden-root-home,landlock", {.verb = {"open", "/root"}});
}

/// A file of the host's /etc that any user may read there.
std::string fileOfHostsEtc() {
  for (const char* path : {"/etc/profile", "/etc/shells", "/etc/fstab", "/etc/bash.bashrc", "/etc/login.defs"}) {
    if (!readFile(path).empty()) return path;
  }
  return "";
}

TEST(HostEtc, IsNotThere) {
  CONFORMS("R-FILES-2");
  const std::string path = fileOfHostsEtc();
  requireOrSkip(!path.empty(), "no known file of /etc can be read");
  expectOnlyStoppedBy("own-root,self-test", {.verb = {"read", path}});
}

/// At level process the host's root is there; Landlock alone keeps the payload from what is readable on the host.
TEST(HostEtc, IsBehindLandlockAtLevelProcess) {
  CONFORMS("R-LEVEL-5");
  const std::string path = fileOfHostsEtc();
  requireOrSkip(!path.empty(), "no known file of /etc can be read");
  expectOnlyStoppedBy("landlock,self-test", atLevelProcess({.verb = {"read", path}}));
  EXPECT_TRUE(contained(inSandbox(atLevelProcess({.verb = {"open", "/"}}))));
  EXPECT_TRUE(succeeded(inSandbox(atLevelProcess({.verb = {"stat", path}})))) << "the host's root is not private";
}

TEST(NamedPath, ThatIsReadOnlyCannotBeWritten) {
  CONFORMS("R-FILES-10");
  const TempDir shown;
  const Canary canary(shown / "canary");
  requireOrSkip(shown.path().starts_with("/tmp/"), "temporary directories are elsewhere");
  const Attack attack{.verb = {"write", canary.path(), "changed"}, .options = {"--ro", shown.path()}};
  EXPECT_TRUE(contained(inSandbox(attack)));
  EXPECT_TRUE(canary.untouched());
  if (!mayWeaken()) return;
  EXPECT_TRUE(succeeded(weakened("read-only-paths,landlock", attack)));
  EXPECT_FALSE(canary.untouched());
}

TEST(TemporaryDirectory, HasAnInodeLimit) {
  CONFORMS("R-FILES-7");
  const Attack attack{.verb = {"fill-inodes", "/run", "9000"}};
  EXPECT_EQ(inSandbox(attack).out, "refused: open: ENOSPC\n");
  if (!mayWeaken()) return;
  EXPECT_TRUE(succeeded(weakened("tmpfs-inodes", attack)));
}

class DiskQuota : public testing::TestWithParam<const char*> {};

TEST_P(DiskQuota, StopsAProgramThatFillsTheWorkspace) {
  CONFORMS("R-FILES-16");
  const TempDir files, workspace;
  const std::string policy = files.write("policy.toml", "[filesystem]\nmax_total_size = \"10M\"\n");
  files.openToAll();
  const Attack attack{.verb = {"fill-file", "/workspace", "40"},
                      .workspace = workspace.path() + ":" + GetParam(),
                      .options = {"--policy", policy}};
  const RunOutput output = inSandbox(attack);
  EXPECT_NE(output.exit_status, 0) << output.describe();
  EXPECT_EQ(output.out.find("done"), std::string::npos) << output.describe();
  if (!mayWeaken()) return;
  EXPECT_TRUE(succeeded(weakened("disk-quota", attack)));
}

INSTANTIATE_TEST_SUITE_P(InEveryMode, DiskQuota, testing::Values("rw", "overlay"),
                         [](const auto& test) { return std::string(test.param); });

/// A directory with access "wo", as the profile cargo has for its logs, rests on Landlock.
TEST(WriteOnlyDirectory, CannotBeReadBackNorEmptied) {
  CONFORMS("R-CARGO-3");
  const TempDir files, state;
  const std::string policy =
      files.write("policy.toml", "[[filesystem.tmpfs]]\npath = \"/logs\"\nsize = \"1M\"\naccess = \"wo\"\n");
  files.openToAll();
  const std::vector<std::string> words{
      "--policy", policy, "--workspace", ":none",
      "--",       "sh",   "-c",          "echo secret >> /logs/log; cat /logs/log; rm /logs/log && echo removed"};
  std::vector<std::string> command{"run", "--quiet"};
  command.insert(command.end(), words.begin(), words.end());
  const RunOptions how{.env = {{"CAISSON_HOME", state.path()}}};
  EXPECT_EQ(runCaisson(command, how).out, "");
  if (!mayWeaken()) return;
  std::vector<std::string> without{weakenedPath(), "landlock"};
  without.insert(without.end(), words.begin(), words.end());
  EXPECT_EQ(runProgram(without, how).out, "secret\nremoved\n");
}

TEST(ReadOnlyWorkspace, CannotBeWritten) {
  CONFORMS("R-FILES-9");
  const TempDir workspace;
  const Canary canary(workspace / "canary");
  const Attack attack{.verb = {"write", "/workspace/canary", "changed"}, .workspace = workspace.path() + ":ro"};
  EXPECT_TRUE(contained(inSandbox(attack)));
  EXPECT_TRUE(canary.untouched());
  if (!mayWeaken()) return;
  EXPECT_TRUE(succeeded(weakened("read-only-workspace,landlock", attack)));
  EXPECT_FALSE(canary.untouched());
}

TEST(OverlayWorkspace, KeepsEveryChangeFromTheHost) {
  CONFORMS("R-FILES-9");
  const TempDir workspace;
  const Canary changed(workspace / "changed");
  const Canary removed(workspace / "removed");
  const std::vector<std::string> before = namesIn(workspace.path());
  const std::string overlay = workspace.path() + ":overlay";
  EXPECT_EQ(inSandbox({.verb = {"write", "/workspace/changed", "x"}, .workspace = overlay}).out, "done\n");
  EXPECT_EQ(inSandbox({.verb = {"remove", "/workspace/removed"}, .workspace = overlay}).out, "done\n");
  EXPECT_EQ(inSandbox({.verb = {"write", "/workspace/new", "x"}, .workspace = overlay}).out, "done\n");
  EXPECT_TRUE(changed.untouched());
  EXPECT_TRUE(removed.untouched());
  EXPECT_EQ(namesIn(workspace.path()), before);
  if (!mayWeaken()) return;
  inSandbox({.verb = {"write", "/workspace/changed", "x"}, .workspace = workspace.path() + ":rw"});
  EXPECT_FALSE(changed.untouched()) << "a direct workspace is not direct";
}

// --- hidden in the workspace ---

class HiddenSecret : public testing::TestWithParam<const char*> {};

TEST_P(HiddenSecret, CannotBeRead) {
  CONFORMS("R-FILES-25");
  const TempDir workspace;
  for (const char* name : {".env", ".env.production", ".npmrc", ".netrc", "id_ed25519", "server.pem"}) {
    const Canary canary(workspace / name);
    const Attack attack{.verb = {"read", std::string("/workspace/") + name},
                        .workspace = workspace.path() + ":" + GetParam()};
    expectHidden(canary, attack);
    expectShownWithout("masks,whiteouts", canary, attack);
  }
}

INSTANTIATE_TEST_SUITE_P(InEveryMode, HiddenSecret, testing::Values("ro", "rw", "overlay"),
                         [](const auto& test) { return std::string(test.param); });

TEST(HiddenSecretInDirectWorkspace, CannotBeUncovered) {
  const TempDir workspace;
  const Canary canary(workspace / ".env");
  const std::string direct = workspace.path() + ":rw";
  for (const std::vector<std::string>& verb : {std::vector<std::string>{"umount", "/workspace/.env"},
                                               {"rename", "/workspace/.env", "/workspace/shown"},
                                               {"remove", "/workspace/.env"},
                                               {"hard-link", "/workspace/.env", "/workspace/shown"},
                                               {"write", "/workspace/.env", "x"}}) {
    EXPECT_TRUE(contained(inSandbox({.verb = verb, .workspace = direct}))) << verb[0];
    EXPECT_TRUE(canary.untouched()) << verb[0];
  }
  if (!mayWeaken()) return;
  EXPECT_TRUE(
      succeeded(weakened("masks", {.verb = {"rename", "/workspace/.env", "/workspace/shown"}, .workspace = direct})));
}

class DeniedPath : public testing::TestWithParam<const char*> {};

TEST_P(DeniedPath, WinsOverTheTreeThatContainsIt) {
  CONFORMS("R-FILES-14");
  const TempDir workspace;
  workspace.makeDir("sub/private");
  const Canary canary(workspace / "sub/private/canary");
  const Attack attack{.verb = {"read", "/workspace/sub/private/canary"},
                      .workspace = workspace.path() + ":" + GetParam(),
                      .options = {"--deny", "/workspace/sub/private"}};
  expectHidden(canary, attack);
  expectShownWithout("masks,whiteouts", canary, attack);
}

/// There the workspace is at its own path, and the denied path has to be found there.
TEST_P(DeniedPath, WinsAtLevelProcess) {
  CONFORMS("R-FILES-14");
  const TempDir workspace;
  workspace.makeDir("sub/private");
  const Canary canary(workspace / "sub/private/canary");
  const Attack attack{.verb = {"read", canary.path()},
                      .workspace = workspace.path() + ":" + GetParam(),
                      .options = {"--level", "process", "--deny", "/workspace/sub/private"}};
  expectHidden(canary, attack);
  expectShownWithout("masks,whiteouts", canary, attack);
}

TEST_P(DeniedPath, StaysDeniedWhenItsAncestorIsRenamed) {
  CONFORMS("R-FILES-14");
  const TempDir workspace;
  workspace.makeDir("sub/private");
  const Canary canary(workspace / "sub/private/canary");
  const std::string script =
      "mv /workspace/sub /workspace/moved; cat /workspace/moved/private/canary; "
      "cp -a /workspace/moved /tmp/copy; cat /tmp/copy/private/canary";
  const RunOutput output = runCaisson({"run", "--quiet", "--workspace", workspace.path() + ":" + GetParam(), "--deny",
                                       "/workspace/sub/private", "--", "/bin/sh", "-c", script});
  EXPECT_FALSE(canary.leakedInto(output.out + output.err)) << output.describe();
}

INSTANTIATE_TEST_SUITE_P(InEveryMode, DeniedPath, testing::Values("ro", "rw", "overlay"),
                         [](const auto& test) { return std::string(test.param); });

class LaterDeniedPath : public testing::TestWithParam<const char*> {};

/// A denied path that the host creates while the payload runs.
TEST_P(LaterDeniedPath, IsDeniedAsWell) {
  CONFORMS("R-FILES-14");
  const TempDir workspace;
  const TempDir sync;
  const std::string secret = uniqueWord("later");
  const std::string result = sync / "result";
  BackgroundProgram program({caissonBinary(), "run", "--result", result, "--workspace",
                             workspace.path() + ":" + GetParam(), "--deny", "/workspace/later", "--ro", payloadPath(),
                             "--", payloadPath(), "await", "/workspace/later"});
  sleepFor(std::chrono::milliseconds(500));
  workspace.write("later", secret);
  ASSERT_EQ(program.wait(std::chrono::seconds(10)), 1) << "the payload read what was denied";
}

INSTANTIATE_TEST_SUITE_P(InEveryMode, LaterDeniedPath, testing::Values("overlay", "ro"),
                         [](const auto& test) { return std::string(test.param); });

TEST(DirectWorkspace, RefusesToDenyWhatDoesNotExistYet) {
  const TempDir workspace;
  const RunOutput output = inSandbox(
      {.verb = {"stat", "/"}, .workspace = workspace.path() + ":rw", .options = {"--deny", "/workspace/later"}});
  EXPECT_EQ(output.exit_status, 125) << output.describe();
}

/// Mount points for masks must not appear in the host's tree (claude-code#17727: ghost files).
TEST(Workspace, IsLeftAsItWas) {
  CONFORMS("R-FILES-19");
  const TempDir workspace;
  workspace.write(".env", "x");
  workspace.makeDir("private");
  const std::vector<std::string> before = namesIn(workspace.path());
  for (const char* mode : {"ro", "rw", "overlay"}) {
    const RunOutput output = inSandbox({.verb = {"stat", "/"},
                                        .workspace = workspace.path() + ":" + mode,
                                        .options = {"--deny", "/workspace/private"}});
    EXPECT_EQ(output.exit_status, 0) << output.describe();
    EXPECT_EQ(namesIn(workspace.path()), before) << mode;
  }
}

/// A tree that a payload filled with links is removed without harm to the host.
TEST(Teardown, LeavesTheHostAloneWhenThePayloadPlantedALinkToRoot) {
  CONFORMS("R-FILES-18");
  const TempDir outside;
  const Canary canary(outside / "canary");
  for (const char* mode : {"rw", "overlay"}) {
    const TempDir workspace;
    const RunOutput output = runCaisson({"run", "--workspace", workspace.path() + ":" + mode, "--", "/bin/sh", "-c",
                                         "ln -s /proc/self/root /workspace/x; ln -s / /workspace/y; mkdir -p "
                                         "/workspace/a/b; ln -s ../../.. /workspace/a/b/c; "
                                         "ln -s " +
                                             outside.path() + " /workspace/z; chmod 0 /workspace/a"});
    EXPECT_EQ(output.exit_status, 0) << output.describe();
  }
  EXPECT_TRUE(canary.untouched());
}

/// A lease of the payload would make each open on the host wait, up to 45 s.
TEST(Filesystem, LeasesOnSharedFilesAreRefused) {
  requireOrSkip(hasProgram("python3"), "no python3");
  const TempDir workspace;
  workspace.write("file", "x");
  workspace.openToAll();
  for (const char* mode : {":ro", ":rw"}) {
    const RunOutput output = runCaisson({"run", "--workspace", workspace.path() + mode, "--", "python3", "-c", R"(
import fcntl, os
file = os.open('file', os.O_RDONLY)
for lease in (fcntl.F_RDLCK, fcntl.F_WRLCK):
    try: fcntl.fcntl(file, fcntl.F_SETLEASE, lease); print('leased')
    except OSError as error: print(error.strerror)
)"});
    EXPECT_EQ(output.out, "Invalid argument\nInvalid argument\n") << mode << output.describe();
  }
}

}  // namespace
}  // namespace caisson::test
