#include "host/root_ids.h"

#include <gtest/gtest.h>

namespace caisson::host {
namespace {

constexpr std::uint64_t kAll = 4294967295;

RootFacts rootWith(std::vector<MappedIds> map) {
  return {.uid = 0, .uids = map, .gids = map, .set_ids = true, .map_mounts = true, .map_zero = true, .random = 7};
}

plan::HostFacts observed(const RootFacts& root) {
  plan::HostFacts facts;
  observeRoot(root, facts);
  return facts;
}

TEST(IdMap, IsParsedLineByLine) {
  const auto map = parseIdMap("         0       1000          1\n         1     100000      65536\nbroken 1\n");
  ASSERT_EQ(map.size(), 2U);
  EXPECT_EQ(map[0].outside, 1000U);
  EXPECT_EQ(map[1].inside, 1U);
  EXPECT_EQ(map[1].count, 65536U);
}

TEST(RootIds, OfTheHostsRootAreHighAndOwnedMountsNeedSysAdmin) {
  RootFacts root = rootWith({{0, 0, kAll}});
  plan::HostFacts facts = observed(root);
  EXPECT_TRUE(facts.may_map_other_ids);
  EXPECT_TRUE(facts.may_map_mounts);
  EXPECT_EQ(facts.payload_id, 0x70000007U);
  EXPECT_EQ(facts.why_no_other_id, "");
  root.map_mounts = false;  // a container's root
  facts = observed(root);
  EXPECT_TRUE(facts.may_map_other_ids);
  EXPECT_FALSE(facts.may_map_mounts);
  EXPECT_EQ(facts.payload_id, 0x70000007U);
}

TEST(RootIds, RootThatIsAnotherIdOfTheHostIsAnOrdinaryUser) {
  for (const auto& map : {std::vector<MappedIds>{{0, 1000, 1}, {1, 100000, 65536}},
                          std::vector<MappedIds>{{0, 100000, 65536}}, std::vector<MappedIds>{{0, 1000, 1}}}) {
    const plan::HostFacts facts = observed(rootWith(map));
    EXPECT_FALSE(facts.may_map_other_ids);
    EXPECT_EQ(facts.why_no_other_id, "");
  }
}

TEST(RootIds, AreInASmallMap) {
  for (const std::uint64_t count : {4096UL, 65536UL}) {
    const plan::HostFacts facts = observed(rootWith({{0, 0, count}}));
    EXPECT_TRUE(facts.may_map_other_ids);
    EXPECT_GE(facts.payload_id, count / 2);
    EXPECT_LT(facts.payload_id + facts.broker_offset, count);
    EXPECT_NE(facts.broker_offset, 0U);
  }
  RootFacts uneven = rootWith({{0, 0, 65536}});
  uneven.gids = {{0, 0, 1}};
  EXPECT_FALSE(observed(uneven).may_map_other_ids);
}

TEST(RootIds, MissingFromTheMapAreReported) {
  const plan::HostFacts facts = observed(rootWith({{0, 0, 1}}));  // `unshare -r` by root
  EXPECT_FALSE(facts.may_map_other_ids);
  EXPECT_NE(facts.why_no_other_id.find("id map"), std::string::npos);
  EXPECT_NE(facts.why_no_other_id.find("root on the host"), std::string::npos);
}

TEST(RootIds, NeedTheRightToChangeIds) {
  RootFacts root = rootWith({{0, 0, kAll}});
  root.set_ids = false;
  EXPECT_NE(observed(root).why_no_other_id.find("CAP_SETUID"), std::string::npos);
  root.uids = root.gids = {{0, 1000, 1}};
  EXPECT_EQ(observed(root).why_no_other_id, "");
  root.map_zero = false;
  EXPECT_NE(observed(root).why_no_other_id.find("CAP_SETFCAP"), std::string::npos);
  root.uids.clear();  // /proc is not readable: assume the worst
  EXPECT_NE(observed(root).why_no_other_id.find("root on the host"), std::string::npos);
}

TEST(RootIds, WithoutTheRightToMapZeroUseOtherIdsOfTheMap) {
  RootFacts root = rootWith({{0, 100000, 65536}});
  root.map_zero = false;
  const plan::HostFacts facts = observed(root);
  EXPECT_TRUE(facts.may_map_other_ids);
  EXPECT_FALSE(facts.may_map_mounts);
}

TEST(RootIds, AreNotUsedByOtherUsers) {
  RootFacts root = rootWith({});
  root.uid = 1000;
  const plan::HostFacts facts = observed(root);
  EXPECT_FALSE(facts.may_map_other_ids);
  EXPECT_EQ(facts.why_no_other_id, "");
}

}  // namespace
}  // namespace caisson::host
