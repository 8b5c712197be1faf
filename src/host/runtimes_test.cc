#include "host/runtimes.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>

#include "support/temp_dir.h"

namespace caisson::host {
namespace {

TEST(FindRuntime, TakesTheFirstDirectoryAndResolvesLinks) {
  const std::string directories[] = {"/nowhere", "/bin", "/usr/bin"};
  const auto found = findRuntime("true", directories);
  ASSERT_TRUE(found) << found.error().message();
  struct stat one, other;
  ASSERT_EQ(::stat(found->c_str(), &one), 0);
  ASSERT_EQ(::lstat(found->c_str(), &other), 0);
  EXPECT_EQ(one.st_ino, other.st_ino) << "no link: " << *found;
  const auto missing = findRuntime("no-such-runtime", directories);
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message().find("not installed"), std::string::npos);
}

TEST(FindRuntime, RefusesWhatOthersCanReplace) {
  const test::TempDir directory;  // below a directory that everyone may write
  directory.write("runtime", "#!/bin/sh\n", 0755);
  const std::string directories[] = {directory.path()};
  const auto found = findRuntime("runtime", directories);
  ASSERT_FALSE(found);
  EXPECT_NE(found.error().message().find("may change"), std::string::npos) << found.error().message();
  EXPECT_FALSE(checkRuntimePath(directory / "runtime"));
  EXPECT_FALSE(checkRuntimePath("/etc/passwd")) << "not executable";
  EXPECT_FALSE(checkRuntimePath("/usr/bin")) << "a directory";
}

TEST(ObserveRuntime, NamesEntriesOfProc) {
  const plan::RuntimeFacts facts = observeRuntime(policy::Runtime::runsc);
  if (facts.path.empty()) {
    EXPECT_FALSE(facts.why_not.empty());
    EXPECT_FALSE(facts.hint.empty());
    return;
  }
  EXPECT_NE(std::ranges::find(facts.proc_entries, "meminfo"), facts.proc_entries.end());
}

}  // namespace
}  // namespace caisson::host
