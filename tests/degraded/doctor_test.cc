// `caisson doctor` names the obstacle that a run would hit, and predicts the run's outcome.
#include <ostream>

#include "degraded/degraded.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

struct Obstacle {
  const char* missing;
  const char* item;                ///< of the report
  std::vector<std::string> words;  ///< in the finding or the remedy
};

void PrintTo(const Obstacle& one, std::ostream* out) { *out << one.missing; }

std::string nameOf(const testing::TestParamInfo<Obstacle>& test) { return asTestName(test.param.missing); }

class Doctor : public DegradedTest, public testing::WithParamInterface<Obstacle> {
 protected:
  void SetUp() override {
    if (kThreadSanitizer) GTEST_SKIP() << "a program with a thread of its sanitizer's cannot try namespaces";
    DegradedTest::SetUp();
  }
  [[nodiscard]] RunOutput doctor(const std::vector<std::string>& options = {}) const {
    std::vector<std::string> arguments{"doctor"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    RunOptions how;
    how.env["CAISSON_HOME"] = home.path();
    return caissonWithout(GetParam().missing, arguments, how);
  }
};

TEST_P(Doctor, NamesTheObstacleAndARemedy) {
  CONFORMS("R-USE-4");
  const RunOutput output = doctor({"--json"});
  ASSERT_FALSE(output.timed_out) << output.describe();
  const nlohmann::json report = output.json();
  ASSERT_TRUE(report.is_object()) << output.describe();
  bool found = false;
  for (const auto& item : report["items"]) {
    if (item["name"] != GetParam().item) continue;
    found = true;
    EXPECT_NE(item["state"], "pass") << item.dump(2);
    EXPECT_NE(item["remedy"], "") << item.dump(2);
    for (const std::string& word : GetParam().words)
      EXPECT_TRUE(contains(item.dump(), word)) << word << "\n" << item.dump(2);
  }
  EXPECT_TRUE(found) << report.dump(2);
}

TEST_P(Doctor, GivesTheVerdictThatARunGives) {
  CONFORMS("R-USE-4");
  const RunOutput output = doctor();
  EXPECT_FALSE(output.timed_out) << output.describe();
  const Ending ending = probe(GetParam().missing);
  EXPECT_EQ(output.exit_status == 0, !ending.refused())
      << output.describe() << "\n... but the run: " << ending.describe();
}

INSTANTIATE_TEST_SUITE_P(Degraded, Doctor,
                         testing::Values(Obstacle{"openat2", "system-calls", {"openat2", "ENOSYS"}},
                                         Obstacle{"openat2:EPERM", "system-calls", {"openat2", "EPERM"}},
                                         Obstacle{"clone3", "system-calls", {"clone3"}},
                                         Obstacle{"clone3:EPERM", "system-calls", {"clone3"}},
                                         Obstacle{"close_range", "system-calls", {"close_range"}},
                                         Obstacle{"fsopen", "mount-api", {"fsopen"}},
                                         Obstacle{"open_tree", "mount-api", {"open_tree"}},
                                         Obstacle{"move_mount", "mount-api", {"move_mount"}},
                                         Obstacle{"mount_setattr", "mount-api", {"mount_setattr"}},
                                         Obstacle{"landlock_create_ruleset", "landlock", {"ENOSYS"}},
                                         Obstacle{"landlock_restrict_self", "landlock", {"landlock_restrict_self"}},
                                         Obstacle{"namespaces", "user-namespaces", {"EPERM"}},
                                         Obstacle{"seccomp", "seccomp", {"ENOSYS"}},
                                         Obstacle{"time_namespace", "namespaces", {"time", "EINVAL"}}),
                         nameOf);

}  // namespace
}  // namespace caisson::test
