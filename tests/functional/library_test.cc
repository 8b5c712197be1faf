// Behaviour for programs that link the library, beyond the command line.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "audit/log.h"
#include "caisson/run.h"
#include "support/conforms.h"
#include "support/environment.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace caisson::test {
namespace {

class Library : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    requireOrSkip(fullIsolationAvailable(&why), why);
    ::setenv("CAISSON_HOME", home.path().c_str(), 1);
  }
  const TempDir home;
};

/// The size is fixed; the events that fill the first file are written by the library, the last ones by a run.
TEST_F(Library, ALogOfSixteenMebibytesIsContinuedInANewFile) {
  CONFORMS("R-AUDIT-11");
  const auto caisson = [&](std::vector<std::string> words) { return runCaisson(words); };
  ASSERT_EQ(caisson({"run", "--workspace", ":none", "--", "true"}).exit_status, 0);
  const std::string first = home / "audit/00000001.jsonl", second = home / "audit/00000002.jsonl";
  auto log = audit::Log::open();
  ASSERT_TRUE(log) << log.error().message();
  std::vector<audit::Event> batch;
  for (int i = 0; i < 100; ++i) {
    audit::Fields fields;
    fields.text("state", std::string(1000, 'x'));
    batch.push_back({audit::EventType::lifecycle, audit::Severity::info, "s", std::move(fields)});
  }
  for (int i = 0; i < 400 && !exists(second); ++i) ASSERT_TRUE(log->append(batch));
  ASSERT_TRUE(exists(second));
  EXPECT_GT(std::filesystem::file_size(first), 15U << 20);
  EXPECT_LE(std::filesystem::file_size(first), 17U << 20);
  ASSERT_EQ(caisson({"run", "--workspace", ":none", "--", "echo", "after"}).exit_status, 0);
  EXPECT_NE(readFile(second).find("echo after"), std::string::npos);
  EXPECT_NE(caisson({"audit", "show", "--json", "--event", "log_continued"}).out, "");
  const RunOutput verified = caisson({"audit", "verify"});
  EXPECT_EQ(verified.exit_status, 0) << verified.describe();
}

/// A file of the past is made large, without using the disk; the run that begins a new file removes it.
TEST_F(Library, ALogOfMoreThanAQuarterGibibyteLosesItsOldestFile) {
  CONFORMS("R-AUDIT-11");
  ASSERT_EQ(runCaisson({"run", "--workspace", ":none", "--", "echo", "first"}).exit_status, 0);
  const auto file = [&](int number) { return home / ("audit/0000000" + std::to_string(number) + ".jsonl"); };
  auto log = audit::Log::open();
  ASSERT_TRUE(log) << log.error().message();
  const auto fill = [&](int number) {  // to the size at which the next event begins a new file
    while (!exists(file(number)) || std::filesystem::file_size(file(number)) < (16U << 20)) {
      std::vector<audit::Event> batch;
      for (int i = 0; i < 1000; ++i) {
        audit::Fields fields;
        fields.text("state", std::string(1000, 'x'));
        batch.push_back({audit::EventType::lifecycle, audit::Severity::info, "s", std::move(fields)});
      }
      ASSERT_TRUE(log->append(batch));
    }
  };
  fill(1);
  ASSERT_EQ(runCaisson({"run", "--workspace", ":none", "--", "echo", "second"}).exit_status, 0);
  ASSERT_TRUE(exists(file(2)));
  fill(2);
  std::filesystem::resize_file(file(1), 200U << 20);
  ASSERT_EQ(runCaisson({"run", "--workspace", ":none", "--", "echo", "third"}).exit_status, 0);
  EXPECT_TRUE(exists(file(1)) && exists(file(3))) << "less than 256 MiB";
  fill(3);
  std::filesystem::resize_file(file(1), 257U << 20);
  ASSERT_EQ(runCaisson({"run", "--workspace", ":none", "--", "echo", "fourth"}).exit_status, 0);
  EXPECT_FALSE(exists(file(1))) << "it is too large";
  EXPECT_TRUE(exists(file(2)) && exists(file(3)) && exists(file(4)));
  const auto pruned =
      nlohmann::json::parse(runCaisson({"audit", "show", "--json", "--event", "log_pruned"}).out, nullptr, false);
  EXPECT_EQ(pruned["data"]["from_file"], 1) << pruned;
  EXPECT_EQ(pruned["data"]["oldest_kept"], 2) << pruned;
  const RunOutput verified = runCaisson({"audit", "verify"});
  EXPECT_EQ(verified.exit_status, 0) << verified.describe();
}

/// Until its exec the payload is a copy of the launching program. A poll sees that only at the right moment, so there
/// are many runs.
TEST_F(Library, MemoryOfTheCallerIsNotChargedToThePayload) {
  const std::vector<char> ballast(300U << 20, 'x');
  auto policy = Policy::profile("strict");
  ASSERT_TRUE(policy);
  ASSERT_TRUE(policy->set("resources.memory", "32M"));
  for (int i = 0; i < 40; ++i) {
    const auto result = run({.policy = *policy, .command = {"true"}, .program = caissonBinary()});
    ASSERT_TRUE(result) << result.error().message();
    ASSERT_EQ(name(result->outcome), name(OutcomeKind::exited)) << i << ": " << name(result->limit);
    EXPECT_LT(result->usage.peak_memory_bytes, 32U << 20);
    for (const std::string& warning : result->warnings)
      EXPECT_EQ(warning.find("memory came"), std::string::npos) << warning;
  }
  EXPECT_EQ(ballast.back(), 'x');
}

/// Cancels before the runtime has started the program, and while the program runs.
TEST_F(Library, ARunWithAnOciRuntimeIsCancelled) {
  CONFORMS("R-RUNTIME-1");
  const TempDir workspace;
  for (const char* runtime : {"runc", "crun"}) {
    if (!exists("/usr/sbin/" + std::string(runtime)) && !exists("/usr/bin/" + std::string(runtime))) continue;
    for (const bool at_once : {true, false}) {
      auto policy = Policy::profile("bash");
      ASSERT_TRUE(policy && policy->set("isolation.runtime", runtime));
      ASSERT_TRUE(policy->append("isolation.may_be_missing", "runtime"));
      ASSERT_TRUE(policy->set("filesystem.workspace.path", workspace.path()));
      ASSERT_TRUE(policy->set("filesystem.workspace.mode", "rw"));
      int ends[2];
      ASSERT_EQ(::pipe(ends), 0);
      std::thread canceller([&] {
        if (!at_once) eventually([&] { return exists(workspace / "ready"); }, std::chrono::seconds(20));
        (void)!::write(ends[1], "x", 1);
      });
      const auto result = run({.policy = *policy,
                               .command = {"sh", "-c", "touch ready; sleep 300"},
                               .program = caissonBinary(),
                               .cancel_descriptor = ends[0]});
      canceller.join();
      ::close(ends[0]);
      ::close(ends[1]);
      ::unlink((workspace / "ready").c_str());
      ASSERT_TRUE(result) << result.error().message();
      EXPECT_EQ(result->outcome, OutcomeKind::cancelled) << runtime << (result->error ? result->error->message() : "");
    }
  }
}

}  // namespace
}  // namespace caisson::test
