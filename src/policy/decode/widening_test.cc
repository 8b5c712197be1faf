#include "policy/decode/widening.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "policy/profiles/profiles.h"
#include "support/conforms.h"

namespace caisson::policy {

namespace {

struct WideningCase {
  void (*change)(Policy&);
  const char* key;  ///< that is widened; nullptr: nothing is
};

/// Two values of the field, one of which allows more than the other.
std::pair<Value, Value> twoValues(const Field& field) {
  using Texts = std::vector<std::string>;
  switch (field.kind) {
    case Kind::boolean: return {false, true};
    case Kind::count:
    case Kind::size: return {std::uint64_t{1}, std::uint64_t{2}};
    case Kind::number:
    case Kind::seconds: return {1.0, 2.0};
    case Kind::text: return {std::string("/a"), std::string("/b")};
    case Kind::choice: {
      const auto ranks = std::ranges::minmax_element(field.ranks);
      return {std::string(field.choices[static_cast<std::size_t>(ranks.min - field.ranks.begin())]),
              std::string(field.choices[static_cast<std::size_t>(ranks.max - field.ranks.begin())])};
    }
    case Kind::texts: return {Texts{}, Texts{"unshare"}};
    case Kind::choices: return {Texts{}, Texts{std::string(field.choices.front())}};
    case Kind::numbers: return {std::vector<std::uint64_t>{0}, std::vector<std::uint64_t>{0, 1}};
    case Kind::assignments:
      return {std::map<std::string, std::string>{}, std::map<std::string, std::string>{{"A", "b"}}};
    case Kind::tmpfs: return {std::vector<Tmpfs>{}, std::vector<Tmpfs>{{.path = "/cache"}}};
    case Kind::credentials: return {std::vector<Credential>{}, std::vector<Credential>{{.host = "api.example.org"}}};
  }
  return {};
}

}  // namespace

TEST(Widening, IsFoundInBothDirections) {
  CONFORMS("R-POLICY-3");
  const WideningCase cases[] = {
      {[](Policy& p) { p.resources.memory = kGiB; }, "resources.memory"},
      {[](Policy& p) { p.resources.memory = kMiB; }, nullptr},
      {[](Policy& p) { p.resources.wall_seconds = 121; }, "resources.wall_seconds"},
      {[](Policy& p) { p.resources.wall_seconds = 119; }, nullptr},
      {[](Policy& p) { p.resources.cpu_seconds = 5; }, nullptr},
      {[](Policy& p) { p.filesystem.workspace.mode = WorkspaceMode::rw; }, "filesystem.workspace.mode"},
      {[](Policy& p) { p.filesystem.workspace.mode = WorkspaceMode::ro; }, nullptr},
      {[](Policy& p) { p.filesystem.read_only = {"/opt"}; }, "filesystem.read_only"},
      {[](Policy& p) { p.filesystem.denied = {"/opt"}; }, nullptr},
      {[](Policy& p) { p.filesystem.tmpfs[1].exec = true; }, "filesystem.tmpfs"},
      {[](Policy& p) { p.filesystem.tmpfs[1].size += 1; }, "filesystem.tmpfs"},
      {[](Policy& p) { p.filesystem.tmpfs[1].cache = "npm"; }, "filesystem.tmpfs"},
      {[](Policy& p) { p.filesystem.tmpfs[1].store = DirectoryStore::disk; }, "filesystem.tmpfs"},
      {[](Policy& p) { p.resources.threads = 10; }, "resources.threads"},
      {[](Policy& p) { p.filesystem.tmpfs.pop_back(); }, nullptr},
      {[](Policy& p) { p.filesystem.tmpfs[0].access = TmpfsAccess::wo; }, nullptr},
      {[](Policy& p) { p.network.mode = NetworkMode::proxy; }, "network.mode"},
      {[](Policy& p) { p.network.allowed_ports = {"80"}; }, nullptr},
      {[](Policy& p) { p.network.allowed_ports = {"22"}; }, "network.allowed_ports"},
      {[](Policy& p) { p.isolation.level = Level::process; }, "isolation.level"},
      {[](Policy& p) { p.isolation.self_test = false; }, "isolation.self_test"},
      {[](Policy& p) { p.isolation.separate_user = true; }, nullptr},
      {[](Policy& p) { p.isolation.runtime = Runtime::crun; }, "isolation.runtime"},
      {[](Policy& p) { p.isolation.may_be_missing.clear(); }, nullptr},
      {[](Policy& p) { p.isolation.may_be_missing.push_back(OptionalLayer::landlock); }, "isolation.may_be_missing"},
      {[](Policy& p) { p.isolation.may_be_missing.push_back(OptionalLayer::proc_bound); }, "isolation.may_be_missing"},
      {[](Policy& p) { p.process.allowed_executables.emplace(); }, nullptr},
      {[](Policy& p) { p.syscalls.allow = {"socket"}; }, "syscalls.allow"},
      {[](Policy& p) { p.syscalls.names = {"read"}; }, "syscalls.names"},
      {[](Policy& p) { p.environment.mode = EnvironmentMode::inherit; }, "environment.mode"},
      {[](Policy& p) { p.audit.enabled = false; }, "audit.enabled"},
      {[](Policy& p) { p.resources.cpu_affinity = {0}; }, nullptr},
  };
  for (const WideningCase& each : cases) {
    const Policy base = *builtin("bash");
    Policy policy = base;
    each.change(policy);
    const auto widenings = wideningsOver(base, policy);
    if (each.key == nullptr) {
      EXPECT_TRUE(widenings.empty()) << widenings[0].key;
    } else {
      ASSERT_EQ(widenings.size(), 1U) << each.key;
      EXPECT_EQ(widenings[0].key, each.key);
    }
  }
}

/// A change of any key in one direction is reported, except for the keys listed here, which allow nothing.
TEST(Widening, EveryKeyIsComparedUnlessItAllowsNothing) {
  CONFORMS("R-POLICY-3");
  const std::set<std::string_view> never{"name",
                                         "description",
                                         "working_directory",
                                         "isolation.hostname",
                                         "filesystem.workspace.path",
                                         "filesystem.workspace.same_path",
                                         "filesystem.overlay_store",
                                         "environment.set",
                                         "audit.lifecycle"};
  for (const Field& field : fields()) {
    const auto [one, other] = twoValues(field);
    Policy base;
    Policy policy;
    field.put(base, one);
    field.put(policy, other);
    const auto lists = [&](const Policy& before, const Policy& after) {
      const auto found = wideningsOver(before, after);
      return std::ranges::any_of(found, [&](const Widening& widening) { return widening.key == field.key; });
    };
    const bool there = lists(base, policy), back = lists(policy, base);
    EXPECT_EQ(there || back, !never.contains(field.key)) << field.key;
    const bool any_change = field.widens == Widens::changed && field.key != "syscalls.names";
    EXPECT_EQ(there && back, any_change) << field.key;
  }
}

TEST(Widening, RemovingTheLimitOfADirectoryIsAWidening) {
  Policy base;
  base.filesystem.tmpfs = {{.path = "/logs", .access = TmpfsAccess::wo}};
  Policy policy = base;
  for (const TmpfsAccess access : {TmpfsAccess::rw, TmpfsAccess::ro}) {
    policy.filesystem.tmpfs[0].access = access;
    EXPECT_EQ(wideningsOver(base, policy).size(), 1U);
  }
}

TEST(Widening, ShorterDenylistIsAWidening) {
  Policy base;
  base.syscalls.mode = SyscallMode::denylist;
  base.syscalls.names = {"socket", "kill"};
  Policy policy = base;
  policy.syscalls.names = {"socket"};
  EXPECT_EQ(wideningsOver(base, policy).size(), 1U);
  EXPECT_TRUE(wideningsOver(policy, base).empty());
}

}  // namespace caisson::policy
