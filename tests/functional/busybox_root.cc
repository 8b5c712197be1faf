#include "functional/busybox_root.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "support/run.h"

namespace caisson::test {
namespace {

constexpr const char* kApplets[] = {"sh",    "cat",   "chmod", "chown", "cp",  "echo", "env",  "id",   "ln",   "ls",
                                    "mkdir", "mknod", "mount", "mv",    "pwd", "rm",   "stat", "tail", "test", "touch"};

}  // namespace

bool hasBusybox() { return exists("/bin/busybox"); }

void installBusybox(const TempDir& root, bool merged) {
  for (const std::string name : {"bin", "lib"}) {
    root.makeDir(merged ? "usr/" + name : name);
    if (!merged) continue;
    ASSERT_EQ(::symlink(("usr/" + name).c_str(), (root / name).c_str()), 0);
  }
  const RunOutput copied =
      runProgram({"sh", "-c",
                  "set -e; cp /bin/busybox \"$0/bin\"; for library in $(ldd /bin/busybox | grep -o '/[^ ]*'); do "
                  "mkdir -p \"$0${library%/*}\"; cp \"$library\" \"$0$library\"; done",
                  root.path()});
  ASSERT_EQ(copied.exit_status, 0) << copied.describe();
  for (const char* applet : kApplets)
    ASSERT_EQ(::symlink("busybox", (root / ("bin/" + std::string(applet))).c_str()), 0);
  root.openToAll();
}

}  // namespace caisson::test
