// A payload cannot leave setuid files, devices or overlay marks in a tree shared with the host. Under root, files that
// a payload writes belong to root.
#include <dirent.h>
#include <sys/stat.h>

#include "security/attack.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

/// Names of entries with a set-id bit, or that are devices.
std::string plantedIn(const TempDir& directory) {
  std::string planted;
  DIR* stream = opendir(directory.path().c_str());
  while (const dirent* entry = readdir(stream)) {
    struct stat status{};
    if (lstat((directory / entry->d_name).c_str(), &status) != 0) continue;
    const bool device = S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode);
    if (device || (status.st_mode & (S_ISUID | S_ISGID)) != 0) planted += std::string(" ") + entry->d_name;
  }
  closedir(stream);
  return planted;
}

/// The same attack on a directory that --rw shows, instead of on the workspace.
Attack onNamedDirectory(std::vector<std::string> verb, const TempDir& directory) {
  return {.verb = std::move(verb), .options = {"--rw", directory.path()}};
}

class SetIdFile : public testing::TestWithParam<const char*> {};

TEST_P(SetIdFile, CannotBePlantedInANamedDirectory) {
  CONFORMS("R-FILES-17");
  const TempDir shared;
  shared.openToAll();
  const Attack attack = onNamedDirectory({"plant-set-id", GetParam(), shared / "planted"}, shared);
  const RunOutput output = inSandbox(attack);
  if (output.exit_status == 3) GTEST_SKIP() << output.out;
  EXPECT_TRUE(contained(output));
  EXPECT_EQ(plantedIn(shared), "");
  if (!mayWeaken()) return;
  EXPECT_TRUE(succeeded(weakened("seccomp", attack)));
  EXPECT_EQ(plantedIn(shared), " planted");
}

TEST_P(SetIdFile, CannotBePlantedInADirectWorkspace) {
  CONFORMS("R-FILES-17");
  const TempDir workspace;
  const Attack attack{.verb = {"plant-set-id", GetParam(), "/workspace/planted"},
                      .workspace = workspace.path() + ":rw"};
  const RunOutput output = inSandbox(attack);
  if (output.exit_status == 3) GTEST_SKIP() << output.out;
  EXPECT_TRUE(contained(output));
  EXPECT_EQ(plantedIn(workspace), "");
  if (!mayWeaken()) return;
  EXPECT_TRUE(succeeded(weakened("seccomp", attack)));
  EXPECT_EQ(plantedIn(workspace), " planted");
}

INSTANTIATE_TEST_SUITE_P(ByCall, SetIdFile,
                         testing::Values("chmod", "fchmod", "fchmodat", "fchmodat2", "chmod-high-bits", "open",
                                         "openat", "creat", "mknod", "mknodat", "tmpfile"),
                         [](const auto& test) {
                           std::string name = test.param;
                           for (char& letter : name) letter = letter == '-' ? '_' : letter;
                           return name;
                         });

/// The kernel drops these bits from mkdir: tested, because a new call could differ.
TEST(SetIdDirectory, CannotBePlantedInADirectWorkspace) {
  const TempDir workspace;
  EXPECT_TRUE(contained(
      inSandbox({.verb = {"plant-set-id", "mkdirat", "/workspace/planted"}, .workspace = workspace.path() + ":rw"})));
  EXPECT_EQ(plantedIn(workspace), "");
}

TEST(Device, CannotBePlantedInADirectWorkspace) {
  CONFORMS("R-FILES-17");
  const TempDir workspace;
  for (const char* kind : {"character", "block", "whiteout"}) {
    EXPECT_TRUE(contained(
        inSandbox({.verb = {"plant-device", kind, "/workspace/planted"}, .workspace = workspace.path() + ":rw"})))
        << kind;
  }
  EXPECT_EQ(plantedIn(workspace), "");
  if (!mayWeaken()) return;
  // A device 0:0, an overlay's whiteout, needs no privilege. Landlock denies it too.
  EXPECT_TRUE(succeeded(weakened("seccomp,landlock", {.verb = {"plant-device", "whiteout", "/workspace/planted"},
                                                      .workspace = workspace.path() + ":rw"})));
  EXPECT_EQ(plantedIn(workspace), " planted");
}

TEST(Device, CannotBePlantedInANamedDirectory) {
  CONFORMS("R-FILES-17");
  const TempDir shared;
  shared.openToAll();
  for (const char* kind : {"character", "block", "whiteout"}) {
    EXPECT_TRUE(contained(inSandbox(onNamedDirectory({"plant-device", kind, shared / "planted"}, shared)))) << kind;
  }
  EXPECT_EQ(plantedIn(shared), "");
  if (!mayWeaken()) return;
  EXPECT_TRUE(succeeded(
      weakened("seccomp,landlock", onNamedDirectory({"plant-device", "whiteout", shared / "planted"}, shared))));
  EXPECT_EQ(plantedIn(shared), " planted");
}

/// renameat2 with RENAME_WHITEOUT creates the same device without mknod.
TEST(Device, CannotBePlantedByRename) {
  CONFORMS("R-FILES-17");
  const TempDir workspace;
  EXPECT_TRUE(contained(inSandbox(
      {.verb = {"plant-device", "rename-whiteout", "/workspace/planted"}, .workspace = workspace.path() + ":rw"})));
  EXPECT_EQ(plantedIn(workspace), "");
  if (!mayWeaken()) return;
  EXPECT_TRUE(succeeded(weakened("seccomp,landlock", {.verb = {"plant-device", "rename-whiteout", "/workspace/planted"},
                                                      .workspace = workspace.path() + ":rw"})));
  EXPECT_EQ(plantedIn(workspace), " planted");
}

TEST(Device, CannotBeMadeAnywhereInside) {
  CONFORMS("R-FILES-17");
  const TempDir workspace;
  for (const char* path : {"/tmp/planted", "/dev/shm/planted", "/home/sandbox/planted", "/workspace/planted"}) {
    for (const char* kind : {"character", "block", "whiteout"}) {
      EXPECT_TRUE(
          contained(inSandbox({.verb = {"plant-device", kind, path}, .workspace = workspace.path() + ":overlay"})))
          << path;
    }
  }
}

/// The kernel requires a capability here; the payload has none, in any namespace. In the user namespace that maps only
/// its caller, the kernel alone refuses these even to a payload with all capabilities.
TEST(PrivilegedAttribute, CannotBeSet) {
  CONFORMS("R-FILES-17", "R-SYSCALL-13");
  const TempDir workspace;
  workspace.write("file", "x", 0755);
  for (const char* mode : {":rw", ":overlay"}) {
    EXPECT_TRUE(contained(
        inSandbox({.verb = {"set-file-capability", "/workspace/file"}, .workspace = workspace.path() + mode})));
    for (const char* name : {"trusted.overlay.opaque", "security.ima", "security.evm"}) {
      EXPECT_TRUE(contained(
          inSandbox({.verb = {"set-attribute", name, "y", "/workspace/file"}, .workspace = workspace.path() + mode})))
          << name;
    }
  }
}

/// Overlay marks written by the payload must have no effect: the host's file behind them stays visible.
TEST(OverlayMark, SetByThePayloadDoesNotHideTheLowerTree) {
  const TempDir workspace;
  workspace.makeDir("directory");
  const Canary canary(workspace / "directory/canary");
  const std::string tool = payloadPath();
  for (const char* mark : {"opaque", "redirect", "metacopy", "whiteouts"}) {
    const RunOutput output =
        runCaisson({"run", "--quiet", "--workspace", workspace.path() + ":overlay", "--ro", tool, "--", "/bin/sh", "-c",
                    tool + " set-attribute user.overlay." + mark +
                        " y /workspace/directory; "
                        "cat /workspace/directory/canary"});
    EXPECT_TRUE(canary.leakedInto(output.out)) << mark << output.describe();
  }
  EXPECT_TRUE(canary.untouched());
}

/// Marks planted through a direct workspace must have no effect in a later overlay of the same tree.
TEST(OverlayMark, LeftInADirectWorkspaceDoesNotActInALaterRun) {
  const TempDir outside;
  const TempDir workspace;
  workspace.makeDir("directory");
  workspace.makeDir("private");
  const Canary canary(workspace / "private/canary");
  for (const char* value : {"/private", "private", "/../private"}) {
    inSandbox({.verb = {"set-attribute", "user.overlay.redirect", value, "/workspace/directory"},
               .workspace = workspace.path() + ":rw"});
    const RunOutput output = inSandbox({.verb = {"read", "/workspace/directory/canary"},
                                        .workspace = workspace.path() + ":overlay",
                                        .options = {"--deny", "/workspace/private"}});
    EXPECT_FALSE(canary.leakedInto(output.out)) << output.describe();
  }
}

}  // namespace
}  // namespace caisson::test
