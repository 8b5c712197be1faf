#include "sys/root_dir.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <stop_token>
#include <thread>

#include "support/conforms.h"
#include "sys/root_dir_testing.h"

namespace caisson::sys {
namespace {

bool escapes(const Error& error) { return error.code == ErrorCode::path_escapes; }

using fixtures::exists;
using fixtures::readText;
using fixtures::writeText;

class RootDirTest : public fixtures::HostileTree {};
INSTANTIATE_TEST_SUITE_P(Resolution, RootDirTest, ::testing::Values(false, true), fixtures::modeName);

TEST_P(RootDirTest, ReadsAndWritesFilesInside) {
  const RootDir dir = root();
  ASSERT_TRUE(dir.makeDirs("a/b/c", 0755));
  ASSERT_TRUE(dir.makeDirs("a/b/c", 0755)) << "existing directories are fine";
  ASSERT_TRUE(dir.writeFileAtomic("a/b/c/file", "hello", 0640));
  EXPECT_EQ(dir.readFile("a/b/c/file", 100).value(), "hello");
  EXPECT_EQ(dir.readFile("./a//b/../b/c/file", 100).value(), "hello");
  const FileInfo info = dir.stat("a/b/c/file").value();
  EXPECT_EQ(info.type, FileType::regular);
  EXPECT_EQ(info.mode, 0640U);
  EXPECT_EQ(info.size, 5U);
  ASSERT_TRUE(dir.replaceFile("a/b/c/file", "again", 0640));
  EXPECT_TRUE(dir.makeDurable("a/b/c/file"));
  EXPECT_FALSE(dir.makeDurable("a/b/c/none"));
  EXPECT_FALSE(dir.makeDurable("../outside"));
  ASSERT_TRUE(dir.exchangeFile("a/b/c/file", "at last", 0640));
  ASSERT_TRUE(dir.exchangeFile("a/b/c/new", "new", 0600));
  EXPECT_EQ(readText(at("a/b/c/new")), "new");
  EXPECT_FALSE(dir.exchangeFile("a/b", "not a directory", 0600));
  EXPECT_EQ(dir.list("a/b/c")->size(), 2U) << "no temporary file is left";
  ASSERT_TRUE(dir.rename("a/b/c/file", "a/moved", false));
  EXPECT_EQ(readText(at("a/moved")), "at last");
  const auto entries = dir.list("a").value();
  ASSERT_EQ(entries.size(), 2U) << "no temporary file is left";
  EXPECT_EQ(entries[0].name, "b");
  EXPECT_EQ(entries[0].type, FileType::directory);
  EXPECT_EQ(entries[1].name, "moved");
}

TEST_P(RootDirTest, RejectsPathsThatLeaveTheRoot) {
  CONFORMS("R-FILES-11");
  for (const char* request : {"..", "../x", "a/../../x", "./../x", "/etc/passwd", "/", "a/b/../../../x"}) {
    const auto result = root().readFile(request, 100);
    ASSERT_FALSE(result) << request;
    EXPECT_TRUE(escapes(result.error())) << request << ": " << result.error().message();
    EXPECT_TRUE(escapes(root().removeTree(request).error())) << request;
    EXPECT_TRUE(escapes(root().makeDirs(request, 0755).error())) << request;
    EXPECT_TRUE(escapes(root().writeFileAtomic(request, "x", 0600).error())) << request;
    EXPECT_TRUE(escapes(root().enter(request).error())) << request;
  }
}

TEST_P(RootDirTest, ResolvesAbsolutePathsBelowItsName) {
  file("file");
  EXPECT_EQ(root("/workspace").readFile("/workspace/file", 100).value(), "text");
  EXPECT_EQ(root("/workspace").readFile("//workspace/./file", 100).value(), "text");
  EXPECT_EQ(root("/").readFile("/file", 100).value(), "text");
  EXPECT_TRUE(escapes(root("/workspace").readFile("/workspace/../file", 100).error()));
  EXPECT_TRUE(escapes(root("/workspace").readFile("/workspaces/file", 100).error()));
  EXPECT_TRUE(escapes(root("/workspace").readFile("/etc/passwd", 100).error()));
}

TEST_P(RootDirTest, RefusesANulByte) {
  const auto result = root().readFile(std::string_view("a\0b", 3), 100);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().sys_errno, EINVAL);
}

TEST_P(RootDirTest, ResolvesIntermediateLinksInsideTheRoot) {
  CONFORMS("R-FILES-11");
  directory("run");
  directory("var");
  link("/run", "var/run");
  link("../../../../../run", "var/climber");
  file("run/pid", "inside");
  EXPECT_EQ(root().readFile("var/run/pid", 100).value(), "inside");
  EXPECT_EQ(root().readFile("var/climber/pid", 100).value(), "inside");
  EXPECT_EQ(root().readFile("var/run/../run/pid", 100).value(), "inside");
  ASSERT_TRUE(root().makeDirs("var/run/new/deep", 0755));
  EXPECT_TRUE(exists(at("run/new/deep")));
  ASSERT_TRUE(root().makeDirs("var/run", 0755));
  EXPECT_TRUE(root().enter("var/run")->stat("pid"));
}

TEST_P(RootDirTest, LinkToTheHostStaysInsideTheRoot) {
  CONFORMS("R-FILES-11");
  link(canary_.path(), "out");
  link("/proc/self/root", "x");
  link("/proc/self/cwd", "cwd");
  for (const std::string through : {"out/file", "x/etc/passwd", "cwd/file"}) {
    EXPECT_EQ(root().readFile(through, 1 << 20).error().sys_errno, ENOENT) << through;
    EXPECT_FALSE(root().writeFileAtomic(through, "overwritten", 0600)) << through;
    EXPECT_FALSE(root().openFile(through, {.flags = O_WRONLY | O_CREAT | O_TRUNC})) << through;
    EXPECT_FALSE(escapes(root().readFile(through, 1 << 20).error())) << "a link is not a request";
  }
  EXPECT_TRUE(root().remove("out/file")) << "missing inside the root";
  EXPECT_TRUE(root().removeTree("out/dir")) << "missing inside the root";
  EXPECT_FALSE(root().makeDirs("out/made", 0755)) << "a dangling link is in the way";
}

TEST_P(RootDirTest, RefusesLinksThatLeadOutIfAskedTo) {
  CONFORMS("R-FILES-11");
  directory("d");
  file("d/file", "inside");
  directory("tmp");
  link("/tmp", "absolute");
  link("../tmp", "up");
  link("absolute", "second");
  link("/workspace/d", "d/inside");
  link("../d", "d/relative");
  link("/workspace/../tmp", "back");
  link("/workspaces", "longer");
  RootDir dir = root("/workspace");
  dir.refuseLinksOut();
  for (const std::string through : {"absolute", "up", "second", "back", "longer", "d/inside/../absolute"}) {
    EXPECT_TRUE(escapes(dir.readFile(through + "/x", 100).error())) << through;
    EXPECT_TRUE(escapes(dir.writeFileAtomic(through + "/x", "x", 0600).error())) << through;
    EXPECT_TRUE(escapes(dir.openFile(through + "/x", {.flags = O_WRONLY | O_CREAT}).error())) << through;
    EXPECT_TRUE(escapes(dir.makeDirs(through + "/x/y", 0755).error())) << through;
    EXPECT_TRUE(escapes(dir.makeDirs(through, 0755).error())) << through;
    EXPECT_TRUE(escapes(dir.enter(through).error())) << through;
    EXPECT_TRUE(escapes(dir.stat(through + "/x").error())) << through;
    EXPECT_TRUE(escapes(dir.rename("d/file", through + "/x", true).error())) << through;
    EXPECT_TRUE(escapes(dir.removeTree(through + "/x").error())) << through;
  }
  EXPECT_EQ(dir.list("tmp")->size(), 0U);
  for (const char* through : {"d/inside/file", "d/relative/file", "d/inside/relative/inside/file"})
    EXPECT_EQ(dir.readFile(through, 100).value_or(""), "inside") << through;
}

TEST_P(RootDirTest, DoesNotFollowAFinalLink) {
  CONFORMS("R-FILES-11");
  file("target");
  link("target", "link");
  EXPECT_EQ(root().openFile("link", {}).error().sys_errno, ELOOP);
  EXPECT_EQ(root().openFile("link/", {}).error().sys_errno, ELOOP) << "a trailing slash would follow";
  EXPECT_EQ(root().openFile("link", {.flags = O_WRONLY | O_CREAT | O_TRUNC}).error().sys_errno, ELOOP);
  EXPECT_EQ(root().stat("link")->type, FileType::link);
  EXPECT_EQ(root().readLink("link").value(), "target");
  EXPECT_TRUE(root().openFile("link", {.flags = O_PATH, .types = {FileType::link}}));
  ASSERT_TRUE(root().writeFileAtomic("link", "new", 0600)) << "replaces the link";
  EXPECT_EQ(readText(at("target")), "text");
  EXPECT_EQ(root().stat("link")->type, FileType::regular);
}

TEST_P(RootDirTest, GivesUpOnLinkLoops) {
  link("b", "a");
  link("a", "b");
  link("self/self", "self");
  EXPECT_EQ(root().readFile("a/x", 100).error().sys_errno, ELOOP);
  EXPECT_EQ(root().readFile("self/x", 100).error().sys_errno, ELOOP);
  EXPECT_FALSE(root().makeDirs("a/x", 0755));
}

TEST_P(RootDirTest, NeverBlocksOnAFifoAndOpensOnlyWantedTypes) {
  ASSERT_EQ(::mkfifo(at("fifo").c_str(), 0600), 0);
  directory("dir");
  file("file");
  EXPECT_FALSE(root().openFile("fifo", {}));
  EXPECT_FALSE(root().openFile("fifo", {.flags = O_WRONLY}));
  EXPECT_FALSE(root().readFile("fifo", 100));
  EXPECT_TRUE(root().openFile("fifo", {.types = {FileType::fifo}}));
  EXPECT_EQ(root().openFile("dir", {}).error().sys_errno, EISDIR);
  EXPECT_EQ(root().openFile("file", {.types = {FileType::directory}}).error().sys_errno, ENOTDIR);
  ASSERT_TRUE(root().writeFileAtomic("fifo", "replaced", 0600));
  EXPECT_EQ(root().readFile("fifo", 100).value(), "replaced");
}

TEST_P(RootDirTest, NeverOpensADevice) {
  auto dev = RootDir::open("/dev", {.walk_by_hand = GetParam()});
  ASSERT_TRUE(dev);
  const FileTypes any = {FileType::character_device};
  EXPECT_FALSE(dev->openFile("null", {}));
  EXPECT_EQ(dev->openFile("null", {.types = any}).error().sys_errno, EPERM);
  EXPECT_TRUE(dev->openFile("null", {.flags = O_PATH, .types = any}));
}

TEST_P(RootDirTest, MagicLinksAreRefused) {
  CONFORMS("R-FILES-11");
  auto proc = RootDir::open("/proc", {.walk_by_hand = GetParam()});
  ASSERT_TRUE(proc);
  const std::string self = std::to_string(::getpid());
  EXPECT_EQ(proc->readFile(self + "/root/etc/passwd", 1 << 20).error().sys_errno, ELOOP);
  EXPECT_EQ(proc->readFile(self + "/cwd/x", 1 << 20).error().sys_errno, ELOOP);
}

TEST_P(RootDirTest, ASparseFileDoesNotFillMemory) {
  file("sparse", "");
  ASSERT_EQ(::truncate(at("sparse").c_str(), 1LL << 40), 0);
  EXPECT_EQ(root().readFile("sparse", 1 << 20).error().sys_errno, EFBIG);
  EXPECT_EQ(root().stat("sparse")->blocks, 0U);
}

TEST_P(RootDirTest, CreatesTruncatesAndAppends) {
  const auto put = [&](int flags, const char* text) {
    auto file = root().openFile("f", {.flags = O_WRONLY | flags, .mode = 0600});
    return file && ::write(file->get(), text, std::strlen(text)) > 0;
  };
  EXPECT_FALSE(put(0, "x"));
  EXPECT_TRUE(put(O_CREAT, "one"));
  EXPECT_FALSE(put(O_CREAT | O_EXCL, "x"));
  EXPECT_TRUE(put(O_APPEND, "two"));
  EXPECT_EQ(readText(at("f")), "onetwo");
  EXPECT_TRUE(put(O_CREAT | O_TRUNC, "3"));
  EXPECT_EQ(readText(at("f")), "3");
  EXPECT_FALSE(root().openFile("f", {.flags = O_RDONLY | O_DIRECT}));
}

TEST_P(RootDirTest, RenameReplacesOnlyWhenAsked) {
  file("a", "a");
  file("b", "b");
  EXPECT_EQ(root().rename("a", "b", false).error().sys_errno, EEXIST);
  EXPECT_TRUE(root().rename("a", "b", true));
  EXPECT_EQ(readText(at("b")), "a");
  EXPECT_TRUE(escapes(root().rename("b", "../b", true).error()));
}

TEST_P(RootDirTest, RemovesOneObject) {
  file("f");
  directory("d");
  link(canary_.path(), "l");
  EXPECT_TRUE(root().remove("f"));
  EXPECT_TRUE(root().remove("d"));
  EXPECT_TRUE(root().remove("l"));
  EXPECT_TRUE(root().remove("absent"));
  directory("full");
  file("full/f");
  EXPECT_EQ(root().remove("full").error().sys_errno, ENOTEMPTY);
  EXPECT_FALSE(root().remove(""));
}

TEST_P(RootDirTest, ListsWithALimit) {
  for (char name = 'a'; name < 'a' + 20; ++name) file(std::string(1, name));
  EXPECT_EQ(root().list("").value().size(), 20U);
  EXPECT_EQ(root().list("", 19).error().sys_errno, EFBIG);
}

TEST_P(RootDirTest, AFailedWriteLeavesTheOldFileAndNoTemporary) {
  directory("target");
  EXPECT_FALSE(root().writeFileAtomic("target", "x", 0600)) << "a directory is in the way";
  EXPECT_EQ(root().list("").value().size(), 1U);
}

/// Makes openat2 fail with `error`, like an old kernel (ENOSYS) or a container's filter (EPERM).
bool disableOpenat2(int error) {
  sock_filter code[] = {
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_openat2},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
  };
  const sock_fprog program{.len = std::size(code), .filter = code};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

TEST_P(RootDirTest, FallsBackWhereOpenat2IsRefused) {
  CONFORMS("R-FILES-11");
  directory("real");
  file("real/file", "inside");
  link("/real", "way");
  link(canary_.path(), "out");
  for (const int error : {ENOSYS, EPERM}) {
    const pid_t child = ::fork();
    if (child == 0) {
      const RootDir dir = root();
      const bool good = disableOpenat2(error) && dir.readFile("way/file", 100).value_or("") == "inside" &&
                        !dir.readFile("out/file", 100) && dir.removeTree("out") && dir.makeDirs("way/a/b", 0755);
      ::_exit(good ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
}

// The payload repeatedly swaps a directory for a link to the host while the host writes through it (the rename race of
// runc CVE-2021-30465).
TEST_P(RootDirTest, ExchangeRaceNeverLeavesTheRoot) {
  CONFORMS("R-FILES-13", "R-SYSCALL-14");
  directory("d");
  directory("d/dir");
  link(canary_.path(), "l");
  std::jthread attacker([&](const std::stop_token& stop) {
    while (!stop.stop_requested())
      (void)::renameat2(AT_FDCWD, at("d").c_str(), AT_FDCWD, at("l").c_str(), RENAME_EXCHANGE);
  });
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  unsigned successes = 0;
  const RootDir dir = root();
  while (std::chrono::steady_clock::now() < end) {
    successes += dir.writeFileAtomic("d/file", "overwritten", 0600).has_value() ? 1 : 0;
    (void)dir.makeDirs("d/made/x", 0755);
    (void)dir.openFile("d/file", {.flags = O_WRONLY | O_CREAT | O_TRUNC});
    (void)dir.rename("d/file", "d/dir/inner", true);
    (void)dir.remove("d/dir/inner");
    ASSERT_TRUE(canary_.untouched());
  }
  attacker.request_stop();
  attacker.join();
  EXPECT_GT(successes, 0U);
  EXPECT_FALSE(exists(canary_.path() + "/made"));
}

}  // namespace
}  // namespace caisson::sys
