// /proc shows the sandbox and nothing of the host; there is no /sys.
#include <sys/sysinfo.h>

#include <map>
#include <regex>

#include "security/attack.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

class MaskedProcFile : public testing::TestWithParam<const char*> {};

TEST_P(MaskedProcFile, RevealsNothing) {
  CONFORMS("R-FILES-3", "R-SYSCALL-14");
  const std::string path = std::string("/proc/") + GetParam();
  const Attack attack{.verb = {"read", path}};
  EXPECT_TRUE(contained(inSandbox(attack)));
  if (!mayWeaken()) return;  // not as root: reading /proc/kmsg would block
  const bool readable_here = access(path.c_str(), R_OK) == 0 && !readFile(path).empty();
  if (!readable_here) return;  // if the host's kernel shows nothing, there is nothing to hide
  EXPECT_TRUE(succeeded(weakened("masks", attack)));
}

INSTANTIATE_TEST_SUITE_P(
    All, MaskedProcFile,
    testing::Values("kcore", "keys", "key-users", "kmsg", "kallsyms", "modules", "sysrq-trigger", "timer_list",
                    "slabinfo", "interrupts", "cmdline", "config.gz", "vmallocinfo", "pagetypeinfo", "diskstats",
                    "partitions", "zoneinfo", "vmstat", "swaps", "buddyinfo", "softirqs", "schedstat", "devices",
                    "crypto", "cgroups", "iomem", "ioports", "consoles", "execdomains", "misc", "pressure/cpu",
                    "pressure/memory", "tty/drivers", "bus/pci/devices", "irq/default_smp_affinity"),
    [](const auto& test) {
      std::string name = test.param;
      std::replace_if(name.begin(), name.end(), [](char c) { return c == '-' || c == '.' || c == '/'; }, '_');
      return name;
    });

/// On any kernel, only listed entries can be opened.
TEST(ProcEntries, OutsideTheListCannotBeOpened) {
  CONFORMS("R-FILES-3");
  const std::string list =
      "for f in /proc/[!0-9]*; do [ -L $f ] && continue; if [ -d $f ]; then ls $f >/dev/null 2>&1 || continue; "
      "elif ! head -c 1 $f >/dev/null 2>&1; then continue; fi; echo ${f#/proc/}; done";
  const RunOutput output = runCaisson({"run", "-q", "--workspace", ":none", "--", "bash", "-c", list});
  EXPECT_EQ(output.out, "cpuinfo\nfilesystems\nloadavg\nmeminfo\nstat\nsys\nsysvipc\nuptime\nversion\n")
      << output.describe();
  if (!mayWeaken()) return;
  const RunOutput open = runProgram({weakenedPath(), "masks", "--workspace", ":none", "--", "bash", "-c", list});
  EXPECT_NE(open.out.find("diskstats\n"), std::string::npos) << open.describe();
}

/// Values that identify the host, or reveal other sandboxes.
TEST(ProcValues, AreNotTheHosts) {
  CONFORMS("R-FILES-3");
  const std::string host_id = readFile("/proc/sys/kernel/random/boot_id");
  const auto inside = [](const std::string& file) {
    return runCaisson({"run", "-q", "--workspace", ":none", "--", "cat", file}).out;
  };
  const std::string id = inside("/proc/sys/kernel/random/boot_id");
  EXPECT_EQ(id.size(), host_id.size());
  EXPECT_NE(id, host_id);
  EXPECT_NE(id, inside("/proc/sys/kernel/random/boot_id")) << "each sandbox has its own";
  EXPECT_EQ(inside("/proc/loadavg"), "0.00 0.00 0.00 1/1 1\n");
  EXPECT_EQ(inside("/proc/uptime"), "60.00 0.00\n");
  EXPECT_NE(inside("/proc/version"), readFile("/proc/version"));
  EXPECT_NE(inside("/proc/stat").find("\ncpu0 0 0 0 0 "), std::string::npos);
  for (const char* file : {"/proc/meminfo", "/proc/stat", "/proc/sys/kernel/random/boot_id"}) {
    EXPECT_EQ(inSandbox({.verb = {"write", file, "x"}}).out, "refused: open: EROFS\n") << file;
  }
  if (!mayWeaken()) return;
  const RunOutput shown = runProgram(
      {weakenedPath(), "proc-values", "--workspace", ":none", "--", "cat", "/proc/sys/kernel/random/boot_id"});
  EXPECT_EQ(shown.out, host_id) << shown.describe();
}

/// The same figures by a call that needs no file; the C library sizes memory by it.
TEST(Sysinfo, ShowsSandboxAndNotHost) {
  CONFORMS("R-FILES-3");
  Attack attack{.verb = {"sysinfo"}, .options = {"--profile", "bash"}};
  const std::regex pattern("done: ([0-9]+) MiB, ([0-9]+) s, load ([0-9]+)\n");
  std::smatch shown;
  const RunOutput output = inSandbox(attack);
  ASSERT_TRUE(std::regex_match(output.out, shown, pattern)) << output.describe();
  EXPECT_EQ(shown[1], "512");
  EXPECT_LT(std::stol(shown[2]), 10) << "seconds since the sandbox began";
  EXPECT_EQ(shown[3], "0");
  const RunOutput quiet =
      runCaisson({"run", "--json", "--workspace", ":none", "--ro", payloadPath(), "--", payloadPath(), "sysinfo"});
  EXPECT_TRUE(quiet.json()["violations"].empty()) << quiet.describe();
  if (!mayWeaken()) return;
  struct sysinfo machine{};
  ASSERT_EQ(::sysinfo(&machine), 0);
  const RunOutput open = weakened("allow:sysinfo", attack);
  ASSERT_TRUE(std::regex_match(open.out, shown, pattern)) << open.describe();
  EXPECT_EQ(shown[1], std::to_string((machine.totalram * machine.mem_unit) >> 20));
}

/// The supervisor writes the answer: an address that the process itself could not write to is refused.
TEST(Sysinfo, BadAddressIsRefused) {
  for (const char* address : {"0", "0x10", "0xffffffffffffff00", "0xffff800000000000"}) {
    EXPECT_EQ(inSandbox({.verb = {"sysinfo-at", address}}).out, "refused: sysinfo: EFAULT\n") << address;
  }
}

/// As an unprivileged user the files' own modes say no as well: the errno tells which layer answered.
TEST(ProcSettings, AreOnAReadOnlyMount) {
  for (const char* path : {"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname",
                           "/proc/sys/vm/overcommit_memory", "/proc/sys/net/ipv4/ip_forward"}) {
    const Attack attack{.verb = {"write", path, ""}};
    EXPECT_EQ(inSandbox(attack).out, "refused: open: EROFS\n") << path;
    if (runsAsRoot()) continue;
    EXPECT_EQ(weakened("read-only-proc", attack).out.find("EROFS"), std::string::npos) << path;
  }
}

TEST(SysDirectory, IsAbsent) {
  CONFORMS("R-FILES-3");
  const Attack attack{.verb = {"stat", "/sys/kernel"}};
  expectOnlyStoppedBy("own-root,self-test", attack);
  EXPECT_TRUE(contained(inSandbox({.verb = {"stat", "/sys/fs/cgroup"}})));
}

}  // namespace
}  // namespace caisson::test
