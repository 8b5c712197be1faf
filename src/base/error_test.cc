#include "base/error.h"
#include "support/conforms.h"

#include <gtest/gtest.h>
#include <cerrno>

namespace caisson {
namespace {

TEST(Error, NamesCallObjectReasonAndHint) {
  CONFORMS("R-USE-5");
  const Error error = sysError(Stage::mounts, "mount_setattr", "/workspace", EPERM, "run caisson doctor");
  EXPECT_EQ(error.message(), "/workspace: Operation not permitted (mount_setattr: EPERM)\n  try: run caisson doctor");
}

TEST(Error, ReasonReplacesTheErrnoText) {
  Error error = sysError(Stage::exec, "execve", "x", ENOENT);
  error.reason = "no such program inside the sandbox";
  EXPECT_EQ(error.message(), "x: no such program inside the sandbox (execve: ENOENT)");
}

TEST(Error, CallIsNamedWhereThereIsNoObject) {
  EXPECT_EQ(sysError(Stage::launch, "pipe2", "", EMFILE).message(), "pipe2: Too many open files (EMFILE)");
}

TEST(Error, PlainErrorHasNoCall) {
  EXPECT_EQ(plainError(Stage::policy, "decode", "p.toml:2: name", "too long").message(), "p.toml:2: name: too long");
  EXPECT_EQ(plainError(Stage::usage, "caisson", "", "no command given").message(), "no command given");
}

TEST(Error, SeveralMistakesOfOneInputAreListedTogether) {
  const Error all = together({plainError(Stage::policy, "decode", "a", "wrong", "fix a"),
                              plainError(Stage::policy, "decode", "b", "missing")});
  EXPECT_EQ(all.object, "a");
  EXPECT_EQ(all.message(), "a: wrong\n  try: fix a\nb: missing");
}

TEST(Error, NamesAnUnknownErrnoByNumber) { EXPECT_EQ(errnoName(9999), "errno 9999"); }

}  // namespace
}  // namespace caisson
