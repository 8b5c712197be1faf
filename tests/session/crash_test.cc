// kill -9 at every named step: the session is as before or as after, never between, and nothing is lost.
#include "session/layers/steps.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>

#include "functional/session.h"

namespace caisson::test {
namespace {

int steps_seen = 0;
int kill_at = 0;

void countOrDie(const char*) {
  if (++steps_seen == kill_at) ::kill(::getpid(), SIGKILL);
}

class SessionCrash : public SessionTest {
 protected:
  /// Does `work` in a process of its own, which dies at its n-th step. Whether it died.
  bool dieAt(int n, const std::function<void(SessionStore&)>& work) {
    const pid_t child = ::fork();
    if (child == 0) {
      steps_seen = 0;
      kill_at = n;
      session::step_observer = countOrDie;
      auto own = SessionStore::open();
      if (own) work(*own);
      ::_exit(0);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  }
  /// Kills at the first step, the second ... until the work gets through; `check` looks at what is left each time.
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
};

TEST_F(SessionCrash, CreateLeavesASessionOrNothing) {
  const SessionOptions wish = options();
  atEveryStep(
      [&](SessionStore& own) { (void)own.create(wish); },
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

TEST_F(SessionCrash, CommitIsFinishedByTheNextOne) {
  for (int i = 0; i < 4; ++i) workspace.write("f" + std::to_string(i), "old\n");
  Session session = create();
  output(session, "for i in 0 1 2 3; do echo new > f$i; done; echo added > g; rm f3");
  atEveryStep(
      [&](SessionStore& own) {
        auto same = own.find(session.id());
        if (same) (void)same->commit();
      },
      [&] {
        for (int i = 0; i < 3; ++i) {
          const std::string text = readFile(workspace / ("f" + std::to_string(i)));
          EXPECT_TRUE(text == "old\n" || text == "new\n") << text;
        }
      },
      3);
  auto found = store->find(session.id());
  ASSERT_TRUE(found);
  const auto report = found->commit();
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_TRUE(report->complete());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(readFile(workspace / ("f" + std::to_string(i))), "new\n");
  EXPECT_FALSE(exists(workspace / "f3"));
  EXPECT_EQ(readFile(workspace / "g"), "added\n");
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
                EXPECT_EQ(runProgram({"ls", "-A", home_path + "/stores"}).out, "");
                Session next = create();
                output(next, "echo kept > f");
                id = next.id();
              },
              3);
}

}  // namespace
}  // namespace caisson::test
