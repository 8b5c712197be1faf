// The payload's identity, and what it can find out about the host. These verbs print their findings.
#include <grp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "payload.h"

namespace payload {
namespace {

/// One "name value" per line: ids, capability sets, flags, id maps.
int describeSelf(const Arguments&) {
  const std::string status = contentOf("/proc/self/status");
  std::size_t begin = 0;
  while (begin < status.size()) {
    const std::size_t end = status.find('\n', begin);
    const std::string line = status.substr(begin, end - begin);
    for (const char* wanted : {"Cap", "NoNewPrivs", "Seccomp:", "Uid:", "Gid:", "Groups:"}) {
      if (line.starts_with(wanted)) std::puts(line.c_str());
    }
    begin = end == std::string::npos ? status.size() : end + 1;
  }
  std::printf("SecureBits: %d\n", prctl(PR_GET_SECUREBITS));
  std::printf("UidMap: %s", contentOf("/proc/self/uid_map").c_str());
  std::printf("GidMap: %s", contentOf("/proc/self/gid_map").c_str());
  return kDone;
}

int printEnvironment(const Arguments&) {
  for (char** entry = environ; *entry != nullptr; ++entry) std::puts(*entry);
  return kDone;
}

int printHostName(const Arguments&) {
  utsname names{};
  uname(&names);
  return done(std::string(names.nodename) + " " + names.domainname);
}

/// Seconds since boot according to CLOCK_BOOTTIME.
int printUptime(const Arguments&) {
  timespec now{};
  if (clock_gettime(CLOCK_BOOTTIME, &now) != 0) return refused("clock_gettime");
  return done(std::to_string(now.tv_sec));
}

/// Memory in MiB, seconds since boot, and the load, as sysinfo(2) returns them.
int printSysinfo(const Arguments&) {
  struct sysinfo machine{};
  if (sysinfo(&machine) != 0) return refused("sysinfo");
  return done(std::to_string((machine.totalram * machine.mem_unit) >> 20) + " MiB, " + std::to_string(machine.uptime) +
              " s, load " + std::to_string(machine.loads[0] + machine.loads[1] + machine.loads[2]));
}

int callSysinfoAt(const Arguments& arguments) {
  const unsigned long address = std::strtoul(arguments[0].c_str(), nullptr, 0);
  return syscall(SYS_sysinfo, address) == 0 ? done() : refused("sysinfo");
}

/// Tries to become another user, root first.
int becomeUser(const Arguments&) {
  if (setuid(0) == 0) return done("uid 0");
  const int error = errno;
  if (setgid(0) == 0) return done("gid 0");
  const gid_t none = 0;
  if (setgroups(1, &none) == 0) return done("group 0");
  return refused("setuid", error);
}

constexpr Verb kVerbs[] = {
    {"describe-self", "", 0, describeSelf}, {"environment", "", 0, printEnvironment},
    {"host-name", "", 0, printHostName},    {"uptime", "", 0, printUptime},
    {"sysinfo", "", 0, printSysinfo},       {"sysinfo-at", "ADDRESS", 1, callSysinfoAt},
    {"become-root", "", 0, becomeUser},
};

}  // namespace

std::span<const Verb> identityVerbs() { return kVerbs; }

}  // namespace payload
