#include "supervise/syscalls/process_log.h"
#include "support/conforms.h"

#include <gtest/gtest.h>

namespace caisson::supervise {
namespace {

using How = ProcessLog::Kind::How;
using namespace std::chrono_literals;

struct Recorded {
  audit::EventType type;
  std::string fields;
};

class ProcessLogTest : public testing::Test {
 protected:
  std::vector<Recorded> events;
  ProcessLog log{[this](audit::EventType type, audit::Fields fields) { events.push_back({type, fields.json()}); }};
  ProcessLog::Clock::time_point now{1h};
};

TEST_F(ProcessLogTest, RecordsEveryPowerOfTwoAndTheTotals) {
  CONFORMS("R-AUDIT-7");
  for (int i = 0; i < 1000; ++i) log.add({How::exec, "/usr/bin/cc", "/usr/bin/make"}, 7, now);
  ASSERT_EQ(events.size(), 10U);
  EXPECT_EQ(events[0].fields, R"({"how":"exec","program":"/usr/bin/cc","parent":"/usr/bin/make","pid":7,"count":1})");
  EXPECT_NE(events.back().fields.find(R"("count":512)"), std::string::npos);
  log.finish();
  log.finish();
  ASSERT_EQ(events.size(), 11U);
  EXPECT_EQ(events.back().fields, R"({"how":"total","execs":1000,"signals":0,"recorded":10})");
}

TEST_F(ProcessLogTest, HasNoTotalsWhenEveryCallWasRecorded) {
  log.add({How::exec, "/bin/sh", "/bin/sh"}, 7, now);
  log.add({How::signal, "SIGTERM", "/bin/sh"}, 7, now);
  log.finish();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[1].type, audit::EventType::signal_sent);
}

/// A program that makes up a new name each time gets neither memory nor room in the log.
TEST_F(ProcessLogTest, IsBoundedInKindsAndRate) {
  CONFORMS("R-AUDIT-7");
  for (std::size_t i = 0; i < 10 * ProcessLog::kMaxKinds; ++i) {
    log.add({How::exec, "/tmp/" + std::to_string(i), "/bin/sh"}, 7, now);
  }
  ASSERT_EQ(events.size(), ProcessLog::kMaxEventsPerSecond + 1);
  EXPECT_EQ(events.back().fields, R"({"how":"overflow","kinds":256,"recorded":32})") << "what follows is not recorded";
  now += 1s;
  log.add({How::exec, "/tmp/0", "/bin/sh"}, 7, now);
  EXPECT_EQ(events.size(), ProcessLog::kMaxEventsPerSecond + 2);
  log.finish();
  EXPECT_NE(events.back().fields.find(R"("execs":2561)"), std::string::npos) << events.back().fields;
}

}  // namespace
}  // namespace caisson::supervise
