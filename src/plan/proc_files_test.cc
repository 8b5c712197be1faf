// Files of /proc from which programs size themselves show the sandbox's figures.
#include "plan/proc_files.h"

#include "plan/plan_testing.h"

namespace caisson::plan {
namespace {

using testing::planned;
using testing::profile;
using testing::someHost;

HostFacts largeHost() {
  HostFacts host = someHost();
  for (std::uint32_t cpu = 0; cpu < 16; ++cpu) host.cpus.push_back(cpu);
  host.memory = 64ULL << 30;
  host.processor = "processor\t: 3\nmodel name\t: Example\nsiblings\t: 16\ncore id\t\t: 9\n";
  host.kernel_release = "6.12.1";
  host.kernel_version = "#1 SMP";
  return host;
}

std::string contentOf(const std::vector<CoverFile>& files, const std::string& path) {
  for (const CoverFile& file : files) {
    if (file.target == path) return file.content;
  }
  ADD_FAILURE() << path << " is not covered";
  return "";
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(ProcFiles, MemoryIsTheLimit) {
  policy::Policy policy = profile();
  policy.resources.memory = 512ULL << 20;
  EXPECT_TRUE(contentOf(procFiles(policy, largeHost()), "/proc/meminfo").starts_with("MemTotal:         524288 kB\n"));
}

TEST(ProcFiles, MemoryIsTheMachinesWhereTheLimitIsHigher) {
  policy::Policy policy = profile();
  policy.resources.memory = 100ULL << 30;
  EXPECT_TRUE(contentOf(procFiles(policy, largeHost()), "/proc/meminfo").starts_with("MemTotal:       67108864 kB\n"));
}

TEST(ProcFiles, ProcessorsAreAsManyAsTheLimit) {
  policy::Policy policy = profile();
  policy.resources.cpus = 2.5;
  const auto files = procFiles(policy, largeHost());
  const std::string cpuinfo = contentOf(files, "/proc/cpuinfo");
  EXPECT_EQ(cpuinfo.substr(0, cpuinfo.find("\n\n")),
            "processor\t: 0\nmodel name\t: Example\nsiblings\t: 3\ncore id\t\t: 0");
  EXPECT_EQ(count(cpuinfo, "processor\t: "), 3U);
  EXPECT_EQ(count(cpuinfo, "core id\t\t: 2\n"), 1U);
  EXPECT_EQ(count(contentOf(files, "/proc/stat"), "\ncpu"), 3U);
  policy.resources.cpu_affinity = {4, 5};
  EXPECT_EQ(count(contentOf(procFiles(policy, largeHost()), "/proc/stat"), "\ncpu"), 2U);
}

TEST(ProcFiles, ProcessorsAreNumberedWhereTheHostShowsNone) {
  policy::Policy policy = profile();
  policy.resources.cpus = 2;
  HostFacts host = largeHost();
  host.processor.clear();
  EXPECT_EQ(contentOf(procFiles(policy, host), "/proc/cpuinfo"), "processor\t: 0\n\nprocessor\t: 1\n\n");
}

TEST(ProcFiles, ContainNothingOfTheHostsState) {
  for (const CoverFile& file : procFiles(profile(), largeHost())) {
    EXPECT_FALSE(file.content.empty()) << file.target;
  }
  EXPECT_EQ(contentOf(procFiles(profile(), largeHost()), "/proc/version"),
            "Linux version 6.12.1 (sandbox@sandbox) #1 SMP\n");
}

TEST(ProcFiles, OtherEntriesAreMasked) {
  for (const char* masked : {"/proc/kcore", "/proc/pressure/cpu", "/proc/diskstats", "/proc/fs/ext4"}) {
    EXPECT_TRUE(isMaskedProc(masked)) << masked;
  }
  for (const char* shown : {"/proc", "/proc/1/status", "/proc/self/maps", "/proc/meminfo", "/proc/net/tcp", "/tmp"}) {
    EXPECT_FALSE(isMaskedProc(shown)) << shown;
  }
}

TEST(ProcFiles, AreInEveryTreeWithAPrivateProc) {
  for (const policy::Level level : {policy::Level::full, policy::Level::process}) {
    policy::Policy policy = profile();
    policy.isolation.level = level;
    const Plan plan = planned(policy, largeHost());
    const int proc = testing::positionOf<MountProc>(plan, "/proc");
    ASSERT_GE(proc, 0);
    EXPECT_TRUE(std::get<MountProc>(plan.steps[static_cast<std::size_t>(proc)]).mask);
    const int settings = testing::positionOf<Bind>(plan, "/proc/sys");
    EXPECT_GT(settings, proc);
    EXPECT_GT(testing::positionOf<CoverFile>(plan, "/proc/meminfo"), proc);
    EXPECT_GT(testing::positionOf<CoverFile>(plan, "/proc/sys/kernel/random/boot_id"), settings);
  }
}

}  // namespace
}  // namespace caisson::plan
