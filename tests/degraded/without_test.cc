// The filter of the other tests blocks exactly the named calls.
#include "degraded/degraded.h"

namespace caisson::test {
namespace {

RunOutput shellWithout(const std::string& missing, const std::string& script) {
  return runProgram({"/proc/self/exe", kWithoutFlag, missing, "--", "sh", "-c", script});
}

TEST(CallFilter, RemovesACall) {
  EXPECT_EQ(shellWithout("uname:EPERM", "uname; true").out, "");
  EXPECT_NE(shellWithout("sysinfo", "uname").out, "");
}

TEST(CallFilter, RemovesNamespacesAndKeepsProcesses) {
  requireOrSkip(hasProgram("unshare"), "no unshare here");
  const RunOutput output = shellWithout("namespaces", "unshare -U true 2>&1; echo $(echo forked)");
  EXPECT_NE(output.out.find("Operation not permitted"), std::string::npos) << output.describe();
  EXPECT_NE(output.out.find("forked"), std::string::npos) << output.describe();
}

TEST(CallFilter, RejectsUnknownNames) {
  EXPECT_EQ(shellWithout("no_such_call", "true").exit_status, 2);
  EXPECT_EQ(shellWithout("openat2:EWHAT", "true").exit_status, 2);
}

}  // namespace
}  // namespace caisson::test
