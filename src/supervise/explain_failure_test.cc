#include "supervise/explain_failure.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

namespace caisson::supervise {
namespace {

Error failure(Stage stage, const char* call, int code) {
  Error error;
  error.stage = stage;
  error.call = call;
  error.sys_errno = code;
  return error;
}

TEST(Failure, OfAMissingOrForbiddenCallPointsToTheDoctor) {
  for (const Stage stage : {Stage::launch, Stage::namespaces, Stage::mounts, Stage::identity, Stage::landlock,
                            Stage::seccomp, Stage::limits, Stage::self_test}) {
    for (const int code : {ENOSYS, EPERM, EACCES}) {
      Error error = failure(stage, "some_call", code);
      explainFailure(error, {});
      EXPECT_NE(error.hint.find("caisson doctor"), std::string::npos) << name(stage) << " " << code;
    }
  }
}

TEST(Failure, OfExecNamesTheFaultOfTheProgram) {
  for (const int code : {ENOENT, EACCES, ENOEXEC, E2BIG}) {
    Error error = failure(Stage::exec, "execve", code);
    explainFailure(error, {});
    EXPECT_FALSE(error.reason.empty()) << code;
    EXPECT_FALSE(error.hint.empty()) << code;
  }
}

TEST(Failure, ThatHasAHintKeepsIt) {
  Error error = failure(Stage::mounts, "open_tree", ENOSYS);
  error.hint = "its own";
  explainFailure(error, {});
  EXPECT_EQ(error.hint, "its own");
}

}  // namespace
}  // namespace caisson::supervise
