#include "egress/confine.h"

#include <gtest/gtest.h>

#include "plan/own_filter_testing.h"

namespace caisson::egress {
namespace {

class EgressFilter : public testing::TestWithParam<Architecture> {};
INSTANTIATE_TEST_SUITE_P(, EgressFilter, testing::ValuesIn(kArchitectures),
                         [](const auto& each) { return std::string(architectureName(each.param)); });

TEST_P(EgressFilter, AllowsEveryCallThatTheLibraryMayMakeForTheSameFunction) {
  const plan::SyscallFilter filter = egressFilter(true, 1, GetParam());
  EXPECT_EQ(plan::missingSiblings(filter), std::vector<std::string>());
  EXPECT_EQ(plan::unnoticedRemovals(filter), std::vector<std::string>());
}

}  // namespace
}  // namespace caisson::egress
