#include "sys/cgroup_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <limits>

namespace caisson::sys {
namespace {

TEST(CgroupFiles, ReadsTheOwnPathInEveryHierarchy) {
  const auto own = parseOwnCgroups("4:memory:/a:b\n2:cpu,cpuacct:/\n1:name=systemd:/x\n0::/user.slice\nrubbish\n");
  ASSERT_EQ(own.size(), 4U);
  EXPECT_EQ(own[0].controllers, "memory");
  EXPECT_EQ(own[0].path, "/a:b");
  EXPECT_EQ(own[1].controllers, "cpu,cpuacct");
  EXPECT_EQ(own[3].controllers, "");
  EXPECT_EQ(own[3].path, "/user.slice");
  EXPECT_TRUE(parseOwnCgroups("").empty());
}

TEST(CgroupFiles, DistinguishesControllers) {
  const CgroupControllers v2 = parseControllers("cpuset cpu io memory hugetlb pids rdma misc\n", ' ');
  EXPECT_EQ(v2, (CgroupControllers{true, true, true, true, true}));
  const CgroupControllers v1 = parseControllers("cpu,cpuacct", ',');
  EXPECT_EQ(v1, (CgroupControllers{.cpu = true}));
  EXPECT_TRUE(parseControllers("blkio", ',').io);
  EXPECT_FALSE(any(parseControllers("cpuacct", ',')));
  EXPECT_FALSE(any(parseControllers("", ' ')));
  EXPECT_EQ(namesOf(v2 - v1), "memory, pids, cpuset, io");
  EXPECT_EQ(v2 & v1, v1);
  EXPECT_EQ(v2 | v1, v2);
}

TEST(CgroupFiles, ReadsNumbersAndKeys) {
  EXPECT_EQ(parseCount("42\n"), 42U);
  EXPECT_EQ(parseCount("max\n"), std::nullopt);
  EXPECT_EQ(parseCount(""), std::nullopt);
  EXPECT_EQ(parseCount("-1"), std::nullopt);
  EXPECT_EQ(parseCount("12 34"), std::nullopt);
  const char* events = "low 0\nhigh 0\nmax 7\noom 2\noom_kill 3\noom_group_kill 1\n";
  EXPECT_EQ(parseKeyed(events, "oom"), 2U);
  EXPECT_EQ(parseKeyed(events, "oom_kill"), 3U);
  EXPECT_EQ(parseKeyed(events, "max"), 7U);
  EXPECT_EQ(parseKeyed(events, "ma"), std::nullopt);
  EXPECT_EQ(parseKeyed("", "max"), std::nullopt);
}

TEST(CgroupFiles, SumsDisksAndLeavesTotalsOut) {
  const char* v2 = "8:0 rbytes=100 wbytes=200 rios=1 wios=2 dbytes=0 dios=0\n254:0 rbytes=5 wbytes=6 rios=1 wios=1\n";
  EXPECT_EQ(sumIoStat(v2, "rbytes"), 105U);
  EXPECT_EQ(sumIoStat(v2, "wbytes"), 206U);
  EXPECT_EQ(sumIoStat("", "wbytes"), 0U);
  const char* v1 = "8:0 Read 4096\n8:0 Write 10\n8:0 Total 4106\n8:16 Read 4\nTotal 4110\n";
  EXPECT_EQ(sumBlkio(v1, "Read"), 4100U);
  EXPECT_EQ(sumBlkio(v1, "Write"), 10U);
}

TEST(CgroupFiles, WritesCpusAsTheKernelDoes) {
  EXPECT_EQ(formatCpuList({0, 1, 2, 5}), "0-2,5");
  EXPECT_EQ(formatCpuList({7, 3, 3, 4}), "3-4,7");
  EXPECT_EQ(formatCpuList({0}), "0");
  EXPECT_EQ(formatCpuList({}), "");
}

TEST(CgroupFiles, TurnsSharesIntoQuotas) {
  EXPECT_EQ(cpuQuota(1.0), 100'000U);
  EXPECT_EQ(cpuQuota(0.5), 50'000U);
  EXPECT_EQ(cpuQuota(2.5), 250'000U);
  EXPECT_EQ(cpuQuota(1e-9), 1000U);
  EXPECT_EQ(cpuQuota(0), std::nullopt);
  EXPECT_EQ(cpuQuota(-1), std::nullopt);
  EXPECT_EQ(cpuQuota(std::nan("")), std::nullopt);
  EXPECT_EQ(cpuQuota(std::numeric_limits<double>::infinity()), std::nullopt);
  EXPECT_EQ(cpuQuota(1e300), cpuQuota(65'536));
}

TEST(CgroupFiles, NamesContainTheirCreator) {
  const CgroupName name{.pid = 12, .start = 3456, .world = 0xabcdef0123456789, .id = "k3-x_y.z"};
  const std::string text = formatCgroupName(name);
  EXPECT_EQ(text, "caisson-12-3456-abcdef0123456789-k3-x_y.z");
  const auto back = parseCgroupName(text);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->pid, 12);
  EXPECT_EQ(back->start, 3456U);
  EXPECT_EQ(back->world, name.world);
  EXPECT_EQ(back->id, name.id);
  EXPECT_TRUE(parseCgroupName("caisson-1-2-3-supervisor"));
}

TEST(CgroupFiles, ForeignNamesAreRejected) {
  for (const char* text : {"", "caisson-", "caisson-x-1-2-id", "caisson-1-2-3", "caisson-1-2-3-", "caisson-0-1-2-id",
                           "caisson--5-1-2-id", "docker-1-2-3-id", "caisson-1-2-zz-id", "caisson-1-2-3-a/b",
                           "caisson-99999999999-2-3-id", "xcaisson-1-2-3-id"}) {
    EXPECT_FALSE(parseCgroupName(text)) << text;
  }
  EXPECT_FALSE(isCgroupId("../x"));
  EXPECT_FALSE(isCgroupId(""));
  EXPECT_FALSE(isCgroupId("supervisor"));
  EXPECT_FALSE(isCgroupId(std::string(129, 'a')));
}

TEST(CgroupFiles, ReadsTheStartOfAProcessWhateverItIsCalled) {
  const auto start = parseProcessStart(
      "77 (a) R 1 2 (b c) S 1 77 77 0 -1 4194560 100 0 0 0 1 2 0 0 20 0 1 0 123456 1000 200 1844 1 1 0\n");
  ASSERT_TRUE(start);
  EXPECT_EQ(start->pid, 77);
  EXPECT_EQ(start->ticks, 123'456U);
  EXPECT_FALSE(parseProcessStart(""));
  EXPECT_FALSE(parseProcessStart("77 (a)"));
  EXPECT_FALSE(parseProcessStart("77 (a) R 1 2"));
}

TEST(CgroupFiles, ReportsThatThisProcessIsAlive) {
  CgroupName self = ownCgroupName();
  EXPECT_EQ(self.pid, ::getpid());
  EXPECT_NE(self.start, 0U);
  EXPECT_NE(self.world, 0U);
  EXPECT_FALSE(makerIsGone(self));
  self.start += 1;  // the pid was reused by another process
  EXPECT_TRUE(makerIsGone(self));
  self.start = 0;  // unknown: assume that it is alive
  EXPECT_FALSE(makerIsGone(self));
}

}  // namespace
}  // namespace caisson::sys
