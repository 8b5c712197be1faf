#include "sys/privileges.h"

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "sys/kernel_abi.h"

namespace caisson::sys {
namespace {

constexpr std::uint64_t kChown = 1ULL << CAP_CHOWN;
constexpr std::uint64_t kPerfmon = 1ULL << CAP_PERFMON;  // in the upper half of the sets

/// The calling thread's line of that name, a number in hex.
std::uint64_t inStatus(const std::string& name) {
  std::ifstream status("/proc/thread-self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name + ":")) return std::strtoull(line.c_str() + name.size() + 1, nullptr, 16);
  }
  return ~0ULL;
}

/// Makes every set hold all capabilities that the process can have.
bool raiseAll() {
  struct {
    std::uint32_t version;
    int pid;
  } const header{kCapabilityVersion3, 0};
  struct {
    std::uint32_t effective, permitted, inheritable;
  } sets[2] = {};
  if (::syscall(SYS_capget, &header, sets) != 0) return false;
  for (auto& half : sets) half.effective = half.inheritable = half.permitted;
  if (::syscall(SYS_capset, &header, sets) != 0) return false;
  for (int capability = 0; capability < 64; ++capability) {
    if ((sets[capability / 32].permitted >> (capability % 32) & 1U) == 0) continue;
    if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0) != 0) return false;
  }
  return true;
}

/// Lets every later call of that number fail with EPERM.
bool deny(unsigned number) {
  sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
                        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program{4, code};
  return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

/// Runs `body` in a child with full capability sets, an ordinary user's in a user namespace; returns the name of the
/// first thing that it found wrong.
std::string inPrivilegedChild(const std::function<const char*()>& body) {
  int ends[2];
  if (::pipe(ends) != 0) return "pipe";
  const pid_t child = ::fork();
  if (child == 0) {
    const char* wrong = nullptr;
    if (::geteuid() != 0 && ::unshare(CLONE_NEWUSER) != 0) wrong = "no user namespace";
    if (wrong == nullptr && !raiseAll()) wrong = "the capabilities cannot be raised";
    if (wrong == nullptr) wrong = body();
    if (wrong != nullptr) (void)!::write(ends[1], wrong, std::strlen(wrong));
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string wrong;
  char piece[256];
  for (ssize_t got; (got = ::read(ends[0], piece, sizeof(piece))) > 0;) wrong.append(piece, static_cast<size_t>(got));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? wrong : "the child was killed";
}

TEST(Privileges, DropLeavesNoCapabilityInAnySetButTheBoundingOne) {
  EXPECT_EQ(inPrivilegedChild([] {
              const std::uint64_t bounding = inStatus("CapBnd");
              if ((inStatus("CapAmb") & kChown) == 0) return "there was no ambient capability to drop";
              if (!dropCapabilities({.object = "test"})) return "error";
              for (const char* set : {"CapPrm", "CapEff", "CapInh", "CapAmb"}) {
                if (inStatus(set) != 0) return set;
              }
              return inStatus("CapBnd") == bounding ? static_cast<const char*>(nullptr) : "CapBnd";
            }),
            "");
}

TEST(Privileges, DropWithoutTheAmbientStepClearsTheAmbientSetToo) {
  EXPECT_EQ(inPrivilegedChild([] {
              if (!dropCapabilities({.ambient = false, .object = "test"})) return "error";
              for (const char* set : {"CapPrm", "CapEff", "CapInh", "CapAmb"}) {
                if (inStatus(set) != 0) return set;
              }
              return static_cast<const char*>(nullptr);
            }),
            "");
}

TEST(Privileges, DropKeepsTheNamedCapabilitiesInThreeSetsOnly) {
  EXPECT_EQ(inPrivilegedChild([] {
              const std::uint64_t kept = (kChown | kPerfmon) & inStatus("CapPrm");
              if ((kept & kChown) == 0) return "there was nothing to keep";
              if (!dropCapabilities({.keep = kChown | kPerfmon, .bounding = true, .object = "test"})) return "error";
              for (const char* set : {"CapPrm", "CapEff", "CapBnd"}) {
                if (inStatus(set) != kept) return set;
              }
              for (const char* set : {"CapInh", "CapAmb"}) {
                if (inStatus(set) != 0) return set;
              }
              return static_cast<const char*>(nullptr);
            }),
            "");
}

TEST(Privileges, KeepNeverAddsACapability) {
  EXPECT_EQ(inPrivilegedChild([] {
              if (!dropCapabilities({.keep = kChown, .object = "test"})) return "first";
              if (!dropCapabilities({.keep = kChown | kPerfmon, .object = "test"})) return "second";
              return inStatus("CapPrm") == kChown && inStatus("CapEff") == kChown ? static_cast<const char*>(nullptr)
                                                                                  : "CapPrm";
            }),
            "");
}

// The last step clears the ambient set as well: only its failure shows that the step before was made.
TEST(Privileges, AmbientSetIsClearedBeforeTheLastStep) {
  EXPECT_EQ(inPrivilegedChild([] {
              if (!deny(SYS_capset)) return "seccomp";
              const auto dropped = dropCapabilities({.object = "test"});
              if (dropped) return "capset failed without an error";
              if (dropped.error().sys_errno != EPERM || dropped.error().call != "capset") return "another error";
              return inStatus("CapAmb") == 0 ? static_cast<const char*>(nullptr) : "CapAmb";
            }),
            "");
}

TEST(Privileges, FailureToReadTheSetsIsAnErrorAndChangesNothing) {
  EXPECT_EQ(inPrivilegedChild([] {
              if (!deny(SYS_capget)) return "seccomp";
              const std::uint64_t permitted = inStatus("CapPrm");
              if (dropCapabilities({.keep = kChown, .bounding = true, .object = "test"})) return "no error";
              return inStatus("CapPrm") == permitted ? static_cast<const char*>(nullptr) : "CapPrm";
            }),
            "");
}

TEST(Privileges, OtherThreadsKeepTheirs) {
  EXPECT_EQ(inPrivilegedChild([] {
              const std::uint64_t before = inStatus("CapEff");
              std::uint64_t inside = ~0ULL, forbidden = 0;
              std::thread([&] {
                if (!dropCapabilities({.ambient = false, .object = "test"}) || !forbidNewPrivileges()) return;
                inside = inStatus("CapEff");
                forbidden = inStatus("NoNewPrivs");
              }).join();
              if (inside != 0) return "CapEff in the thread";
              if (forbidden != 1) return "NoNewPrivs in the thread";
              if (inStatus("NoNewPrivs") != 0) return "NoNewPrivs";
              return inStatus("CapEff") == before ? static_cast<const char*>(nullptr) : "CapEff";
            }),
            "");
}

TEST(Privileges, ForbidNewPrivilegesReportsAFailure) {
  EXPECT_EQ(inPrivilegedChild([] {
              if (!deny(SYS_prctl)) return "seccomp";
              const auto forbidden = forbidNewPrivileges("object");
              if (forbidden) return "no error";
              return forbidden.error().object == "object" ? static_cast<const char*>(nullptr) : "object";
            }),
            "");
}

}  // namespace
}  // namespace caisson::sys
