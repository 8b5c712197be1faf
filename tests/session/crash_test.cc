// kill -9 at every named step: the session is in the old or the new state, and nothing is lost.
#include "session/layers/steps.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <functional>
#include <utility>

#include "base/sha256.h"
#include "functional/session.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

int steps_seen = 0;
int kill_at = 0;
std::string kill_step;  // only steps of this name count; empty: all

void countOrDie(const char* name) {
  if ((kill_step.empty() || kill_step == name) && ++steps_seen == kill_at) ::kill(::getpid(), SIGKILL);
}

/// Makes a sealed file name another path of the same length, with a checksum in place of the seal, as a program could
/// that can write the file.
void forge(const std::string& file, const std::string& path, const std::string& other) {
  const std::string text = readFile(file);
  const std::size_t heading = text.find('\n') + 1;
  std::string body = text.substr(heading + 65);
  for (std::size_t at = body.find(path); at != std::string::npos; at = body.find(path, at)) {
    body.replace(at, path.size(), other);
  }
  ASSERT_NE(body, text.substr(heading + 65));
  std::ofstream(file, std::ios::binary) << text.substr(0, heading) << hex(Sha256().add(body).finish()) << "\n" << body;
}

class SessionCrash : public SessionTest {
 protected:
  /// Runs `work` in a separate process that is killed at its n-th step. Returns whether it was killed.
  bool dieAt(int n, const std::function<void(SessionStore&)>& work, const std::string& step = {}) {
    const pid_t child = ::fork();
    if (child == 0) {
      kill_step = step;
      steps_seen = 0;
      kill_at = n;
      session::step_observer = countOrDie;
      auto own = SessionStore::open(caissonBinary());
      if (own) work(*own);
      ::_exit(0);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  }
  /// Kills at the first step, the second ... until the work completes; `check` inspects the state each time.
  void atEveryStep(const std::function<void(SessionStore&)>& work, const std::function<void()>& check, int least) {
    int step = 1;
    for (; step < 200; ++step) {
      const bool died = dieAt(step, work);
      check();
      if (HasFailure()) FAIL() << "at step " << step;
      if (!died) break;
    }
    EXPECT_GT(step, least) << "the steps are not there to die at";
  }
  /// The names in a directory of CAISSON_HOME that match.
  [[nodiscard]] std::string entries(const std::string& directory, const std::string& pattern) const {
    return runProgram({"sh", "-c", "ls -A \"$0\" | grep \"$1\"", home_path + directory, pattern}).out;
  }
  void expectNothingLeft() const {
    EXPECT_EQ(entries("/stores", ""), "");
    EXPECT_EQ(entries("/sessions", "^[.]gone-\\|^[.]new-\\|^[^.]"), "");
  }
};

TEST_F(SessionCrash, CreateLeavesASessionOrNothing) {
  CONFORMS("R-SESSION-2");
  const SessionOptions wanted = options();
  atEveryStep(
      [&](SessionStore& own) { (void)own.create(wanted); },
      [&] {
        auto infos = store->list();
        ASSERT_TRUE(infos) << infos.error().message();
        for (const SessionInfo& info : *infos) {
          EXPECT_EQ(info.problem, "");
          auto session = store->find(info.id);
          ASSERT_TRUE(session) << session.error().message();
          EXPECT_EQ(output(*session, "echo works"), "works\n");
          EXPECT_TRUE(session->destroy());
        }
        EXPECT_EQ(
            runProgram({"sh", "-c", "ls -A " + home_path + "/sessions | grep -v '^[.]\\(lock\\|cleaned\\)$'"}).out, "");
        EXPECT_EQ(runProgram({"ls", "-A", home_path + "/stores"}).out, "");
      },
      3);
}

TEST_F(SessionCrash, ForgedJournalIsKeptAsideAndReported) {
  workspace.write("host-file", "of the host\n");
  Session session = create();
  output(session, "echo session > work-file");
  ASSERT_TRUE(dieAt(
      1,
      [&](SessionStore& own) {
        auto same = own.find(session.id());
        if (same) (void)same->commit({});
      },
      "commit: journal written"));
  const std::string journal = home_path + "/sessions/" + session.id() + "/commit.journal";
  forge(journal, "work-file", "host-file");
  const auto use = [&]() -> std::string {
    auto found = store->find(session.id());
    if (!found) return found.error().message();
    const auto report = found->commit({.dry_run = true});
    return report ? "" : report.error().message();
  };
  const std::string refusal = use();
  EXPECT_NE(refusal.find("is kept as commit.journal.invalid"), std::string::npos) << refusal;
  EXPECT_EQ(readFile(workspace / "host-file"), "of the host\n");
  EXPECT_TRUE(exists(journal + ".invalid"));
  EXPECT_FALSE(exists(journal));
  EXPECT_EQ(use(), "") << "the session can be used";
  const auto infos = store->list();
  ASSERT_TRUE(infos && infos->size() == 1);
  const auto& warnings = infos->front().warnings;
  EXPECT_TRUE(
      std::ranges::any_of(warnings, [](const std::string& one) { return one.contains("commit.journal.invalid"); }));
  auto found = store->find(session.id());
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->commit({}));
  EXPECT_EQ(readFile(workspace / "work-file"), "session\n");
  EXPECT_EQ(readFile(workspace / "host-file"), "of the host\n");
}

TEST_F(SessionCrash, CheckpointAndRestoreLeaveBeforeOrAfter) {
  workspace.write("real", "real\n");
  Session session = create();
  int round = 0;
  output(session, "echo 0 > f");
  atEveryStep(
      [&](SessionStore& own) {
        auto same = own.find(session.id());
        if (same) (void)same->checkpoint("p" + std::to_string(round));
      },
      [&] {
        auto found = store->find(session.id());
        ASSERT_TRUE(found) << found.error().message();
        EXPECT_EQ(output(*found, "cat f real"), std::to_string(round) + "\nreal\n");
        const auto points = found->checkpoints();
        ASSERT_TRUE(points);
        for (const CheckpointInfo& point : *points) EXPECT_TRUE(found->diff(point.name)) << point.name;
        ++round;
        output(*found, "echo " + std::to_string(round) + " > f");
      },
      2);
  auto first = store->find(session.id());
  ASSERT_TRUE(first);
  ASSERT_TRUE(first->checkpoint("base"));
  const std::string base = output(*first, "cat f");
  atEveryStep(
      [&](SessionStore& own) {
        auto same = own.find(session.id());
        if (same) (void)same->restore("base");
      },
      [&] {
        auto found = store->find(session.id());
        ASSERT_TRUE(found) << found.error().message();
        const std::string now = output(*found, "cat f");
        EXPECT_TRUE(now == base || now == "changed\n") << now;
        output(*found, "echo changed > f");
      },
      2);
}

TEST_F(SessionCrash, ForkLeavesTheFirstAsItWas) {
  Session session = create();
  output(session, "echo kept > f");
  atEveryStep(
      [&](SessionStore& own) {
        auto same = own.find(session.id());
        if (same) (void)same->fork();
      },
      [&] {
        auto infos = store->list();
        ASSERT_TRUE(infos);
        for (const SessionInfo& info : *infos) {
          EXPECT_EQ(info.problem, "");
          auto found = store->find(info.id);
          ASSERT_TRUE(found) << found.error().message();
          EXPECT_EQ(output(*found, "cat f"), "kept\n");
          if (info.id != session.id()) {
            EXPECT_TRUE(found->destroy());
          }
        }
      },
      3);
}

/// Changes of every kind in a workspace, and its state before and after their commit.
class CommitCrash : public SessionCrash {
 protected:
  static constexpr const char* kDescribe =
      "find . -mindepth 1 -printf '%y %m %p %l\\n' | LC_ALL=C sort; "
      "find . -type f -exec md5sum {} + | LC_ALL=C sort -k2";

  [[nodiscard]] std::string describeHost() const {
    return runProgram({"sh", "-c", kDescribe}, {.cwd = workspace.path()}).out;
  }
  /// A commit that is killed after this many paths were installed.
  void dieInCommit(const Session& session, int paths) {
    ASSERT_TRUE(dieAt(
        paths,
        [&](SessionStore& own) {
          auto same = own.find(session.id());
          if (same) (void)same->commit();
        },
        "commit: one applied"));
  }
  /// The next commit changes, adds, removes and exchanges files, directories and links.
  static std::string nextChanges(int round) {
    const std::string number = std::to_string(round);
    const std::string flip = round % 2 == 0 ? "rm -rf kind tree; mkdir kind; echo k > kind/k; echo t > tree"
                                            : "rm -rf kind tree; echo k > kind; mkdir -p tree/a; echo b > tree/a/b";
    return "echo " + number + " > f0; echo " + number + " > f1; rm -f g*; echo " + number + " > g" + number +
           "; ln -sfn f0 l; rm -rf d*; mkdir d" + number + "; echo x > d" + number + "/x; chmod " +
           (round % 2 == 0 ? "750" : "740") + " f1; " + flip;
  }
};

TEST_F(CommitCrash, NextUseFinishesTheCommitOrNothingHappened) {
  CONFORMS("R-SESSION-18");
  for (const char* name : {"f0", "f1", "kind"}) workspace.write(name, "old\n");
  workspace.write("tree/a/b", "old\n");
  Session session = create();
  int round = 0;
  output(session, nextChanges(round));
  std::string before = describeHost();
  const auto planned = session.commit({.dry_run = true});
  ASSERT_TRUE(planned);
  ASSERT_TRUE(planned->complete());
  int finished = 0, untouched = 0;
  atEveryStep(
      [&](SessionStore& own) {
        auto same = own.find(session.id());
        if (same) (void)same->commit();
      },
      [&] {
        for (const char* name : {"f0", "f1"}) {
          const std::string text = readFile(workspace / name);
          EXPECT_TRUE(text == std::to_string(round) + "\n" || before.find(name) != std::string::npos) << text;
          EXPECT_NE(text, "") << "neither old nor new";
        }
        auto found = store->find(session.id());
        ASSERT_TRUE(found) << found.error().message();
        const std::string expected = output(*found, kDescribe);  // any use completes it
        const std::string now = describeHost();
        EXPECT_TRUE(now == before || now == expected) << "a mixture:\n" << now << "before:\n" << before;
        (now == before ? untouched : finished) += 1;
        const auto rest = found->commit();
        ASSERT_TRUE(rest) << rest.error().message();
        EXPECT_TRUE(rest->complete());
        EXPECT_EQ(describeHost(), expected);
        EXPECT_EQ(
            runProgram({"sh", "-c", "ls -A " + home_path + "/sessions/" + session.id() + " | grep '^commit[.]'"}).out,
            "");
        before = expected;
        output(*found, nextChanges(++round));
      },
      30);
  EXPECT_GT(finished, 10);
  EXPECT_GT(untouched, 3);
}

TEST_F(CommitCrash, RecoveryMayBeKilledToo) {
  CONFORMS("R-SESSION-18");
  for (const char* name : {"f0", "f1", "kind"}) workspace.write(name, "old\n");
  workspace.write("tree/a/b", "old\n");
  Session session = create();
  output(session, nextChanges(0));
  const std::string expected = output(session, kDescribe);
  const std::string before = describeHost();
  dieInCommit(session, 4);
  ASSERT_NE(describeHost(), before);
  ASSERT_NE(describeHost(), expected);
  atEveryStep(
      [&](SessionStore& own) {
        auto same = own.find(session.id());
        if (same) (void)same->diff();
      },
      [&] {
        for (const char* name : {"f0", "f1"}) {
          const std::string text = readFile(workspace / name);
          EXPECT_TRUE(text == "old\n" || text == "0\n") << text;
        }
      },
      8);
  EXPECT_EQ(describeHost(), expected);
}

TEST_F(CommitCrash, HostChangeAfterTheCrashIsKeptAndReported) {
  for (int i = 0; i < 6; ++i) workspace.write("f" + std::to_string(i), "old\n");
  Session session = create();
  output(session, "for i in 0 1 2 3 4 5; do echo new > f$i; done");
  dieInCommit(session, 3);
  ASSERT_EQ(readFile(workspace / "f2"), "new\n");
  ASSERT_EQ(readFile(workspace / "f5"), "old\n");
  workspace.write("f5", "host\n");
  workspace.write("f0", "host too\n");
  auto found = store->find(session.id());
  ASSERT_TRUE(found);
  const RunResult used = exec(*found, "true");
  ASSERT_FALSE(used.notices.empty());
  EXPECT_NE(used.notices.front().find("interrupted"), std::string::npos) << used.notices.front();
  EXPECT_NE(used.notices.front().find("f5"), std::string::npos) << used.notices.front();
  const auto expectKept = [&] {
    EXPECT_EQ(readFile(workspace / "f5"), "host\n");
    EXPECT_EQ(readFile(workspace / "f0"), "host too\n");
    EXPECT_EQ(readFile(workspace / "f4"), "new\n");
  };
  expectKept();
  const auto report = found->commit();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->conflicts.size(), 2U);
  expectKept();
}

TEST_F(CommitCrash, DestroyFinishesTheCommitFirst) {
  workspace.write("a", "old\n");
  workspace.write("b", "old\n");
  Session session = create();
  output(session, "echo new > a; echo new > b");
  dieInCommit(session, 1);
  ASSERT_EQ(readFile(workspace / "a"), "new\n");
  ASSERT_EQ(readFile(workspace / "b"), "old\n");
  ASSERT_TRUE(store->destroy(session.id()));
  EXPECT_EQ(readFile(workspace / "b"), "new\n");
}

TEST_F(SessionCrash, DestroyLeavesASessionOrNothing) {
  Session first = create();
  output(first, "echo kept > f");
  std::string id = first.id();
  atEveryStep([&](SessionStore& own) { (void)own.destroy(id); },
              [&] {
                auto infos = store->list();
                ASSERT_TRUE(infos);
                for (const SessionInfo& info : *infos) {
                  EXPECT_EQ(info.problem, "");
                  auto found = store->find(info.id);
                  ASSERT_TRUE(found) << found.error().message();
                  EXPECT_EQ(output(*found, "cat f"), "kept\n");
                  EXPECT_TRUE(found->destroy());
                }
                expectNothingLeft();
                Session next = create();
                output(next, "echo kept > f");
                id = next.id();
              },
              5);
}

TEST_F(SessionCrash, DestroyOfAForkLeavesTheOther) {
  Session kept = create();
  output(kept, "echo kept > f");
  ASSERT_TRUE(kept.checkpoint("first"));
  std::string id;
  const auto fork = [&] {
    auto forked = kept.fork();
    ASSERT_TRUE(forked) << forked.error().message();
    EXPECT_EQ(output(*forked, "cat f; echo fork > g"), "kept\n");
    id = forked->id();
  };
  fork();
  atEveryStep([&](SessionStore& own) { (void)own.destroy(id); },
              [&] {
                EXPECT_EQ(output(kept, "cat f"), "kept\n");
                if (store->find(id)) {
                  EXPECT_TRUE(store->destroy(id));
                }
                ASSERT_TRUE(store->list());  // cleans
                EXPECT_EQ(entries("/sessions", "^[.]gone-"), "");
                EXPECT_EQ(entries("/stores", "^[.]trash-"), "");
                fork();
              },
              3);
}

/// The clean-up after a killed destroy is killed too.
TEST_F(SessionCrash, NextCleanFinishesAKilledClean) {
  const auto killDestroy = [&] {
    Session next = create();
    output(next, "echo x > f");
    ASSERT_TRUE(dieAt(1, [&](SessionStore& own) { (void)own.destroy(next.id()); }, "destroy: hidden"));
    ASSERT_NE(entries("/sessions", "^[.]gone-"), "");
  };
  killDestroy();
  atEveryStep([&](SessionStore& own) { (void)own.clean(false); },
              [&] {
                ASSERT_TRUE(store->list());  // cleans
                expectNothingLeft();
                killDestroy();
              },
              3);
}

TEST_F(SessionCrash, DestroyInTheLandlockTierLeavesASessionOrNothing) {
  SessionOptions wanted = options();
  ASSERT_TRUE(wanted.policy.set("isolation.tier", "landlock"));
  std::string id;
  const auto make = [&] {
    auto made = store->create(wanted);
    ASSERT_TRUE(made) << made.error().message();
    id = made->id();
  };
  make();
  atEveryStep([&](SessionStore& own) { (void)own.destroy(id); },
              [&] {
                ASSERT_TRUE(store->list());  // cleans
                if (store->find(id)) {
                  EXPECT_TRUE(store->destroy(id));
                }
                expectNothingLeft();
                // Where root's sessions of this tier have their files.
                EXPECT_FALSE(exists("/var/tmp/caisson-sessions-" + std::to_string(::geteuid()) + "/" + id));
                make();
              },
              3);
}

std::function<void()> during_removal;

/// Runs `work` when a removal begins, and `check` inside, before the first file is removed.
class SlowRemoval : public SessionCrash {
 protected:
  void whileRemoving(const std::function<void()>& work, std::function<void()> check) {
    bool checked = false;
    during_removal = [&] {
      checked = true;
      check();
    };
    session::step_observer = [](const char* name) {
      if (std::string_view(name) == "destroy: removing" && during_removal) std::exchange(during_removal, {})();
    };
    work();
    session::step_observer = nullptr;
    during_removal = {};
    EXPECT_TRUE(checked);
  }
  /// Other sessions are created, listed and destroyed, and nothing of them waits for the removal or does it.
  void expectOthersWork() {
    const std::string layers = entries("/stores", "^[.]trash-");
    EXPECT_NE(layers, "");
    const RunOutput made = cli({"create", "--name", "other"});
    EXPECT_EQ(made.exit_status, 0) << made.describe();
    EXPECT_EQ(cli({"list"}).exit_status, 0);
    EXPECT_EQ(cli({"destroy", "other"}).exit_status, 0);
    EXPECT_EQ(entries("/stores", "^[.]trash-"), layers);
    EXPECT_NE(entries("/sessions", "^[.]gone-"), "");
  }
};

TEST_F(SlowRemoval, DestroyDoesNotBlockOtherSessions) {
  Session session = create();
  output(session, "echo x > f");
  whileRemoving([&] { EXPECT_TRUE(store->destroy(session.id())); }, [&] { expectOthersWork(); });
  expectNothingLeft();
}

TEST_F(SlowRemoval, CleanDoesNotBlockOtherSessions) {
  Session session = create();
  output(session, "echo x > f");
  ASSERT_TRUE(dieAt(1, [&](SessionStore& own) { (void)own.destroy(session.id()); }, "destroy: hidden"));
  whileRemoving([&] { EXPECT_TRUE(store->clean(false)); }, [&] { expectOthersWork(); });
  expectNothingLeft();
}

/// After a clean-up of everything nothing is left, even if another process was removing it.
TEST_F(SlowRemoval, CleanOfAllJoinsTheRemoval) {
  Session session = create();
  output(session, "echo x > f");
  whileRemoving([&] { EXPECT_TRUE(store->destroy(session.id())); },
                [&] {
                  dieAt(0, [](SessionStore& own) { (void)own.clean(true); });  // completes
                  expectNothingLeft();
                });
}

}  // namespace
}  // namespace caisson::test
