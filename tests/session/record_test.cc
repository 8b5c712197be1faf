// A session's command is recorded while it is set up: it never runs before that, and not at all if recording fails.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <thread>

#include "functional/session.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

using SessionRecord = SessionTest;

TEST_F(SessionRecord, NoCommandStartsWhileItsRecordIsNotWritten) {
  CONFORMS("R-AUDIT-2");
  Session session = create();
  ASSERT_EQ(output(session, "echo warm"), "warm\n");
  const int head = ::open((home_path + "/audit/head").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(head, 0);
  bool locked = false;
  for (int i = 0; i < 500 && !locked; ++i) {
    locked = ::flock(head, LOCK_EX | LOCK_NB) == 0;
    if (!locked) ::usleep(10'000);
  }
  ASSERT_TRUE(locked);
  auto other = store->find(session.id());
  ASSERT_TRUE(other);
  Result<RunResult> result = RunResult{};
  std::thread asking([&] { result = other->exec({.command = {"sh", "-c", "cat > mark"}, .input = "fed"}); });
  ::usleep(400'000);
  const auto early = session.read("mark");
  EXPECT_FALSE(early) << "the command ran before it was on record";
  // Writing the record may take long; the session continues meanwhile.
  EXPECT_TRUE(session.write("beside", "written"));
  const auto running = session.processes();
  EXPECT_TRUE(running) << running.error().message();
  ::close(head);
  asking.join();
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_EQ(exitStatus(*result), 0) << result->err.data;
  EXPECT_EQ(output(session, "cat mark beside"), "fedwritten") << "nothing of its input was lost";
}

TEST_F(SessionRecord, CommandThatCannotBeRecordedDoesNotRun) {
  CONFORMS("R-AUDIT-2");
  Session session = create();
  const std::string head = home_path + "/audit/head";
  ASSERT_EQ(::rename(head.c_str(), (head + "-away").c_str()), 0);
  ASSERT_EQ(::mkdir(head.c_str(), 0700), 0);
  auto other = store->find(session.id());
  ASSERT_TRUE(other);
  const auto refused = other->exec({.command = {"touch", "mark"}});
  ASSERT_FALSE(refused) << "it ran unseen";
  EXPECT_NE(refused.error().message().find("audit/head"), std::string::npos) << refused.error().message();
  EXPECT_FALSE(session.read("mark"));
  ASSERT_EQ(::rmdir(head.c_str()), 0);
  ASSERT_EQ(::rename((head + "-away").c_str(), head.c_str()), 0);
  EXPECT_EQ(output(*other, "echo again; ls"), "again\n") << "the same handle works with a new connection";
}

}  // namespace
}  // namespace caisson::test
