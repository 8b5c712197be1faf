// Everything a payload can plant in its workspace, static and racing: reading, writing, comparing, committing and
// destroying from outside neither reach anything else nor block.
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>

#include "functional/session.h"

namespace caisson::test {
namespace {

class HostileTree : public SessionTest {
 protected:
  void SetUp() override {
    SessionTest::SetUp();
    if (IsSkipped()) return;
    canary.emplace(outside / "canary");
    outside.makeDir("directory");
    trap.emplace(outside / "directory/passwd");
  }
  void TearDown() override {
    SessionTest::TearDown();
    if (!canary) return;
    EXPECT_TRUE(canary->untouched());
    EXPECT_TRUE(trap->untouched());
    EXPECT_EQ(runProgram({"sh", "-c", "find " + outside.path() + " | wc -l"}).out, "4\n") << "nothing was made there";
  }
  /// Every operation from outside on one path. Their results do not matter, only what they access.
  void touch(Session& session, const std::string& path) {
    const auto begin = std::chrono::steady_clock::now();
    if (const auto piece = session.read(path, 0, 1 << 16)) {
      EXPECT_FALSE(canary->leakedInto(piece->data)) << path;
      EXPECT_FALSE(trap->leakedInto(piece->data)) << path;
    }
    (void)session.listFiles(path);
    (void)session.write(path + "/written", "w");
    (void)session.write(path, "w");
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20)) << path;
  }

  const TempDir outside;
  std::optional<Canary> canary, trap;
};

TEST_F(HostileTree, CannotLeadOutsideWhileUnchanged) {
  Session session = create();
  const std::string place = outside.path();
  output(session, "ln -s " + place + "/canary link; ln -s " + place +
                      "/directory dir; ln -s /proc/self/root root; "
                      "ln -s /proc/1/root init; ln -s ../../../../../../.. up; ln -s loop loop; mkfifo pipe left; "
                      "truncate -s 1000M sparse; mkdir closed; echo x > closed/x; chmod 000 closed; "
                      "d=deep; i=0; while [ $i -lt 200 ]; do d=$d/nested; i=$((i+1)); done; mkdir -p $d; "
                      "mkdir many; i=0; while [ $i -lt 2000 ]; do : > many/$i; i=$((i+1)); done; "
                      "printf '' > \"$(printf 'new\\nline')\"; ln -s dir/passwd chained");
  for (const char* path :
       {"link",          "dir",     "dir/passwd", "root",   "root/etc/passwd", "init",         "up",
        "up/etc/passwd", "loop",    "pipe",       "closed", "closed/x",        "deep",         "many",
        "new\nline",     "chained", "..",         "../x",   "/etc/passwd",     "link/../../x", ""}) {
    touch(session, path);
  }
  const auto sparse = session.read("sparse", 0, 1 << 16);
  ASSERT_TRUE(sparse) << sparse.error().message();
  EXPECT_EQ(sparse->size, 1000ULL << 20);
  output(session, "rm -f sparse; chmod 755 closed 2>/dev/null || true");
  const auto changes = session.diff();
  ASSERT_TRUE(changes) << changes.error().message();
  EXPECT_GT(changes->size(), 2000U);
  const auto report = session.commit();
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_FALSE(exists(workspace / "left")) << "a pipe is not committed";
  ASSERT_TRUE(session.checkpoint("all"));
  ASSERT_TRUE(session.restore("begin"));
  EXPECT_TRUE(session.destroy());
}

TEST_F(HostileTree, CannotLeadOutsideWhileChanging) {
  Session session = create();
  const std::string place = outside.path();
  const auto race =
      session.start({.command = {"sh", "-c",
                                 "mkdir -p a/b/c; echo x > a/b/c/passwd; while :; do mv a/b a/z; ln -s " + place +
                                     "/directory a/b; rm a/b; mv a/z a/b; rm -f f; ln -s " + place +
                                     "/canary f; rm -f f; mkfifo f; rm -f f; echo plain > f; done 2>/dev/null"}});
  ASSERT_TRUE(race) << race.error().message();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(4);
  int rounds = 0;
  for (; std::chrono::steady_clock::now() < end; ++rounds) {
    touch(session, "a/b/passwd");
    touch(session, "a/b/c/passwd");
    touch(session, "f");
    (void)session.listFiles("a/b");
    if (rounds % 4 == 0) (void)session.diff();
    if (rounds % 8 == 0) (void)session.commit();
  }
  EXPECT_GT(rounds, 3);
  EXPECT_TRUE(session.status(*race)->running);
  EXPECT_TRUE(session.destroy()) << "with the race still going on";
}

}  // namespace
}  // namespace caisson::test
