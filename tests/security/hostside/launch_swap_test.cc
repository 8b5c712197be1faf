// What a plan names is replaced between the search of it and the mounts: the launch is refused.
#include <gtest/gtest.h>

#include <filesystem>

#include "caisson/policy.h"
#include "caisson/run.h"
#include "host/facts.h"
#include "plan/plan.h"
#include "supervise/supervise.h"
#include "support/environment.h"
#include "support/temp_dir.h"
#include "sys/cgroup.h"

namespace caisson::test {
namespace {

namespace fs = std::filesystem;

struct Swapped {
  const char* name;
  const char* mode;   ///< of the workspace
  const char* field;  ///< of the policy that shows the directory
};

class LaunchSwap : public testing::TestWithParam<Swapped> {
 protected:
  void SetUp() override {
    std::string why;
    requireOrSkip(fullIsolationAvailable(&why), why);
    ::setenv("CAISSON_HOME", (home_ / "state").c_str(), 1);
    base_.openToAll();
    app_ = fs::canonical(base_.makeDir("app")).string();
    base_.write("app/mine", "mine\n");
    base_.write("app/.env", "A=1\n");
    base_.makeDir("victim");
    canary_.emplace(base_.write("victim/secret", "x"));
  }
  [[nodiscard]] RunResult runAfter(const std::function<void()>& swap) const {
    Request request{.policy = *Policy::profile("bash")};
    const Swapped& param = GetParam();
    EXPECT_TRUE(request.policy.set("filesystem.workspace.mode", param.mode));
    EXPECT_TRUE(request.policy.set(param.field, app_));
    request.command = {"cat", app_ + "/secret", "/workspace/secret"};
    request.program = caissonBinary();
    const plan::HostFacts facts = host::collectFacts(request.policy.model());
    auto plan = plan::build(request.policy.model(), facts, {request.command, false, false});
    EXPECT_TRUE(plan) << plan.error().message();
    swap();
    return supervise::supervise(*plan, request, sys::CgroupBase::find());
  }
  void expectRefused(const RunResult& result) const {
    ASSERT_TRUE(result.error) << result.out.data;
    EXPECT_EQ(result.error->stage, Stage::mounts) << result.error->message();
    EXPECT_FALSE(canary_->leakedInto(result.out.data));
    EXPECT_TRUE(canary_->untouched());
  }

  const TempDir base_, home_;
  std::string app_;
  std::optional<Canary> canary_;
};

TEST_P(LaunchSwap, DirectoryThatWasNotSearchedIsNotMounted) {
  const RunResult result = runAfter([&] {
    fs::rename(app_, base_ / "old");
    fs::rename(base_ / "victim", app_);
  });
  fs::rename(app_, base_ / "victim");
  expectRefused(result);
  EXPECT_EQ(result.error->code, ErrorCode::directory_replaced) << result.error->message();
}

TEST_P(LaunchSwap, LinkIsNotFollowed) {
  expectRefused(runAfter([&] {
    fs::rename(app_, base_ / "old");
    fs::create_directory_symlink(base_ / "victim", app_);
  }));
}

TEST_P(LaunchSwap, SameDirectoryIsMounted) {
  const RunResult result = runAfter([] {});
  EXPECT_FALSE(result.error) << result.error->message();
}

INSTANTIATE_TEST_SUITE_P(Ways, LaunchSwap,
                         testing::Values(Swapped{"Overlay", "overlay", "filesystem.workspace.path"},
                                         Swapped{"ReadOnly", "ro", "filesystem.workspace.path"},
                                         Swapped{"Direct", "rw", "filesystem.workspace.path"},
                                         Swapped{"NamedReadOnly", "none", "filesystem.read_only"},
                                         Swapped{"NamedWritable", "none", "filesystem.read_write"}),
                         [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace caisson::test
