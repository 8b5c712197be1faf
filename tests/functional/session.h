// A private store and workspace, and helpers to use a session on them through the library.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "caisson/session_pool.h"
#include "support/environment.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace caisson::test {

/// Skips where `full` does not work. CAISSON_HOME is private to the test, also for programs it starts.
class SessionTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    requireOrSkip(fullIsolationAvailable(&why), why);
    home_path = home / "state";
    ::setenv("CAISSON_HOME", home_path.c_str(), 1);
    auto opened = SessionStore::open(std::getenv("CAISSON_BIN"));  // a session's supervisor is the caisson program
    ASSERT_TRUE(opened) << opened.error().message();
    store.emplace(*std::move(opened));
  }
  void TearDown() override {
    if (!store) return;
    const auto cleaned = store->clean(true);
    EXPECT_TRUE(cleaned) << cleaned.error().message();
    const auto left = store->list();
    ASSERT_TRUE(left) << left.error().message();
    EXPECT_TRUE(left->empty());
  }

  [[nodiscard]] SessionOptions options() const {
    SessionOptions options{.policy = *Policy::profile("bash")};
    EXPECT_TRUE(options.policy.set("filesystem.workspace.path", workspace.path()));
    return options;
  }
  Session create() {
    auto made = store->create(options());
    EXPECT_TRUE(made) << made.error().message();
    return *std::move(made);
  }
  static RunResult exec(Session& session, const std::string& script) {
    auto result = session.exec({.command = {"sh", "-c", script}});
    EXPECT_TRUE(result) << result.error().message();
    if (!result) return {};
    if (result->error) ADD_FAILURE() << script << ": " << result->error->message();
    return *std::move(result);
  }
  /// What the script prints; it must succeed.
  static std::string output(Session& session, const std::string& script) {
    const RunResult result = exec(session, script);
    EXPECT_EQ(exitStatus(result), 0) << script << ": " << result.err.data;
    return result.out.data;
  }
  [[nodiscard]] RunOutput cli(std::vector<std::string> arguments, RunOptions how = {}) const {
    arguments.insert(arguments.begin(), "session");
    if (how.cwd.empty()) how.cwd = workspace.path();
    return runCaisson(arguments, how);
  }

  const TempDir home, workspace;
  std::string home_path;
  std::optional<SessionStore> store;
};

}  // namespace caisson::test
