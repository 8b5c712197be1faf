// Limits of a whole session: enforced with and without a waiting client.
#include <chrono>
#include <thread>

#include "functional/session.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

class SessionLimits : public SessionTest {
 protected:
  Session createWith(const std::vector<std::pair<std::string, std::string>>& keys) {
    SessionOptions wanted = options();
    for (const auto& [key, value] : keys) {
      const auto set = wanted.policy.set(key, value);
      EXPECT_TRUE(set) << set.error().message();
    }
    auto made = store->create(wanted);
    EXPECT_TRUE(made) << made.error().message();
    return *std::move(made);
  }
  static void expectLimit(const RunResult& result, Limit limit) {
    EXPECT_EQ(name(result.outcome), name(OutcomeKind::limit)) << result.err.data;
    EXPECT_EQ(name(result.limit), name(limit));
  }
  /// Bytes on disk below the session's own store.
  [[nodiscard]] long storedKib() const { return std::stol(runProgram({"du", "-sk", home_path + "/stores"}).out); }
  /// Waits until the output of a background command is `text`.
  static bool prints(Session& session, std::uint32_t command, std::string_view text) {
    return eventually(
        [&] {
          const auto piece = session.logs(command, OutputStreamKind::out, 0, 100);
          return piece && piece->data == text;
        },
        seconds(20));
  }
  /// Waits until only pid 1 is left in the session.
  static bool becomesQuiet(Session& session) {
    const auto end = Clock::now() + seconds(20);
    while (Clock::now() < end) {
      if (session.checkpoint()) return true;  // fails while anything runs
      std::this_thread::sleep_for(milliseconds(50));
    }
    return false;
  }
};

constexpr const char* kFillDisk =
    "i=0; while :; do head -c 1000000 /dev/zero > fill$i || exit 1; i=$((i+1)); [ $i -lt 2000 ] || exit 0; done";

TEST_F(SessionLimits, DiskEndsTheCommandThatFillsIt) {
  CONFORMS("R-FILES-16");
  Session session = createWith({{"filesystem.max_total_size", "30M"}});
  expectLimit(exec(session, kFillDisk), Limit::disk);
  EXPECT_LT(storedKib(), 400 * 1024) << "what is written between two looks";
  EXPECT_EQ(output(session, "rm -f fill*; echo room"), "room\n") << "the session lives on, and can be cleaned";
  EXPECT_EQ(output(session, "head -c 1000000 /dev/zero > a; ls"), "a\n");
}

TEST_F(SessionLimits, CommandsOverTheDiskLimitStoreNothingMore) {
  Session session = createWith({{"filesystem.max_total_size", "30M"}});
  expectLimit(exec(session, kFillDisk), Limit::disk);
  const long full = storedKib();
  for (int i = 0; i < 12; ++i) {
    const auto more = session.exec({.command = {"sh", "-c", "head -c 30000000 /dev/zero > more" + std::to_string(i)}});
    ASSERT_TRUE(more) << more.error().message();
    EXPECT_NE(exitStatus(*more), 0) << i;
    ASSERT_FALSE(more->notices.empty());
    EXPECT_NE(more->notices.back().find("over its disk limit"), std::string::npos) << more->notices.back();
  }
  EXPECT_LT(storedKib(), full + 1024);
  EXPECT_EQ(output(session, "rm -f fill* more*; echo room"), "room\n");
  EXPECT_EQ(output(session, "head -c 1000000 /dev/zero > a; ls"), "a\n");
}

/// Deleted files stay in a frozen layer for a rollback for some time: they must not use up the quota.
TEST_F(SessionLimits, DeletedFilesMakeRoomForNewOnes) {
  Session session = createWith({{"filesystem.max_total_size", "30M"}});
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(output(session, "head -c 20000000 /dev/zero > big; sleep 0.3; echo written"), "written\n") << round;
    EXPECT_EQ(output(session, "rm big; head -c 20000000 /dev/zero > new; sleep 0.3; rm new; echo again"), "again\n")
        << round;
  }
  expectLimit(exec(session, "for i in 1 2 3 4; do head -c 9000000 /dev/zero > f$i; done; sleep 60"), Limit::disk);
}

TEST_F(SessionLimits, DiskCountsCheckpointsAndWhatIsWrittenFromOutside) {
  Session session = createWith({{"filesystem.max_total_size", "30M"}});
  const std::string megabytes(12'000'000, 'x');
  ASSERT_TRUE(session.write("a", megabytes));
  ASSERT_TRUE(session.checkpoint("first"));
  ASSERT_TRUE(session.write("b", megabytes));
  const auto third = session.write("c", megabytes);
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().sys_errno, EDQUOT) << third.error().message();
  expectLimit(exec(session, "for i in 1 2 3; do head -c 9000000 /dev/zero > d$i; done; sleep 60"), Limit::disk);
}

TEST_F(SessionLimits, DiskEndsAnUnattendedBackgroundCommand) {
  Session session = createWith({{"filesystem.max_total_size", "30M"}});
  const auto filler = session.start({.command = {"sh", "-c", kFillDisk}});
  ASSERT_TRUE(filler) << filler.error().message();
  const auto info = session.wait(*filler, 30);
  ASSERT_TRUE(info);
  ASSERT_FALSE(info->running);
  EXPECT_EQ(name(info->outcome), name(OutcomeKind::limit));
  EXPECT_EQ(name(info->limit), name(Limit::disk));
  EXPECT_LT(storedKib(), 400 * 1024);
}

TEST_F(SessionLimits, DiskEndsWhatACommandLeftBehind) {
  Session session = createWith({{"filesystem.max_total_size", "30M"}});
  output(session, std::string("setsid sh -c '") + kFillDisk + "' > /dev/null 2>&1 &");
  EXPECT_TRUE(becomesQuiet(session)) << "the supervisor watches what still runs";
  EXPECT_LT(storedKib(), 400 * 1024);
}

TEST_F(SessionLimits, OnDiskRatesAreEnforcedOrRefused) {
  CONFORMS("R-LIMIT-5");
  SessionOptions wanted = options();
  ASSERT_TRUE(wanted.policy.set("resources.io_write_bytes_per_second", "2M"));
  auto made = store->create(wanted);
  if (!made) {
    EXPECT_NE(made.error().object.find("resources.io_"), std::string::npos) << made.error().message();
    return;
  }
  const auto begin = Clock::now();
  const RunResult result = exec(*made, "dd if=/dev/zero of=file bs=1M count=4 oflag=direct status=none");
  ASSERT_EQ(result.exit_code, 0) << result.err.data;
  EXPECT_GE(Clock::now() - begin, milliseconds(1200)) << "4 MiB at 2 MiB a second";
}

TEST_F(SessionLimits, MemoryAppliesToTheWholeSession) {
  Session session = createWith({{"resources.memory", "100M"}});
  // Sixty megabytes each: one fits, two do not.
  const auto hold = [](const std::string& time) {
    return "exec python3 -c 'import time; held = b\"x\" * 60_000_000; print(\"held\", flush=True); time.sleep(" + time +
           ")'";
  };
  EXPECT_EQ(exitStatus(exec(session, hold("0.3"))), 0);
  const auto first = session.start({.command = {"sh", "-c", hold("60")}});
  ASSERT_TRUE(first) << first.error().message();
  ASSERT_TRUE(prints(session, *first, "held\n"));
  ASSERT_TRUE(session.status(*first)->running);
  const auto second = session.start({.command = {"sh", "-c", hold("60")}});
  ASSERT_TRUE(second) << second.error().message();
  const auto killed = [&](std::uint32_t command) {
    const auto info = session.status(command);
    return info && !info->running && info->outcome != OutcomeKind::exited;
  };
  EXPECT_TRUE(eventually([&] { return killed(*first) || killed(*second); }, seconds(20)))
      << "both together exceed the limit";
  EXPECT_EQ(output(session, "echo alive"), "alive\n");
}

TEST_F(SessionLimits, CpuTimeAppliesToACommandAndItsChildren) {
  Session session = createWith({{"resources.cpu_seconds", "1"}});
  const auto begin = Clock::now();
  // Four at once, none of which uses a second by itself.
  expectLimit(exec(session, "for i in 1 2 3 4; do sh -c 'while :; do :; done' & done; wait"), Limit::cpu);
  EXPECT_LT(Clock::now() - begin, seconds(20));
  const auto spin = session.start({.command = {"sh", "-c", "for i in 1 2 3; do (while :; do :; done) & done; wait"}});
  ASSERT_TRUE(spin);
  const auto info = session.wait(*spin, 20);
  ASSERT_TRUE(info);
  EXPECT_EQ(name(info->limit), name(Limit::cpu));
  EXPECT_EQ(output(session, "i=0; while [ $i -lt 10000 ]; do i=$((i+1)); done; echo fresh"), "fresh\n");
}

TEST_F(SessionLimits, ProcessesApplyToTheWholeSession) {
  Session session = createWith({{"process.max_processes", "20"}});
  const auto first =
      session.start({.command = {"sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 60 & done; echo ready; wait"}});
  ASSERT_TRUE(first) << first.error().message();
  ASSERT_TRUE(prints(session, *first, "ready\n"));
  const RunResult more = exec(session, "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do sleep 60 & done; echo made");
  EXPECT_EQ(more.out.data, "") << "ten run already";
  expectLimit(more, Limit::processes);
}

TEST_F(SessionLimits, ProcessesAndThreadsAreCountedApart) {
  Session session = createWith({{"process.max_processes", "8"}, {"resources.threads", "4"}});
  // A left-behind process counts, and so do its threads.
  const auto left =
      session.start({.command = {"python3", "-c",
                                 "import threading, time\n"
                                 "for i in range(3): threading.Thread(target=time.sleep, args=(60,)).start()\n"
                                 "print('ready', flush=True)\n"}});
  ASSERT_TRUE(left);
  ASSERT_TRUE(prints(session, *left, "ready\n"));
  const RunResult more = exec(session,
                              "exec python3 -c 'import threading, time, os\n"
                              "n = 0\n"
                              "try:\n"
                              "  while n < 40: threading.Thread(target=time.sleep, args=(60,)).start(); n += 1\n"
                              "except RuntimeError: pass\n"
                              "print(n, flush=True); os._exit(0)'");
  EXPECT_EQ(more.out.data, "1\n") << "three of four threads run already";
  ASSERT_EQ(more.denials.size(), 1U);
  EXPECT_EQ(more.denials[0].rule, "resources.threads");
}

}  // namespace
}  // namespace caisson::test
