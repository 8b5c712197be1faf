// The attacks of the other files, by a payload that is root inside (isolation.user). It must reach no more than the
// sandbox's ordinary user: the same calls fail, or leave nothing behind. planting_test.cc and others show that the
// attacks succeed without the protection.
#include <dirent.h>
#include <sys/stat.h>

#include "security/attack.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

using Verb = std::vector<std::string>;

std::string described(const Verb& verb) {
  std::string text;
  for (const std::string& word : verb) text += word + " ";
  return text;
}

/// Entries that are devices or have a setuid or setgid bit.
std::string leftIn(const TempDir& directory) {
  std::string left;
  DIR* stream = opendir(directory.path().c_str());
  while (const dirent* entry = readdir(stream)) {
    struct stat status{};
    if (lstat((directory / entry->d_name).c_str(), &status) != 0) continue;
    const bool device = S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode);
    if (device || (status.st_mode & (S_ISUID | S_ISGID)) != 0) left += std::string(" ") + entry->d_name;
  }
  closedir(stream);
  return left;
}

const Verb kAttacks[] = {{"unshare", "user"},
                         {"unshare", "mnt"},
                         {"unshare", "net"},
                         {"clone", "user"},
                         {"clone3", "user,mnt"},
                         {"setns", "mnt"},
                         {"mount", "tmpfs"},
                         {"mount", "proc"},
                         {"mount", "bind"},
                         {"mount", "remount"},
                         {"umount", "/proc"},
                         {"fsopen"},
                         {"open-tree"},
                         {"move-mount"},
                         {"mount-setattr"},
                         {"pivot-root"},
                         {"chroot"},
                         {"trace", "1"},
                         {"read-memory", "1"},
                         {"borrow-descriptor", "1"},
                         {"limit", "1"},
                         {"renice", "1"},
                         {"socket", "17", "3", "768"},
                         {"write", "/proc/sys/kernel/domainname", "x"},
                         {"write", "/etc/passwd", "x"},
                         {"read", "/proc/1/environ"},
                         {"read", "/root/.bashrc"}};

TEST(RootInside, ReachesNoMoreThanAnOrdinaryUser) {
  CONFORMS("R-ROOT-5");
  for (const Verb& verb : kAttacks) {
    EXPECT_TRUE(contained(inSandbox({.verb = verb, .options = {"--user", "root"}}))) << described(verb);
  }
}

/// With subordinate ids root inside has capabilities: they must be of no use for any of the attacks.
TEST(RootInside, ReachesNoMoreWithSubordinateIds) {
  CONFORMS("R-ROOT-5");
  const TempDir root;
  const RunOutput copied = runProgram({"sh", "-c",
                                       "set -e; for library in $(ldd \"$1\" | grep -o '/[^ ]*'); do "
                                       "mkdir -p \"$0${library%/*}\"; cp \"$library\" \"$0$library\"; done",
                                       root.path(), payloadPath()});
  ASSERT_EQ(copied.exit_status, 0) << copied.describe();
  root.openToAll();
  const std::vector<std::string> options{"--user", "root", "--image", root.path()};
  const TempDir state;
  const RunOutput planned = runCaisson({"plan", "--json", "--user", "root", "--image", root.path(), "--", "true"},
                                       {.env = {{"CAISSON_HOME", state.path()}}});
  const std::string user = planned.json()["layers"]["user"];
  if (user.find("subordinate ids") == std::string::npos) GTEST_SKIP() << user;
  EXPECT_EQ(inSandbox({.verb = {"read", "/proc/self/status"}, .options = options}).exit_status, 0);
  for (const Verb& verb : kAttacks) {
    const bool own_file = verb[0] == "write" && verb[1] == "/etc/passwd";  // of a root that is writable
    if (own_file) continue;
    EXPECT_TRUE(contained(inSandbox({.verb = verb, .options = options}))) << described(verb);
  }
}

TEST(RootInside, PlantsNoSetIdFile) {
  CONFORMS("R-ROOT-5");
  for (const std::string call : {"chmod", "fchmod", "fchmodat", "fchmodat2", "chmod-high-bits", "open", "openat",
                                 "creat", "mknod", "mknodat", "tmpfile", "mkdirat"}) {
    const TempDir shared;
    shared.openToAll();
    const RunOutput output = inSandbox(
        {.verb = {"plant-set-id", call, shared / "planted"}, .options = {"--user", "root", "--rw", shared.path()}});
    if (output.exit_status == 3) continue;  // the architecture lacks the call
    EXPECT_TRUE(contained(output)) << call;
    EXPECT_EQ(leftIn(shared), "") << call;
  }
}

TEST(RootInside, PlantsNoDeviceAndNoFileCapability) {
  CONFORMS("R-ROOT-5");
  const TempDir shared;
  shared.write("file", "x");
  shared.openToAll();
  const std::vector<std::string> options{"--user", "root", "--rw", shared.path()};
  for (const std::string kind : {"character", "block", "whiteout", "rename-whiteout"}) {
    EXPECT_TRUE(contained(inSandbox({.verb = {"plant-device", kind, shared / kind}, .options = options}))) << kind;
  }
  EXPECT_TRUE(contained(inSandbox({.verb = {"set-file-capability", shared / "file"}, .options = options})));
  EXPECT_EQ(leftIn(shared), "");
}

}  // namespace
}  // namespace caisson::test
