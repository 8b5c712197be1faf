#include "host/probe.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <iterator>

#include "sys/root_dir.h"

namespace caisson::host {
namespace {

using sys::CgroupLayout, sys::CgroupProbe, sys::parseCgroups;

std::string readText(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Probe, ParsesKernelReleases) {
  EXPECT_TRUE(parseKernelRelease("6.1.0-18-amd64").atLeast(6, 1));
  EXPECT_FALSE(parseKernelRelease("5.10.0-28-arm64").atLeast(6, 1));
  EXPECT_TRUE(parseKernelRelease("7.3-rc2").atLeast(6, 12));
  EXPECT_FALSE(parseKernelRelease("6.9").atLeast(6, 12));
  EXPECT_EQ(parseKernelRelease("strange").major, 0);
  EXPECT_EQ(parseKernelRelease("").major, 0);
}

TEST(Probe, UnderstandsAPureV2Layout) {
  const CgroupProbe probe = parseCgroups(
      "25 1 0:22 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
      "26 1 8:1 / / rw - ext4 /dev/sda1 rw\n",
      "0::/user.slice/user-1000.slice/session-2.scope\n");
  EXPECT_EQ(probe.layout, CgroupLayout::v2);
  ASSERT_EQ(probe.hierarchies.size(), 1U);
  EXPECT_EQ(probe.hierarchies[0].directory, "/sys/fs/cgroup/user.slice/user-1000.slice/session-2.scope");
}

TEST(Probe, UnderstandsV1AndHybridLayouts) {
  const std::string v1 =
      "30 1 0:25 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
      "31 1 0:26 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
      "32 1 0:27 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n";
  const std::string own = "5:memory:/a b\n4:cpu,cpuacct:/\n1:name=systemd:/\n0::/\n";
  const CgroupProbe probe = parseCgroups(v1, own);
  EXPECT_EQ(probe.layout, CgroupLayout::v1);
  ASSERT_NE(probe.find("memory"), nullptr);
  EXPECT_EQ(probe.find("memory")->directory, "/sys/fs/cgroup/memory/a b");
  ASSERT_NE(probe.find("cpu"), nullptr);
  EXPECT_EQ(probe.find("cpu")->directory, "/sys/fs/cgroup/cpu,cpuacct");
  EXPECT_EQ(probe.find("pids"), nullptr);
  EXPECT_EQ(parseCgroups(v1 + "33 1 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n", own).layout,
            CgroupLayout::hybrid);
}

TEST(Probe, CgroupPathIsRelativeToTheRootOfItsMount) {
  const std::string mounts = "25 1 0:22 /docker/abc /sys/fs/cgroup\\040x ro - cgroup2 cgroup rw\n";
  EXPECT_EQ(parseCgroups(mounts, "0::/docker/abc/inner\n").hierarchies[0].directory, "/sys/fs/cgroup x/inner");
  EXPECT_EQ(parseCgroups(mounts, "0::/docker/abcdef\n").hierarchies[0].directory, "");
  EXPECT_EQ(parseCgroups(mounts, "0::/../outside\n").hierarchies[0].directory, "");
  EXPECT_EQ(parseCgroups("", "").layout, CgroupLayout::none);
}

TEST(Probe, ProbesThisHost) {
  const Probes probes = probeHost("/tmp/no/such/directory/yet");
  EXPECT_GT(probes.kernel.major, 0) << probes.kernel.release;
  EXPECT_TRUE(probes.namespaces.user.tried());
  EXPECT_TRUE(probes.seccomp.filter.tried());
  EXPECT_EQ(probes.home.path, "/tmp");
  EXPECT_GT(probes.home.free_bytes, 0U);
  EXPECT_EQ(probes.landlock.ok(), probes.landlock_abi > 0);
  if (probes.namespaces.id_map.ok()) {
    EXPECT_TRUE(probes.namespaces.mount.tried());
    EXPECT_TRUE(probes.namespaces.network.tried());
    EXPECT_TRUE(probes.namespaces.time.tried());
  }
}

TEST(Probe, LeavesNothingBehind) {
  const std::string mounts_before = readText("/proc/self/mountinfo");
  const CgroupProbe cgroups = probeCgroups();
  (void)probeHost("/tmp");
  EXPECT_EQ(readText("/proc/self/mountinfo"), mounts_before);
  errno = 0;
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
  EXPECT_EQ(errno, ECHILD);
  for (const sys::CgroupHierarchy& hierarchy : cgroups.hierarchies) {
    auto directory = sys::RootDir::open(hierarchy.directory);
    if (!directory) continue;
    const auto entries = directory->list("");
    if (!entries) continue;
    for (const sys::DirectoryEntry& entry : *entries) EXPECT_FALSE(entry.name.starts_with(".caisson-")) << entry.name;
  }
}

}  // namespace
}  // namespace caisson::host
