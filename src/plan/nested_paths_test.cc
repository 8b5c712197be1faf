#include "plan/nested_paths.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "plan/landlock.h"
#include "plan/plan_testing.h"
#include "plan/workspace.h"

namespace caisson::plan {
namespace {

using namespace testing;  // NOLINT: the vocabulary of these tests
using policy::Level;
using policy::Policy;
using policy::WorkspaceMode;

/// What a path inside shows: which host object, and what becomes of a write to it.
struct View {
  enum class Write : std::uint8_t { none, hidden, fails, apart, host };
  Write write = Write::none;
  std::string object;
};

/// The mounts of a plan, as the kernel would have them.
class MountTable {
 public:
  explicit MountTable(const Plan& plan) {
    for (const Step& step : plan.steps) {
      if (const auto* bind = std::get_if<Bind>(&step)) add(*bind);
      if (const auto* overlay = std::get_if<MountOverlay>(&step)) add(*overlay);
      if (const auto* mask = std::get_if<MaskPath>(&step)) {
        const View there = at(mask->target);
        const bool leads =
            std::ranges::any_of(mounts_, [&](const Mount& mount) { return below(mount.target, mask->target); });
        if ((there.write == View::Write::none && !leads) || there.write == View::Write::hidden) continue;
        cover(mask->target);
        mounts_.push_back({mask->target, {View::Write::hidden, ""}, {}});
      }
    }
  }

  [[nodiscard]] View at(const std::string& path) const {
    const Mount* top = nullptr;
    for (const Mount& mount : mounts_) {  // a later one covers earlier ones at and below its target
      if (!below(path, mount.target)) continue;
      if (top == nullptr || !below(top->target, mount.target) || below(mount.target, top->target) ||
          top->target == mount.target) {
        top = &mount;
      }
    }
    if (top == nullptr) return {};
    View view = top->view;
    if (view.write == View::Write::hidden) return path == top->target ? view : View{};
    const std::string rest = path.substr(top->target.size());
    for (const std::string& hidden : top->hidden) {
      if (!rest.empty() && below(rest.substr(1), hidden)) return {};
    }
    view.object += rest;
    return view;
  }

 private:
  struct Mount {
    std::string target;
    View view;
    std::vector<std::string> hidden;
  };

  void add(const MountOverlay& overlay) {
    cover(overlay.target);
    mounts_.push_back({overlay.target,
                       {overlay.read_only ? View::Write::fails : View::Write::apart, overlay.lower},
                       overlay.whiteouts});
  }

  void add(const Bind& bind) {
    if (bind.devices) return;
    if (!bind.inside) {
      cover(bind.target);
      mounts_.push_back({bind.target, {bind.writable ? View::Write::host : View::Write::fails, bind.source}, {}});
      return;
    }
    // A copy of everything at and below the source, as it is now.
    std::vector<Mount> copies;
    View root = at(bind.source);
    std::vector<std::string> hidden;
    for (const Mount& mount : mounts_) {
      if (below(mount.target, bind.source) && mount.target != bind.source && visible(mount)) {
        copies.push_back(mount);
        copies.back().target = bind.target + mount.target.substr(bind.source.size());
      }
      if (below(bind.source, mount.target)) {
        for (const std::string& name : mount.hidden) {
          const std::string full = mount.target + "/" + name;
          if (below(full, bind.source) && full != bind.source) hidden.push_back(full.substr(bind.source.size() + 1));
        }
      }
    }
    copies.insert(copies.begin(), Mount{bind.target, root, hidden});
    for (Mount& copy : copies) {
      if (!bind.writable && !isCopy(bind) && copy.view.write != View::Write::hidden)
        copy.view.write = View::Write::fails;
    }
    cover(bind.target);
    mounts_.insert(mounts_.end(), copies.begin(), copies.end());
  }

  [[nodiscard]] bool visible(const Mount& mount) const {
    const auto at = static_cast<std::size_t>(&mount - mounts_.data());
    for (std::size_t later = at + 1; later < mounts_.size(); ++later) {
      if (below(mount.target, mounts_[later].target)) return false;
    }
    return true;
  }

  /// What is mounted at and below is not reachable any more.
  void cover(const std::string& target) {
    std::erase_if(mounts_, [&](const Mount& mount) { return below(mount.target, target); });
  }

  std::vector<Mount> mounts_;
};

/// The documented precedence: denied, then the deepest path, then `ro`.
View::Write expected(const Policy& policy, const HostFacts& host, const std::string& object) {
  for (const std::string& denied : policy.filesystem.denied) {
    if (below(object, denied)) return View::Write::hidden;
  }
  std::size_t deepest = 0;
  View::Write result = View::Write::none;
  const auto rule = [&](const std::string& path, View::Write write) {
    if (!below(object, path) || path.size() < deepest) return;
    if (path.size() > deepest || write < result) result = write;
    deepest = path.size();
  };
  const WorkspaceMode mode = policy.filesystem.workspace.mode;
  if (mode != WorkspaceMode::none) {
    rule(host.workspace.path, mode == WorkspaceMode::rw        ? View::Write::host
                              : mode == WorkspaceMode::overlay ? View::Write::apart
                                                               : View::Write::fails);
  }
  for (const HostPath& path : host.read_only) rule(path.path, View::Write::fails);
  for (const HostPath& path : host.read_write) rule(path.path, View::Write::host);
  return result;
}

class RandomRules {
 public:
  explicit RandomRules(unsigned seed) : random_(seed) {}

  struct Case {
    Policy policy;
    HostFacts host;
  };

  Case next() {
    constexpr WorkspaceMode kModes[] = {WorkspaceMode::none, WorkspaceMode::ro, WorkspaceMode::rw,
                                        WorkspaceMode::overlay};
    Case made{withWorkspace(kModes[below(4)], below(4) == 0 ? Level::process : Level::full), hostWithWorkspace("")};
    made.host.workspace.path = path(1, 2);
    made.policy.filesystem.workspace.path = made.host.workspace.path;
    made.policy.filesystem.workspace.same_path = below(3) == 0;
    for (int i = below(4); i > 0; --i) made.host.read_only.push_back(directory(path(1, 4)));
    for (int i = below(4); i > 0; --i) made.host.read_write.push_back(directory(path(1, 4)));
    for (int i = below(3); i > 0; --i) made.policy.filesystem.denied.push_back(path(2, 5));
    return made;
  }

  /// All objects of the host that the cases are about.
  static std::vector<std::string> objects() {
    std::vector<std::string> all{"/srv/t"};
    for (std::size_t at = 0; at < all.size(); ++at) {
      if (std::ranges::count(all[at], '/') >= 7) continue;
      all.push_back(all[at] + "/a");
      all.push_back(all[at] + "/b");
    }
    return all;
  }

 private:
  int below(int limit) { return static_cast<int>(random_() % static_cast<unsigned>(limit)); }
  std::string path(int least, int most) {
    std::string text = "/srv/t";
    for (int i = least + below(most - least + 1); i > 0; --i) text += below(2) == 0 ? "/a" : "/b";
    return text;
  }

  std::mt19937 random_;
};

std::string describeCase(const RandomRules::Case& one) {
  std::string text = "workspace " + one.host.workspace.path + " mode " +
                     std::to_string(static_cast<int>(one.policy.filesystem.workspace.mode)) +
                     (one.policy.filesystem.workspace.same_path ? " same-path" : "") +
                     (one.policy.isolation.level == Level::process ? " process" : "");
  for (const HostPath& path : one.host.read_only) text += " --ro " + path.path;
  for (const HostPath& path : one.host.read_write) text += " --rw " + path.path;
  for (const std::string& path : one.policy.filesystem.denied) text += " --deny " + path;
  return text;
}

/// Every path that shows an object treats it as the rules say, and nothing above a stricter part can be renamed.
void checkCase(const RandomRules::Case& one, const Plan& plan, const std::vector<std::string>& objects) {
  const MountTable mounts(plan);
  const std::string& top = one.host.workspace.path;
  for (const std::string& object : objects) {
    const View::Write wanted = expected(one.policy, one.host, object);
    std::vector<std::string> paths{object};
    if (plan.workspace_shown && below(object, top)) paths.push_back(plan.workspace_target + object.substr(top.size()));
    for (const std::string& path : paths) {
      const View view = mounts.at(path);
      const bool shown = view.write != View::Write::none && view.write != View::Write::hidden;
      if (shown) {
        ASSERT_EQ(view.object, object) << path << "\n" << describeCase(one);
        ASSERT_EQ(static_cast<int>(view.write), static_cast<int>(wanted)) << path << "\n" << describeCase(one);
      } else {
        const bool workspace_only = path == object && one.policy.isolation.level == Level::full &&
                                    std::ranges::none_of(pathRules(one.host), [&](const PathRule& rule) {
                                      return below(object, rule.path->path);
                                    });
        ASSERT_TRUE(wanted == View::Write::none || wanted == View::Write::hidden || workspace_only)
            << path << " is not shown\n"
            << describeCase(one);
      }
    }
  }
}

int casesToTry(int usual) {
  const char* count = std::getenv("CAISSON_TEST_CASES");
  return count == nullptr ? usual : std::atoi(count);
}

TEST(NestedPaths, FollowTheDocumentedPrecedenceAtEveryPathThatShowsThem) {
  const int cases = casesToTry(400);
  const std::vector<std::string> objects = RandomRules::objects();
  int planned = 0;
  for (int seed = 0; seed < cases && !HasFailure(); ++seed) {
    const RandomRules::Case one = RandomRules(static_cast<unsigned>(seed)).next();
    const auto plan = build(one.policy, one.host, {{"true"}, false});
    if (!plan) continue;  // refused, with a reason
    ++planned;
    checkCase(one, *plan, objects);
  }
  EXPECT_GT(planned, cases * 3 / 4);
}

HostFacts hostWith(std::vector<HostPath> read_only, std::vector<HostPath> read_write = {}) {
  HostFacts host = someHost();
  host.read_only = std::move(read_only);
  host.read_write = std::move(read_write);
  return host;
}

TEST(NestedPaths, PinTheDirectoriesAboveThem) {
  const HostFacts host =
      hostWith({directory("/home/someone/project/x/y/a"), directory("/data/d/e")}, {directory("/data")});
  for (const WorkspaceMode mode : {WorkspaceMode::rw, WorkspaceMode::overlay}) {
    for (const Level level : {Level::full, Level::process}) {
      const Plan plan = planned(withWorkspace(mode, level), host);
      for (const std::string& path :
           {plan.workspace_target + "/x", plan.workspace_target + "/x/y", std::string("/data/d")}) {
        const Bind* pin = stepAt<Bind>(plan, path);
        ASSERT_NE(pin, nullptr) << path;
        EXPECT_TRUE(pin->inside && pin->writable) << path;
      }
      EXPECT_FALSE(stepAt<Bind>(plan, plan.workspace_target + "/x/y/a")->writable);
    }
  }
  EXPECT_EQ(stepAt<Bind>(planned(withWorkspace(WorkspaceMode::ro), host), "/workspace/x"), nullptr)
      << "nothing can rename it";
}

TEST(NestedPaths, OfAWritableWorkspaceAreRefusedInTheLandlockTier) {
  const std::string top = someHost().workspace.path;
  for (const HostFacts& host :
       {hostWith({directory(top + "/a")}), hostWith({directory("/data/a")}, {directory("/data")})}) {
    Policy policy = withWorkspace(WorkspaceMode::rw);
    policy.isolation.tier = policy::Tier::landlock;
    EXPECT_NE(refusal(policy, host).find("Landlock cannot take a right away"), std::string::npos);
  }
}

TEST(NestedPaths, OfTheSamePathAreReadOnlyInTheLandlockTier) {
  const std::string top = someHost().workspace.path;
  const HostFacts host = hostWith({directory(top), directory("/data")}, {directory("/data")});
  Policy policy = withWorkspace(WorkspaceMode::rw);
  policy.isolation.tier = policy::Tier::landlock;
  const Plan plan = planned(policy, host);
  for (const LandlockRule& rule : plan.landlock.rules) {
    if (rule.path != top && rule.path != "/data") continue;
    EXPECT_EQ(rule.access & ~executeRights(), 0U) << rule.path;
  }
}

TEST(NestedPaths, ThatTheWorkspaceHidesAreShownAtTheirOwnPathOnly) {
  HostFacts host = hostWith({file("/home/someone/project/.env")});
  host.scan.secrets = {".env"};
  const Plan plan = planned(withWorkspace(WorkspaceMode::overlay), host);
  EXPECT_EQ(stepAt<Bind>(plan, "/workspace/.env"), nullptr);
  ASSERT_NE(stepAt<Bind>(plan, "/home/someone/project/.env"), nullptr);
  EXPECT_FALSE(stepAt<Bind>(plan, "/home/someone/project/.env")->inside);
}

TEST(NestedPaths, WrittenDirectlyKeepTheWorkspacesMasksAndProtection) {
  HostFacts host = hostWith({}, {directory("/home/someone/project/lib")});
  host.scan.secrets = {"lib/.env", ".env"};
  host.scan.protected_paths = {{.path = "lib/.envrc"}, {.path = ".envrc"}};
  Policy policy = withWorkspace(WorkspaceMode::overlay);
  policy.filesystem.denied = {"/workspace/lib/key"};
  const Plan plan = planned(policy, host);
  EXPECT_NE(positionOf<MaskPath>(plan, "/workspace/lib/.env"), -1);
  EXPECT_NE(positionOf<MaskPath>(plan, "/workspace/lib/key"), -1);
  EXPECT_EQ(positionOf<MaskPath>(plan, "/workspace/.env"), -1) << "the overlay hides it";
  ASSERT_NE(stepAt<Bind>(plan, "/workspace/lib/.envrc"), nullptr);
  EXPECT_FALSE(stepAt<Bind>(plan, "/workspace/lib/.envrc")->writable);
  EXPECT_EQ(stepAt<Bind>(plan, "/workspace/.envrc"), nullptr) << "a commit holds it back";
}

}  // namespace
}  // namespace caisson::plan
