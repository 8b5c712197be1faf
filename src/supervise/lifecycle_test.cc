#include "supervise/lifecycle.h"
#include "support/conforms.h"

#include <gtest/gtest.h>

namespace caisson::supervise {
namespace {

std::string statesOf(const std::vector<StateChange>& steps) {
  std::string text;
  double before = 0;
  for (const StateChange& step : steps) {
    EXPECT_GE(step.at_ms, before);
    before = step.at_ms;
    text += (text.empty() ? "" : " ") + std::string(name(step.state));
  }
  return text;
}

}  // namespace

TEST(Lifecycle, GoesThroughEveryStateOnce) {
  CONFORMS("R-AUDIT-16");
  std::vector<StateChange> steps;
  std::vector<StateChange> received;
  Lifecycle life(steps, Lifecycle::Clock::now());
  life.setListener([&](const StateChange& step) { received.push_back(step); });
  life.reach(RunState::created);
  life.reach(RunState::initialized);
  life.reach(RunState::initialized);
  life.reach(RunState::running);
  life.reach(RunState::monitoring);
  RunResult result;
  result.outcome = OutcomeKind::exited;
  life.end(result);
  life.reach(RunState::cleanup);
  EXPECT_EQ(statesOf(steps), "Created Initialized Running Monitoring Completed Cleanup");
  EXPECT_EQ(statesOf(received), statesOf(steps));
}

TEST(Lifecycle, NamesATimeOutAndAnError) {
  CONFORMS("R-AUDIT-16");
  RunResult result;
  result.outcome = OutcomeKind::limit;
  result.limit = Limit::time;
  std::vector<StateChange> steps;
  Lifecycle slow(steps, Lifecycle::Clock::now());
  slow.reach(RunState::running);
  slow.end(result);
  slow.reach(RunState::cleanup);
  EXPECT_EQ(statesOf(steps), "Created Initialized Running Monitoring Timeout Cleanup");

  result.outcome = OutcomeKind::setup_failed;
  result.limit = Limit::none;
  steps.clear();
  Lifecycle broken(steps, Lifecycle::Clock::now());
  broken.reach(RunState::created);
  broken.end(result);
  broken.reach(RunState::cleanup);
  EXPECT_EQ(statesOf(steps), "Created Error Cleanup");
}

}  // namespace caisson::supervise
