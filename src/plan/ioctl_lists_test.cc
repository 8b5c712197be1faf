// Compares the numbers of the ioctl requests with the kernel's.
#include "plan/ioctl_lists.h"

#include <asm/ioctls.h>
#include <asm/termbits.h>
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <linux/random.h>
#include <linux/sockios.h>

#include <map>
#include <set>
#include <string>

namespace caisson::plan::rules {
namespace {

#define REQUEST(name) {#name, static_cast<std::uint32_t>(name)}  // NOLINT: the name is needed as text

const std::map<std::string_view, std::uint32_t> kKernelRequests = {
    REQUEST(FIONREAD),      REQUEST(FIONBIO),         REQUEST(FIOCLEX),        REQUEST(FIONCLEX),
    REQUEST(FIOASYNC),      REQUEST(FIOQSIZE),        REQUEST(TCGETS),         REQUEST(TCGETS2),
    REQUEST(TIOCGWINSZ),    REQUEST(TIOCGPGRP),       REQUEST(TIOCSPGRP),      REQUEST(TCSETS),
    REQUEST(TCSETSW),       REQUEST(TCSETSF),         REQUEST(TCSETS2),        REQUEST(TCSETSW2),
    REQUEST(TCSETSF2),      REQUEST(TCGETA),          REQUEST(TCSETA),         REQUEST(TCSETAW),
    REQUEST(TCSETAF),       REQUEST(TIOCSWINSZ),      REQUEST(TIOCGPTN),       REQUEST(TIOCSPTLCK),
    REQUEST(TIOCGPTPEER),   REQUEST(TIOCSCTTY),       REQUEST(TIOCNOTTY),      REQUEST(TIOCGSID),
    REQUEST(TIOCOUTQ),      REQUEST(TCSBRK),          REQUEST(TCSBRKP),        REQUEST(TCXONC),
    REQUEST(TCFLSH),        REQUEST(TIOCPKT),         REQUEST(TIOCEXCL),       REQUEST(TIOCNXCL),
    REQUEST(TIOCGEXCL),     REQUEST(TIOCGPTLCK),      REQUEST(TIOCGPKT),       REQUEST(TIOCSIG),
    REQUEST(TIOCGETD),      REQUEST(TIOCGDEV),        REQUEST(FICLONE),        REQUEST(FICLONERANGE),
    REQUEST(FIGETBSZ),      REQUEST(FS_IOC_GETFLAGS), REQUEST(SIOCGIFCONF),    REQUEST(SIOCGIFFLAGS),
    REQUEST(SIOCGIFADDR),   REQUEST(SIOCGIFINDEX),    REQUEST(SIOCGIFNAME),    REQUEST(SIOCGIFHWADDR),
    REQUEST(SIOCGIFMTU),    REQUEST(SIOCGIFNETMASK),  REQUEST(SIOCGIFBRDADDR), REQUEST(SIOCGIFDSTADDR),
    REQUEST(SIOCGIFMETRIC), REQUEST(SIOCGIFTXQLEN),   {"SIOCATMARK", 0x8905},  REQUEST(SIOCOUTQNSD),
    {"SIOCSPGRP", 0x8902},  {"SIOCGPGRP", 0x8904},    REQUEST(RNDGETENTCNT),
};

#undef REQUEST

TEST(IoctlLists, NumbersAreThoseOfKernelHeaders) {
  std::set<std::uint32_t> values;
  for (const IoctlClass& each : kIoctlClasses) {
    for (const IoctlRequest& request : each.requests) {
      const auto known = kKernelRequests.find(request.name);
      ASSERT_NE(known, kKernelRequests.end()) << request.name;
      EXPECT_EQ(request.value, known->second) << request.name;
      EXPECT_TRUE(values.insert(request.value).second) << request.name << " is listed twice";
    }
  }
}

TEST(IoctlLists, ContainNoRequestThatAffectsMoreThanItsCaller) {
  const std::uint32_t dangerous[] = {TIOCSTI,      TIOCLINUX,   TIOCSETD,  TIOCCONS,      TIOCVHANGUP,
                                     FIFREEZE,     FITHAW,      FITRIM,    FIDEDUPERANGE, FS_IOC_SETFLAGS,
                                     SIOCSIFFLAGS, SIOCSIFADDR, SIOCADDRT, SIOCETHTOOL,   FIBMAP};
  for (const IoctlClass& each : kIoctlClasses) {
    for (const IoctlRequest& request : each.requests) {
      for (const std::uint32_t bad : dangerous) EXPECT_NE(request.value, bad) << request.name;
    }
  }
}

}  // namespace
}  // namespace caisson::plan::rules
