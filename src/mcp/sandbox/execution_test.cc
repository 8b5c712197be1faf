// How much output of commands is kept.
#include "mcp/sandbox/execution.h"

#include <gtest/gtest.h>

namespace caisson::mcp {
namespace {

/// Performs a command that writes so many bytes to standard output.
std::shared_ptr<Execution> perform(const std::shared_ptr<OutputBudget>& budget, std::size_t bytes) {
  auto execution = std::make_shared<Execution>("x", "command", budget);
  execution->perform({}, [&](const ExecRequest& request) -> Result<RunResult> {
    const std::string piece(1000, 'a');
    for (std::size_t left = bytes; left > 0; left -= std::min(left, piece.size()))
      request.on_output(OutputStreamKind::out, std::string_view(piece).substr(0, left));
    return RunResult{};
  });
  budget->noteEnd(execution);
  return execution;
}

TEST(McpExecution, OldestOutputIsDroppedWhenTheBudgetIsUsedUp) {
  const auto budget = std::make_shared<OutputBudget>(10'000);
  const auto first = perform(budget, 4000);
  const auto second = perform(budget, 4000);
  EXPECT_FALSE(first->view().output_gone);
  const auto third = perform(budget, 4000);
  EXPECT_TRUE(first->view().output_gone);
  EXPECT_EQ(first->view().out, "");
  EXPECT_EQ(first->view().out_dropped, 4000U);
  EXPECT_LT(first->heldBytes(), 100U);
  EXPECT_FALSE(second->view().output_gone);
  EXPECT_EQ(second->view().out.size(), 4000U);
  EXPECT_EQ(third->view().out.size(), 4000U);
  EXPECT_EQ(budget->taken(), 8000U);
}

TEST(McpExecution, OneCommandKeepsNoMoreThanTheBudget) {
  const auto budget = std::make_shared<OutputBudget>(10'000);
  const auto before = perform(budget, 1000);
  const auto large = perform(budget, 25'000);
  EXPECT_TRUE(before->view().output_gone);
  EXPECT_EQ(large->view().out.size(), 10'000U);
  EXPECT_EQ(large->view().out_dropped, 15'000U);
  EXPECT_FALSE(large->view().output_gone) << "its beginning is kept";
}

TEST(McpExecution, RemovedCommandGivesItsBytesBack) {
  const auto budget = std::make_shared<OutputBudget>(10'000);
  perform(budget, 8000).reset();
  EXPECT_EQ(budget->taken(), 0U);
  const auto next = perform(budget, 8000);
  EXPECT_EQ(next->view().out.size(), 8000U);
}

TEST(McpExecution, OutputIsKeptInAStringOfItsSize) {
  const auto budget = std::make_shared<OutputBudget>(std::size_t{64} << 20U);
  const auto large = perform(budget, std::size_t{5} << 20U);
  EXPECT_EQ(large->view().out.size(), std::size_t{4} << 20U);
  EXPECT_EQ(large->view().out_dropped, std::size_t{1} << 20U);
  EXPECT_EQ(budget->taken(), std::size_t{4} << 20U);
  EXPECT_LT(large->heldBytes(), (std::size_t{4} << 20U) + 4096);
}

}  // namespace
}  // namespace caisson::mcp
