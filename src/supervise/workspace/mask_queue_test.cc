#include "supervise/workspace/mask_queue.h"

#include <gtest/gtest.h>

namespace caisson::supervise {
namespace {

TEST(MaskQueue, ManyNamesInOneDirectoryDoNotDelayOthers) {
  MaskQueue queue;
  for (int i = 0; i < 1000; ++i) queue.push("many/" + std::to_string(i), false);
  queue.push("other/.env", false);
  EXPECT_EQ(queue.pop(2), (std::vector<std::string>{"other/.env", "many/0"}));
  queue.push(".env", false);
  EXPECT_EQ(queue.pop(3), (std::vector<std::string>{".env", "many/1", "many/2"}));
}

TEST(MaskQueue, DirectoriesThatTheSandboxWritesComeLast) {
  MaskQueue queue;
  for (int i = 0; i < 3; ++i) queue.push("written" + std::to_string(i) + "/.env", true);
  queue.push("a", false);
  queue.push("b", false);
  EXPECT_TRUE(queue.hasFirst());
  EXPECT_EQ(queue.pop(2), (std::vector<std::string>{"a", "b"}));
  EXPECT_FALSE(queue.hasFirst());
  EXPECT_EQ(queue.pop(10).size(), 3U);
  EXPECT_TRUE(queue.empty());
}

TEST(MaskQueue, HoldsEachNameOnce) {
  MaskQueue queue;
  queue.push("a/.env", false);
  queue.push("a/.env", true);
  EXPECT_TRUE(queue.contains("a/.env"));
  EXPECT_EQ(queue.pop(10).size(), 1U);
  EXPECT_FALSE(queue.contains("a/.env"));
}

}  // namespace
}  // namespace caisson::supervise
