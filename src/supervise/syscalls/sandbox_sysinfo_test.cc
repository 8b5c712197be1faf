#include "supervise/syscalls/sandbox_sysinfo.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace caisson::supervise {
namespace {

TEST(SandboxSysinfo, OffsetOfTimeNamespaceIsRead) {
  EXPECT_EQ(parseBootOffset("monotonic        -100         0\nboottime         -4711         0\n"), -4711);
  EXPECT_EQ(parseBootOffset("monotonic 0 0\nboottime 0 0\n"), 0);
  for (const char* text : {"", "boottime", "boottime x", "monotonic -5 0"}) EXPECT_EQ(parseBootOffset(text), 0) << text;
}

TEST(SandboxSysinfo, HasFiguresOfPlan) {
  plan::Plan plan;
  plan.shown_memory = 512ULL << 20;
  const struct sysinfo shown = sandboxSysinfo(plan, ::getpid());
  EXPECT_EQ(shown.totalram * shown.mem_unit, 512ULL << 20);
  EXPECT_EQ(shown.loads[0], 0U);
  EXPECT_EQ(shown.totalswap, 0U);
}

}  // namespace
}  // namespace caisson::supervise
