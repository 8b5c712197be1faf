#include "broker/confine.h"

#include <gtest/gtest.h>

#include "plan/own_filter_testing.h"

namespace caisson::broker {
namespace {

class BrokerFilter : public testing::TestWithParam<Architecture> {};
INSTANTIATE_TEST_SUITE_P(, BrokerFilter, testing::ValuesIn(kArchitectures),
                         [](const auto& each) { return std::string(architectureName(each.param)); });

TEST_P(BrokerFilter, AllowsEveryCallThatTheLibraryMayMakeForTheSameFunction) {
  const plan::SyscallFilter filter = brokerFilter(1, GetParam());
  EXPECT_EQ(plan::missingSiblings(filter), std::vector<std::string>());
  EXPECT_EQ(plan::unnoticedRemovals(filter), std::vector<std::string>());
}

}  // namespace
}  // namespace caisson::broker
