#include "host/facts.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <iterator>

#include "support/temp_dir.h"
#include "sys/fd.h"

namespace caisson::host {
namespace {

using plan::HostFacts;
using plan::HostPath;
using policy::Policy;
using test::TempDir;

class ObservedHost : public testing::Test {
 protected:
  void SetUp() override { ::alarm(30); }  // no probed path may block us
  void TearDown() override { ::alarm(0); }

  static HostFacts withWorkspace(const std::string& path) {
    Policy policy;
    policy.filesystem.workspace.path = path;
    return collectFacts(policy);
  }
  static HostPath readOnly(const std::string& path) {
    Policy policy;
    policy.filesystem.workspace.mode = policy::WorkspaceMode::none;
    policy.filesystem.read_only = {path};
    return collectFacts(policy).read_only.at(0);
  }

  TempDir dir;
  std::string real = std::filesystem::canonical(dir.path()).string();
};

TEST_F(ObservedHost, DirectoriesOfTheSystemAreSearchedOnlyForRoot) {
  dir.write(".env", "TOKEN=x\n");
  Policy policy;
  policy.filesystem.workspace.mode = policy::WorkspaceMode::none;
  policy.filesystem.read_only = {"/usr/bin", dir.path()};
  const HostFacts facts = collectFacts(policy);
  ASSERT_TRUE(facts.named_trees.contains(real));
  EXPECT_EQ(facts.named_trees.at(real).scan.secrets, std::vector<std::string>{".env"});
  EXPECT_EQ(facts.named_trees.contains("/usr/bin"), ::geteuid() == 0);
}

TEST_F(ObservedHost, ADirectoryIsADirectory) {
  const HostPath found = withWorkspace(dir.path()).workspace;
  EXPECT_EQ(found.sys_errno, 0);
  EXPECT_TRUE(found.directory);
  EXPECT_FALSE(found.regular_file);
  EXPECT_EQ(found.path, real);
  EXPECT_EQ(found.uid, ::geteuid());
}

TEST_F(ObservedHost, LinkIsResolvedOnce) {
  dir.makeDir("real");
  ASSERT_EQ(::symlink("real", (dir / "link").c_str()), 0);
  const HostPath found = withWorkspace(dir / "link").workspace;
  EXPECT_EQ(found.requested, dir / "link");
  EXPECT_EQ(found.path, real + "/real");
  EXPECT_TRUE(found.directory);
}

TEST_F(ObservedHost, MissingWorkspaceIsReportedWithoutAnError) {
  EXPECT_EQ(withWorkspace(dir / "missing").workspace.sys_errno, ENOENT);
  dir.write("file", "x");
  EXPECT_EQ(withWorkspace(dir / "file/below").workspace.sys_errno, ENOTDIR);
  ASSERT_EQ(::symlink("nowhere", (dir / "dangling").c_str()), 0);
  EXPECT_EQ(withWorkspace(dir / "dangling").workspace.sys_errno, ENOENT);
  ASSERT_EQ(::symlink("circle", (dir / "circle").c_str()), 0);
  EXPECT_EQ(withWorkspace(dir / "circle").workspace.sys_errno, ELOOP);
  EXPECT_EQ(withWorkspace(std::string(5000, 'x')).workspace.sys_errno, ENAMETOOLONG);
}

TEST_F(ObservedHost, FifoDoesNotBlockAndIsNeitherFileNorDirectory) {
  ASSERT_EQ(::mkfifo((dir / "fifo").c_str(), 0600), 0);
  for (const HostPath& found : {withWorkspace(dir / "fifo").workspace, readOnly(dir / "fifo")}) {
    EXPECT_EQ(found.sys_errno, 0);
    EXPECT_FALSE(found.directory);
    EXPECT_FALSE(found.regular_file);
  }
}

TEST_F(ObservedHost, ASocketAndADeviceAreNeitherFileNorDirectory) {
  const sys::Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = dir / "s";
  ASSERT_LT(path.size(), sizeof(address.sun_path));
  path.copy(address.sun_path, path.size());
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  for (const std::string& odd : {path, std::string("/dev/null")}) {
    EXPECT_FALSE(readOnly(odd).directory) << odd;
    EXPECT_FALSE(readOnly(odd).regular_file) << odd;
  }
}

TEST_F(ObservedHost, AFileIsAFile) {
  const HostPath found = readOnly(dir.write("file", "x"));
  EXPECT_TRUE(found.regular_file);
  EXPECT_FALSE(found.directory);
  EXPECT_EQ(found.path, real + "/file");
}

TEST_F(ObservedHost, InaccessibleDirectoryHasErrnoEacces) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may enter everything";
  EXPECT_EQ(withWorkspace(dir.makeDir("closed", 0)).workspace.sys_errno, EACCES);
}

TEST_F(ObservedHost, ADirectoryThatIsGoneIsMissing) {
  const std::string gone = dir.makeDir("gone");
  const sys::Fd held(::open(gone.c_str(), O_PATH | O_CLOEXEC));
  ASSERT_EQ(::rmdir(gone.c_str()), 0);
  const HostPath found = withWorkspace("/proc/self/fd/" + std::to_string(held.get())).workspace;
  EXPECT_TRUE(found.sys_errno != 0 || !test::exists(found.path)) << found.path;
}

TEST_F(ObservedHost, SecretsAreFoundAtEveryDepth) {
  dir.write(".env", "x");
  dir.write("id_rsa", "x");
  dir.write("README", "x");
  dir.write("deep/.env", "x");
  ASSERT_EQ(::mkfifo((dir / "x.pem").c_str(), 0600), 0);
  const HostFacts facts = withWorkspace(dir.path());
  EXPECT_EQ(facts.scan.secrets, (std::vector<std::string>{".env", "deep/.env", "id_rsa", "x.pem"}));
  Policy policy;
  policy.filesystem.workspace.path = dir.path();
  policy.filesystem.workspace.show_secrets = true;
  EXPECT_TRUE(collectFacts(policy).scan.secrets.empty());
}

TEST_F(ObservedHost, WithoutAWorkspaceNoPathIsProbed) {
  Policy policy;
  policy.filesystem.workspace.mode = policy::WorkspaceMode::none;
  policy.filesystem.workspace.path = dir / "missing";
  const HostFacts facts = collectFacts(policy);
  EXPECT_TRUE(facts.workspace.path.empty());
  EXPECT_EQ(facts.workspace.sys_errno, 0);
}

TEST_F(ObservedHost, TheCallersEnvironmentIsReadOnlyWhenAPolicyWantsIt) {
  ::setenv("CAISSON_TEST_SECRET", "s3cr3t", 1);
  Policy policy;
  EXPECT_FALSE(collectFacts(policy).caller_environment.contains("CAISSON_TEST_SECRET"));
  policy.environment.pass = {"CAISSON_TEST_SECRET"};
  EXPECT_EQ(collectFacts(policy).caller_environment.at("CAISSON_TEST_SECRET"), "s3cr3t");
  ::unsetenv("CAISSON_TEST_SECRET");
}

TEST_F(ObservedHost, DeniedPathThroughALinkIsDetected) {
  dir.makeDir("real");
  ASSERT_EQ(::symlink("real", (dir / "link").c_str()), 0);
  Policy policy;
  policy.filesystem.workspace.path = dir.path();
  policy.filesystem.denied = {"/workspace/real/key", "/workspace/link/key", "/workspace/missing", "/etc/x"};
  EXPECT_EQ(collectFacts(policy).denied_through_links, (std::vector<std::string>{"/workspace/link/key"}));
}

TEST_F(ObservedHost, HomeIsResolvedToItsRealPath) {
  dir.makeDir("real-home");
  ASSERT_EQ(::symlink("real-home", (dir / "home").c_str()), 0);
  const char* before = std::getenv("HOME");
  const std::string kept = before != nullptr ? before : "";
  ::setenv("HOME", (dir / "home").c_str(), 1);
  const std::vector<std::string> homes = collectFacts({}).homes;
  before != nullptr ? ::setenv("HOME", kept.c_str(), 1) : ::unsetenv("HOME");
  EXPECT_NE(std::find(homes.begin(), homes.end(), real + "/real-home"), homes.end());
}

TEST_F(ObservedHost, NoDescriptorIsLeftOpen) {
  const auto open_descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
  };
  const auto before = open_descriptors();
  (void)withWorkspace(dir.path());
  EXPECT_EQ(open_descriptors(), before);
}

}  // namespace
}  // namespace caisson::host
