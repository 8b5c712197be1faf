// Long histories: the number of layers is bounded, and no checkpoint changes.
#include "session/layers/squash.h"

#include <sys/wait.h>
#include <unistd.h>

#include "functional/session.h"
#include "session/layers/steps.h"
#include "session/store/metadata.h"

namespace caisson::test {
namespace {

using session::SquashOptions;

int squash_steps = 0, squash_kill_at = 0;

void countOrDie(const char*) {
  if (++squash_steps == squash_kill_at) ::kill(::getpid(), SIGKILL);
}

class SessionSquash : public SessionTest {
 protected:
  std::shared_ptr<session::Store> internals() const {
    auto place = session::SessionPaths::open(caissonBinary());
    EXPECT_TRUE(place);
    return std::make_shared<session::Store>(std::move(*place));
  }
  std::size_t depth(const Session& session) const {
    const auto found = internals()->find("test", session.id());
    EXPECT_TRUE(found) << found.error().message();
    return found ? found->metadata.frozen.size() : 0;
  }
  /// Merges at once, in a separate process that is killed at step `kill_at` (0: never). Returns whether it completed.
  /// An ordinary user's squash enters a user namespace, which a multithreaded program cannot.
  static bool canSquashHere() { return runsAsRoot() || !kThreadSanitizer; }
  static constexpr const char* kWhyNot = "a program with a thread of its sanitizer's cannot enter a user namespace";
  bool squashNow(const Session& session, int kill_at = 0) {
    const pid_t child = ::fork();
    if (child == 0) {
      squash_steps = 0;
      squash_kill_at = kill_at;
      session::step_observer = countOrDie;
      ::_exit(session::squash(internals(), session.id(), SquashOptions{.least = 2, .wait = true}) ? 0 : 1);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    if (WIFEXITED(status)) {
      EXPECT_EQ(WEXITSTATUS(status), 0) << session::whyNotSquashed(internals()->find("test", session.id())->directory);
    }
    return WIFEXITED(status);
  }
  /// All cases that a squash could get wrong, over three layers and the real directory.
  Session layered() {
    for (const char* name : {"real/a", "real/b", "gone/x", "remade/old", "filled/old", "swapped/x"}) {
      workspace.write(name, "real\n");
    }
    Session session = create();
    const auto stage = [&](const std::string& script) {
      output(session, script);
      EXPECT_TRUE(session.checkpoint());
    };
    stage(
        "echo 1 > real/a; rm -r gone; rm -r remade; rm -r swapped; echo f > swapped; mkdir -p new/deep; echo d > "
        "new/deep/f; ln -s real/a link; mkfifo pipe");
    stage(
        "mkdir remade; echo new > remade/new; rm swapped; mkdir swapped; echo s > swapped/y; rm new/deep/f; "
        "echo g > new/deep/g; chmod 700 filled; ln real/a hard");
    stage(
        "echo 3 >> real/a; rm link; mkdir link; rm -r filled; mkdir filled; echo z > filled/z; mkdir closed; "
        "echo c > closed/c; chmod 0 closed; touch -d @1000000000 new");
    return session;
  }
  static std::string show(Session& session) {
    return output(session,
                  "find . -mindepth 1 -printf '%y %m %p %l %U %G\\n' 2>/dev/null | LC_ALL=C sort; stat -c %Y new; "
                  "find . -type f -exec md5sum {} + 2>/dev/null | LC_ALL=C sort -k2; chmod 700 closed; cat closed/c; "
                  "chmod 0 closed");
  }
};

TEST_F(SessionSquash, KeepsTheVisibleFiles) {
  requireOrSkip(canSquashHere(), kWhyNot);
  Session session = layered();
  const std::string before = show(session);
  const auto changes = session.diff();
  ASSERT_TRUE(session.checkpoint("last", WhenBusy::stop));
  ASSERT_GE(depth(session), 3U);
  ASSERT_TRUE(squashNow(session));
  EXPECT_EQ(depth(session), 1U);
  EXPECT_EQ(show(session), before);
  ASSERT_TRUE(session.restore("last"));
  EXPECT_EQ(show(session), before);
  ASSERT_TRUE(session.restore("c1"));
  EXPECT_EQ(output(session, "cat real/a swapped new/deep/f; ls gone remade 2>/dev/null; readlink link"),
            "1\nf\nd\nreal/a\n");
  ASSERT_TRUE(session.restore("c2"));
  EXPECT_EQ(output(session, "cat real/a hard remade/* swapped/* new/deep/*; ls -d filled/*"),
            "1\n1\nnew\ns\ng\nfilled/old\n");
}

TEST_F(SessionSquash, DoesNotAffectALiveSandbox) {
  requireOrSkip(canSquashHere(), kWhyNot);
  Session session = layered();
  const std::string before = show(session);  // starts the sandbox over the current layers
  ASSERT_TRUE(squashNow(session));
  auto other = store->find(session.id());
  ASSERT_TRUE(other);
  EXPECT_EQ(show(*other), before);
  const auto cleaned = store->clean(false);
  ASSERT_TRUE(cleaned);
  EXPECT_EQ(show(session), before) << "the layers it is mounted over are still there";
}

TEST_F(SessionSquash, KilledAtEveryStepChangesNothing) {
  requireOrSkip(canSquashHere(), kWhyNot);
  Session session = layered();
  const std::string before = show(session);
  ASSERT_TRUE(session.checkpoint("last", WhenBusy::stop));
  int step = 1;
  for (; step < 20; ++step) {
    const bool through = squashNow(session, step);
    EXPECT_EQ(show(session), before) << "killed at step " << step;
    if (through) break;
    ASSERT_TRUE(session.restore("last", WhenBusy::stop));
    output(session, "echo more > extra && rm extra; echo kept > kept");
    ASSERT_TRUE(session.checkpoint());
    ASSERT_TRUE(session.restore("last"));
  }
  EXPECT_GT(step, 2) << "the steps are not there to die at";
}

TEST_F(SessionSquash, BoundsALongHistory) {
  workspace.write("real", "real\n");
  Session session = create();
  constexpr int kRounds = 70;
  for (int i = 0; i < kRounds; ++i) {
    ASSERT_TRUE(session.write("f" + std::to_string(i % 7), std::to_string(i)));
    const auto made = session.checkpoint("p" + std::to_string(i));
    ASSERT_TRUE(made) << i << ": " << made.error().message();
    ASSERT_LE(depth(session), session::kMaxDepth);
  }
  for (const int i : {3, 17, 33, 50, 69}) {
    ASSERT_TRUE(session.restore("p" + std::to_string(i)));
    EXPECT_EQ(output(session, "cat f" + std::to_string(i % 7) + " real"), std::to_string(i) + "real\n") << i;
  }
}

}  // namespace
}  // namespace caisson::test
