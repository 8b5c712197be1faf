#include "sys/remove_tree.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <stop_token>
#include <thread>

#include "support/conforms.h"
#include "support/environment.h"
#include "sys/root_dir.h"
#include "sys/root_dir_testing.h"

namespace caisson::sys {
namespace {

using fixtures::exists;

class RemoveTree : public fixtures::HostileTree {};
INSTANTIATE_TEST_SUITE_P(Resolution, RemoveTree, ::testing::Values(false, true), fixtures::modeName);

/// Nests `depth` directories below `path`; the bottom is too deep for any path.
void nest(const std::string& path, unsigned depth) {
  Fd here(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_TRUE(here);
  for (unsigned level = 0; level < depth; ++level) {
    ASSERT_EQ(::mkdirat(here.get(), "directory", 0755), 0) << level;
    here = Fd(::openat(here.get(), "directory", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_TRUE(here) << level;
  }
  Fd file(::openat(here.get(), "bottom", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_TRUE(file);
}

/// Runs `body` in a child with new user and mount namespaces; returns its exit status, or -1 if namespaces are denied.
int inOwnMountNamespace(const std::function<int()>& body) {
  const std::string uid_map = "0 " + std::to_string(::geteuid()) + " 1";
  const std::string gid_map = "0 " + std::to_string(::getegid()) + " 1";
  const pid_t child = ::fork();
  if (child == 0) {
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) ::_exit(255);
    fixtures::writeText("/proc/self/setgroups", "deny");
    fixtures::writeText("/proc/self/uid_map", uid_map);
    fixtures::writeText("/proc/self/gid_map", gid_map);
    if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) ::_exit(255);
    ::_exit(body());
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -2;
  return WEXITSTATUS(status) == 255 ? -1 : WEXITSTATUS(status);
}

TEST_P(RemoveTree, RemovesFilesDirectoriesAndEverySpecialFile) {
  directory("t");
  directory("t/a");
  file("t/a/file");
  ASSERT_EQ(::mkfifo(at("t/fifo").c_str(), 0600), 0);
  const Fd socket_fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  ASSERT_LT(at("t/s").size(), sizeof address.sun_path);
  std::strcpy(address.sun_path, at("t/s").c_str());
  ASSERT_EQ(::bind(socket_fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  file("t/sparse", "");
  ASSERT_EQ(::truncate(at("t/sparse").c_str(), 1LL << 40), 0);
  file("t/new\nline \xff\xfe");
  file("t/-rf");
  const auto result = root().removeTree("t");
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_FALSE(exists(at("t")));
}

TEST_P(RemoveTree, MissingIsFine) {
  EXPECT_TRUE(root().removeTree("absent"));
  EXPECT_TRUE(root().removeTree("absent/below"));
  file("f");
  EXPECT_TRUE(root().removeTree("f"));
  EXPECT_TRUE(root().removeTree("f"));
  EXPECT_FALSE(exists(at("f")));
}

TEST_P(RemoveTree, EmptiesTheRootAndKeepsIt) {
  directory("d");
  file("d/f");
  file("f");
  ASSERT_TRUE(root().removeTree(""));
  EXPECT_TRUE(exists(at("")));
  EXPECT_TRUE(root().list("").value().empty());
}

TEST_P(RemoveTree, DoesNotFollowPlantedLinks) {
  CONFORMS("R-FILES-18");
  directory("t");
  directory("t/d");
  link("/proc/self/root", "t/x");
  link("/proc/self/root" + canary_.path(), "t/d/x");
  link(canary_.path(), "t/d/canary");
  link("../../../../../../../.." + canary_.path() + "/dir", "t/d/relative");
  link("loop", "t/loop");
  const auto result = root().removeTree("t");
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_FALSE(exists(at("t")));
  link(canary_.path(), "top");
  ASSERT_TRUE(root().removeTree("top")) << "the link itself goes";
  EXPECT_FALSE(exists(at("top")));
}

TEST_P(RemoveTree, HardLinksToOutsideLoseOnlyTheirName) {
  directory("t");
  ASSERT_EQ(::link((canary_.path() + "/file").c_str(), at("t/hard").c_str()), 0);
  ASSERT_TRUE(root().removeTree("t"));
}

TEST_P(RemoveTree, HostileDepthNeedsNeitherStackNorPathsNorDescriptors) {
  directory("t");
  nest(at("t"), GetParam() ? 1500 : 12000);  // same code in both modes, so the slow one uses less
  directory("t/second");
  nest(at("t/second"), 100);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{.rlim_cur = 64, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  const auto result = root().removeTree("t");
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_TRUE(result) << result.error().message().substr(0, 300);
  EXPECT_FALSE(exists(at("t")));
}

TEST_P(RemoveTree, ManyEntriesInOneDirectory) {
  directory("t");
  for (int i = 0; i < 5000; ++i) file("t/file-with-a-longer-name-" + std::to_string(i), "");
  ASSERT_TRUE(root().removeTree("t"));
  EXPECT_FALSE(exists(at("t")));
}

TEST_P(RemoveTree, RemovesEntriesWithoutPermissions) {
  directory("t");
  directory("t/work");
  directory("t/work/work");
  file("t/work/work/file");
  directory("t/work/work/inner");
  ASSERT_EQ(::chmod(at("t/work/work/inner").c_str(), 0), 0);
  ASSERT_EQ(::chmod(at("t/work/work").c_str(), 0), 0);  // as the kernel leaves an overlay's work directory
  ASSERT_EQ(::chmod(at("t/work").c_str(), 0555), 0);
  ASSERT_EQ(::chmod(at("t").c_str(), 0111), 0);
  const auto result = root().removeTree("t");
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_FALSE(exists(at("t")));
}

TEST_P(RemoveTree, DeepDirectoriesWithoutPermissions) {
  std::string path = "t";
  directory(path);
  for (int i = 0; i < 60; ++i) directory(path += "/d");
  for (; path != "t"; path.resize(path.size() - 2)) ASSERT_EQ(::chmod(at(path).c_str(), 0), 0);
  const auto result = root().removeTree("t");
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_FALSE(exists(at("t")));
}

TEST_P(RemoveTree, TheOverlayWorkDirectoryOfARealOverlay) {
  for (const char* name : {"t", "t/lower", "t/upper", "t/work", "t/merged"}) directory(name);
  const int status = inOwnMountNamespace([&] {
    const std::string options =
        "userxattr,lowerdir=" + at("t/lower") + ",upperdir=" + at("t/upper") + ",workdir=" + at("t/work");
    return ::mount("overlay", at("t/merged").c_str(), "overlay", 0, options.c_str()) == 0 ? 0 : 1;
  });
  requireOrSkip(status == 0, "no overlay in a user namespace here");
  ASSERT_TRUE(exists(at("t/work/work")));
  const auto result = root().removeTree("t");
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_FALSE(exists(at("t")));
}

TEST_P(RemoveTree, NeverEntersAnotherMount) {
  directory("t");
  directory("t/a");
  directory("t/a/mounted");
  file("t/a/file");
  file("t/z");
  file("t/bound");
  enum : int { ok, no_mount, not_reported, entered, too_little, through_a_mount, not_idempotent };
  const int status = inOwnMountNamespace([&]() -> int {
    if (::mount(canary_.path().c_str(), at("t/a/mounted").c_str(), nullptr, MS_BIND, nullptr) != 0) return no_mount;
    if (::mount((canary_.path() + "/file").c_str(), at("t/bound").c_str(), nullptr, MS_BIND, nullptr) != 0) {
      return no_mount;
    }
    const RootDir dir = root();
    const auto result = dir.removeTree("t");
    if (!canary_.untouched()) return entered;
    if (result || result.error().reason.find("mounted") == std::string::npos) return not_reported;
    if (exists(at("t/z")) || exists(at("t/a/file"))) return too_little;
    if (dir.removeTree("t/a/mounted/dir") || dir.remove("t/a/mounted/file") || !canary_.untouched()) {
      return through_a_mount;
    }
    if (::umount(at("t/a/mounted").c_str()) != 0 || ::umount(at("t/bound").c_str()) != 0) return no_mount;
    return dir.removeTree("t") && !exists(at("t")) ? ok : not_idempotent;
  });
  requireOrSkip(status != -1, "no user and mount namespace here");
  EXPECT_EQ(status, ok);
}

TEST_P(RemoveTree, AMountFarBelowIsLeftAlone) {
  std::string path = "t";
  directory(path);
  for (int i = 0; i < 40; ++i) directory(path += "/d");
  const int status = inOwnMountNamespace([&] {
    if (::mount(canary_.path().c_str(), at(path).c_str(), nullptr, MS_BIND, nullptr) != 0) return 1;
    const auto result = root().removeTree("t");
    return !result && result.error().sys_errno == EXDEV && canary_.untouched() ? 0 : 2;
  });
  requireOrSkip(status != -1, "no user and mount namespace here");
  EXPECT_EQ(status, 0);
  ASSERT_TRUE(root().removeTree("t")) << "the mount went with its namespace";
}

TEST_P(RemoveTree, ErrorNamesWhatCannotBeRemoved) {
  directory("t");
  directory("t/d");
  file("t/d/f");
  ASSERT_EQ(::chmod(at("").c_str(), 0555), 0);  // must not be changed: the root belongs to the caller
  const auto result = root().removeTree("t");
  ASSERT_EQ(::chmod(at("").c_str(), 0755), 0);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().sys_errno, EACCES);
  EXPECT_EQ(result.error().object, "t");
}

// The payload moves directories out of and into the tree and swaps them for links while we remove it.
TEST_P(RemoveTree, RenameRaceCannotRemoveOutsideFiles) {
  CONFORMS("R-FILES-13");
  directory("outside");
  std::atomic<unsigned> turns = 0;
  std::jthread attacker([&](const std::stop_token& stop) {
    const std::string in = at("t/a/b");
    const std::string out = at("outside/b");
    const std::string planted = at("t/a/link");
    while (!stop.stop_requested()) {
      (void)::mkdir(at("t").c_str(), 0755);
      (void)::mkdir(at("t/a").c_str(), 0755);
      (void)::mkdir(in.c_str(), 0755);
      (void)::mkdir((in + "/c").c_str(), 0755);
      (void)::symlink(canary_.path().c_str(), planted.c_str());
      (void)::renameat2(AT_FDCWD, in.c_str(), AT_FDCWD, planted.c_str(), RENAME_EXCHANGE);
      (void)::rename(in.c_str(), out.c_str());
      (void)::rename(planted.c_str(), out.c_str());
      (void)::rename(out.c_str(), in.c_str());
      ++turns;
    }
  });
  const RootDir dir = root();
  unsigned removed = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  while (std::chrono::steady_clock::now() < end) {
    removed += dir.removeTree("t").has_value() ? 1 : 0;
    ASSERT_TRUE(canary_.untouched());
  }
  attacker.request_stop();
  attacker.join();
  EXPECT_GT(turns, 0U);
  EXPECT_GT(removed, 0U);
  EXPECT_TRUE(exists(at("outside"))) << "a sibling of the tree was never part of it";
  ASSERT_TRUE(dir.removeTree("t"));
  EXPECT_FALSE(exists(at("t")));
}

// A directory is moved away while we are below it: `..` would lead to its new parent.
TEST_P(RemoveTree, MovedParentIsNotEmptied) {
  CONFORMS("R-FILES-13");
  directory("outside");
  file("outside/keep");
  std::jthread attacker([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      (void)::rename(at("t/a/b").c_str(), at("outside/b").c_str());
      (void)::rename(at("outside/b").c_str(), at("t/a/b").c_str());
    }
  });
  const RootDir dir = root();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  while (std::chrono::steady_clock::now() < end) {
    (void)dir.makeDirs("t/a/b/c/d/e/f", 0755);
    for (const char* name : {"t/a/b/1", "t/a/b/c/2", "t/a/b/c/d/3"}) {
      (void)dir.openFile(name, {.flags = O_WRONLY | O_CREAT});
    }
    (void)dir.removeTree("t");
    ASSERT_TRUE(exists(at("outside/keep")));
  }
  attacker.request_stop();
  attacker.join();
}

}  // namespace
}  // namespace caisson::sys
