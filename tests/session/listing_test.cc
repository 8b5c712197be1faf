// Sessions are used while other processes list them.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "functional/session.h"

namespace caisson::test {
namespace {

/// Processes that list the sessions again and again.
class Listers {
 public:
  Listers() {
    for (pid_t& pid : pids_) {
      pid = ::fork();
      if (pid == 0) listForever();
    }
  }
  ~Listers() {
    for (const pid_t pid : pids_) {
      if (pid <= 0) continue;
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
  }
  Listers(const Listers&) = delete;
  Listers& operator=(const Listers&) = delete;

 private:
  [[noreturn]] static void listForever() {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    auto own = SessionStore::open(std::getenv("CAISSON_BIN"));
    while (own && own->list()) {
    }
    ::_exit(1);
  }

  pid_t pids_[3] = {-1, -1, -1};
};

using SessionListing = SessionTest;

TEST_F(SessionListing, DoesNotDisturbStarts) {
  const Listers listers;
  for (int round = 0; round < 40 && !HasFailure(); ++round) {
    auto session = store->create(options());
    ASSERT_TRUE(session) << session.error().message();
    EXPECT_EQ(output(*session, "echo started"), "started\n");
    EXPECT_TRUE(session->destroy());
  }
}

TEST_F(SessionListing, DoesNotDisturbTheLandlockTier) {
  SessionOptions wanted = options();
  ASSERT_TRUE(wanted.policy.set("isolation.tier", "landlock"));
  auto session = store->create(wanted);
  ASSERT_TRUE(session) << session.error().message();
  const Listers listers;
  for (int round = 0; round < 40 && !HasFailure(); ++round) {
    EXPECT_EQ(output(*session, "echo " + std::to_string(round) + " > file; echo ran"), "ran\n");
    const auto report = session->commit();
    ASSERT_TRUE(report) << report.error().message();
    const auto rest = session->diff();
    ASSERT_TRUE(rest) << rest.error().message();
    EXPECT_TRUE(rest->empty()) << "in use without a command";
  }
}

}  // namespace
}  // namespace caisson::test
