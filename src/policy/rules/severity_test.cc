#include "policy/rules/severity.h"

#include <gtest/gtest.h>

#include "policy/decode/widening.h"
#include "policy/describe/explain.h"

namespace caisson::policy {

TEST(Severity, FollowsTheBuiltInTable) {
  const Syscalls standard;
  for (const char* call : {"open_by_handle_at", "kexec_load", "finit_module", "bpf", "pivot_root"}) {
    EXPECT_EQ(severityOf(standard, call), Severity::critical) << call;
  }
  for (const char* call : {"unshare", "mount", "umount2", "ptrace", "keyctl", "setns", "clone"}) {
    EXPECT_EQ(severityOf(standard, call), Severity::high) << call;
  }
  for (const char* call : {"userfaultfd", "perf_event_open", "io_uring_setup", "never_heard_of"}) {
    EXPECT_EQ(severityOf(standard, call), Severity::low) << call;
  }
}

TEST(Severity, CanBeChangedByThePolicy) {
  Syscalls own;
  own.critical = {"unshare"};
  own.high = {"bpf"};
  EXPECT_EQ(severityOf(own, "unshare"), Severity::critical);
  EXPECT_EQ(severityOf(own, "bpf"), Severity::high);
  EXPECT_EQ(severityOf(own, "mount"), Severity::low);
}

TEST(Severity, OfALowerGradeIsAWidening) {
  const Policy base;
  Policy stricter;
  stricter.syscalls.critical = std::get<std::vector<std::string>>(severityList(base.syscalls, Severity::critical));
  stricter.syscalls.critical->emplace_back("mount");
  EXPECT_TRUE(wideningsOver(base, stricter).empty());

  Policy softer;
  softer.syscalls.critical.emplace();
  ASSERT_EQ(wideningsOver(base, softer).size(), 1U);
  EXPECT_EQ(wideningsOver(base, softer)[0].key, "syscalls.critical");
  softer.syscalls.critical.reset();
  softer.syscalls.high = {"mount"};
  ASSERT_EQ(wideningsOver(base, softer).size(), 1U);
  EXPECT_EQ(wideningsOver(base, softer)[0].key, "syscalls.high");
}

TEST(Severity, IsShownByExplain) {
  const std::string text = explain(Policy{});
  EXPECT_NE(text.find("open_by_handle_at"), std::string::npos);
  EXPECT_NE(text.find("unshare"), std::string::npos);
  EXPECT_NE(text.find("high_limit"), std::string::npos);
}

TEST(Indicator, ClassifiesTheAttemptedCall) {
  EXPECT_EQ(indicatorOf("mount"), Indicator::filesystem);
  EXPECT_EQ(indicatorOf("ptrace"), Indicator::process);
  EXPECT_EQ(indicatorOf("socket"), Indicator::network);
  EXPECT_EQ(indicatorOf("bpf"), Indicator::syscall);
}

}  // namespace caisson::policy
