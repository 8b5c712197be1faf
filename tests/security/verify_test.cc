// Each check of `caisson verify` passes on an intact sandbox and fails on one without the checked protection.
#include <gtest/gtest.h>
#include <net/if.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <set>

#include "base/error.h"
#include "security/weaken.h"
#include "supervise/supervise.h"
#include "support/conforms.h"
#include "support/environment.h"
#include "support/run.h"
#include "support/temp_dir.h"
#include "verify/suite.h"

namespace caisson::test {
namespace {

using verify::Check;
using verify::CheckState;
using verify::Context;
using verify::Verdict;

/// The protection to disable for each check. CANARY is replaced by the context's host file.
const std::map<std::string, std::string>& weaknesses() {
  static const std::map<std::string, std::string> all = {
      {"security.ordinary-user", "sandbox-user,self-test"},
      {"security.read-only-root", "read-only-root,landlock,self-test"},
      {"security.read-only-system", "read-only-system,self-test"},
      {"security.no-capabilities", "capabilities,self-test"},
      {"security.no-new-privileges", "no-new-privileges,seccomp,landlock,self-test"},
      {"security.syscall-filter", "seccomp,self-test"},
      {"security.no-setuid-files", "seccomp,self-test"},
      {"security.root-home-hidden", "hidden-root-home,landlock"},
      {"security.host-processes-hidden", "pid-namespace,own-root,landlock,self-test"},
      {"security.environment-clean", "clean-environment"},
      {"security.host-files-hidden", "own-root,self-test"},
      {"security.nested-secrets-hidden", "whiteouts"},
      {"security.caches-apart", "one-cache"},
      {"resources.time-limit", "time-limit"},
      {"resources.tmpfs-size", "tmpfs-limits"},
      {"resources.noexec", "noexec,landlock"},
      {"resources.processes", "all-limits"},
      {"resources.memory", "all-limits"},
      {"resources.file-size", "all-limits"},
      {"resources.open-files", "all-limits"},
      {"network.host-loopback", "network-namespace,landlock,self-test"},
      {"network.only-loopback", "network-namespace,landlock,self-test"},
      {"network.own-loopback", "loopback,self-test"},
      {"network.dns", "egress-rules"},
      {"network.http", "network-namespace,landlock,self-test"},
      {"network.https", "network-namespace,landlock,self-test"},
      {"invariant.s1", "seccomp,self-test"},
      {"invariant.s2", "network-namespace,landlock,self-test"},
      {"invariant.s3", "egress-private"},
      {"invariant.s4", "network-namespace,landlock,self-test"},
      {"invariant.s5", "capabilities,self-test"},
      {"invariant.s6", "sandbox-user,self-test"},
      {"invariant.s7", "nothing"},  // the weakened runner requires no approval
      {"invariant.s8", "egress-private"},
      {"invariant.s9", "egress-rules"},
      {"cve.2019-10063", "request-mask"},
      {"cve.2019-5736", "hidden-processes,hidden-init,landlock"},
      {"cve.2024-21626", "closed-descriptors"},
      {"cve.2025-31133", "masks,landlock"},
      {"cve.2025-52881", "read-only-proc"},
      {"escape.proc-root", "own-root,self-test"},
      {"escape.planted-link", "show:CANARY,landlock"},
      {"escape.overlay", "overlay,landlock"},
      {"escape.signal-the-host", "pid-namespace,own-root,landlock,self-test"},
      {"escape.abstract-socket", "network-namespace,landlock,self-test"},
      {"escape.shared-memory", "ipc-namespace"},
      {"escape.devices", "seccomp,landlock,self-test"},
      {"escape.host-name", "uts-namespace"},
  };
  return all;
}

/// Checks of ordinary work have no protection to disable: they fail when another program runs instead.
std::string weaknessFor(const Check& check) {
  const auto named = weaknesses().find(std::string(check.id));
  if (named != weaknesses().end()) return named->second;
  if (check.category == verify::Category::functional || check.category == verify::Category::edge_cases)
    return "program";
  return "seccomp,kernel-quotas,self-test";
}

Result<RunResult> runWeakened(const Request& request, std::string names) {
  auto plan = planToWeaken(request);
  if (!plan) return fail(plan.error());
  while (!names.empty()) {
    const std::size_t end = std::min(names.find(','), names.size());
    if (!weaken(*plan, names.substr(0, end))) ADD_FAILURE() << "no weakness is called " << names.substr(0, end);
    names.erase(0, end + 1);
  }
  return supervise::supervise(*plan, request);
}

class Verify : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    requireOrSkip(fullIsolationAvailable(&why), "level full does not work here: " + why);
    ::setenv("CAISSON_HOME", home_.path().c_str(), 1);
  }

  [[nodiscard]] Context context(verify::Runner runner) const {
    auto made = Context::create(std::move(runner), caissonBinary());
    if (!made) ADD_FAILURE() << made.error().message();
    return std::move(*made);
  }

  const TempDir home_;
};

TEST_F(Verify, HasEveryRequiredCheck) {
  CONFORMS("R-USE-2");
  std::map<verify::Category, int> count;
  std::map<std::string_view, int> ids;
  for (const Check* check : verify::allChecks()) {
    ++count[check->category];
    EXPECT_EQ(++ids[check->id], 1) << check->id;
  }
  // R-USE-2: 31 checks in five groups, 10 + 4 + 3 + 8 + 6.
  using verify::Category;
  const std::map<Category, std::vector<std::string_view>> required{
      {Category::security,
       {"security.ordinary-user", "security.read-only-root", "security.read-only-system", "security.no-capabilities",
        "security.no-new-privileges", "security.no-setuid-files", "security.root-home-hidden",
        "security.host-processes-hidden", "security.environment-clean", "security.host-files-hidden"}},
      {Category::resources,
       {"resources.time-limit", "resources.tmpfs-size", "resources.noexec", "resources.processes"}},
      {Category::network, {"network.dns", "network.http", "network.https"}},
      {Category::functional,
       {"functional.output", "functional.exit-code", "functional.stderr", "functional.python", "functional.git",
        "functional.curl", "functional.jq", "functional.editors"}},
      {Category::edge_cases,
       {"edge.special-characters", "edge.binary-output", "edge.no-output", "edge.flood", "edge.long-argument",
        "edge.signal"}}};
  std::size_t listed = 0;
  for (const auto& [category, wanted] : required) {
    for (const std::string_view id : wanted) {
      const auto all = verify::allChecks();
      EXPECT_TRUE(std::ranges::any_of(all, [&](const Check* check) {
        return check->id == id && check->category == category;
      })) << id;
      ++listed;
    }
  }
  EXPECT_EQ(listed, 31U);
  EXPECT_EQ(count[verify::Category::invariants], 9);
  EXPECT_GE(count[verify::Category::cve], 4);
  EXPECT_GE(count[verify::Category::escape], 6);
  for (const auto& [id, names] : weaknesses()) EXPECT_TRUE(ids.contains(id)) << id << " is not a check any more";
}

TEST_F(Verify, NothingFailsInAnIntactSandbox) {
  CONFORMS("R-USE-2");
  Context whole = context([](const Request& request) { return run(request); });
  std::string skipped;
  for (const Check* check : verify::allChecks()) {
    const Verdict verdict = check->perform(whole);
    EXPECT_NE(verdict.state, CheckState::failed) << check->id << ": " << verdict.detail;
    if (verdict.state == CheckState::skipped) {
      skipped += std::string(check->id) + ": " + verdict.detail + "\n";
      std::cout << "[   NOTE   ] skipped " << check->id << ": " << verdict.detail << '\n';
    }
  }
  if (mustRun()) {
    EXPECT_EQ(skipped, "") << "must run";
  }
}

bool hostHasOnlyLoopback() {
  struct if_nameindex* interfaces = ::if_nameindex();
  if (interfaces == nullptr) return false;
  const bool only = interfaces[0].if_index == 0 || interfaces[1].if_index == 0;
  ::if_freenameindex(interfaces);
  return only;
}

TEST_F(Verify, EachCheckFailsWithoutItsProtection) {
  CONFORMS("R-USE-2", "R-SYSCALL-13", "R-SYSCALL-14");
  if (runsAsRoot()) GTEST_SKIP() << "a weakened sandbox is never given to root";
  std::string names;
  Context weak = context([&](const Request& request) { return runWeakened(request, names); });
  Context whole = context([](const Request& request) { return run(request); });
  int tried = 0;
  for (const Check* check : verify::allChecks()) {
    names = weaknessFor(*check);
    // The host's own network namespace looks the same then.
    const bool counts_interfaces = check->id == "network.only-loopback" || check->id == "invariant.s2";
    if (counts_interfaces && hostHasOnlyLoopback()) continue;
    const CheckState without_weakness = check->perform(whole).state;
    if (without_weakness == CheckState::skipped) continue;  // reported by the test above
    ASSERT_EQ(without_weakness, CheckState::passed) << check->id;
    if (const std::size_t at = names.find("CANARY"); at != std::string::npos) names.replace(at, 6, weak.canaryPath());
    const Verdict verdict = check->perform(weak);
    EXPECT_EQ(verdict.state, CheckState::failed)
        << check->id << " did not fail without " << names << ": " << name(verdict.state) << " " << verdict.detail;
    ++tried;
  }
  EXPECT_GT(tried, 60);
}

/// As a user calls it: every check is in the report once, and none is passed over without a reason.
TEST_F(Verify, ReportHasEveryCheckWithItsState) {
  CONFORMS("R-USE-2");
  const RunOutput output = runCaisson({"verify", "--json"}, {.timeout = std::chrono::minutes(5)});
  ASSERT_EQ(output.exit_status, 0) << output.describe();
  const nlohmann::json report = output.json();
  std::map<std::string, int> states;
  std::set<std::string> ids;
  for (const nlohmann::json& check : report["checks"]) {
    ids.insert(check["id"].get<std::string>());
    ++states[check["state"]];
    if (check["state"] == "skipped") {
      EXPECT_NE(check["detail"], "") << check;
    }
  }
  for (const Check* check : verify::allChecks()) EXPECT_TRUE(ids.contains(std::string(check->id))) << check->id;
  EXPECT_EQ(report["checks"].size(), verify::allChecks().size());
  EXPECT_EQ(states["failed"], 0) << report;
  EXPECT_EQ(report["passed"], states["passed"]) << "a skipped check is not passed";
  EXPECT_EQ(report["skipped"], states["skipped"]);
}

TEST_F(Verify, ReportsInEveryForm) {
  CONFORMS("R-USE-2");
  const RunOutput output = runCaisson({"verify", "--category", "EDGE_CASES", "--json", "--junit", home_ / "junit.xml"});
  ASSERT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_EQ(output.json()["failed"], 0);
  EXPECT_EQ(output.json()["checks"][0]["category"], "EDGE_CASES");
  const std::string junit = readFile(home_ / "junit.xml");
  EXPECT_NE(junit.find("<testcase classname=\"EDGE_CASES\""), std::string::npos) << junit;
  EXPECT_NE(runCaisson({"verify", "--category", "nonsense"}).exit_status, 0);
  EXPECT_NE(runCaisson({"prompts"}).out.find("rm -rf /"), std::string::npos);
}

}  // namespace
}  // namespace caisson::test
