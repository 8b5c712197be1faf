// What was reviewed arrives or nothing does: the manifest, its digest, and files that change while they are read.
#include "functional/commit.h"

namespace caisson::test {
namespace {

class CommitManifest : public CommitTest {};

TEST_F(CommitManifest, ManifestNamesKindModeSizeHashAndTarget) {
  workspace.write("gone", "x\n");
  Session session = create();
  output(session, "rm gone; printf abc > f; chmod 750 f; ln -s f l; mkdir -m 700 d");
  const CommitReport report = commit(session, {.dry_run = true});
  ASSERT_EQ(applied(report), "d\nf\ngone\nl\n");
  EXPECT_EQ(report.applied[1].sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(report.applied[1].mode, 0750U);
  EXPECT_EQ(report.applied[1].size, 3U);
  EXPECT_EQ(report.applied[2].kind, ChangeKind::deleted);
  EXPECT_EQ(report.applied[3].target, "f");
  EXPECT_EQ(report.bytes, 3U);
  EXPECT_EQ(report.digest.size(), 64U);
  EXPECT_EQ(commit(session, {.dry_run = true}).digest, report.digest) << "the same changes have the same digest";
}

TEST_F(CommitManifest, ExpectedDigestCoversContentModeTargetAndFileSet) {
  workspace.write("f", "old\n");
  Session session = create();
  output(session, "echo aaa > f; ln -s f l");
  for (const char* change : {"echo bbb > f", "chmod 755 f", "ln -sfn f2 l", "echo x > extra", "rm l"}) {
    const std::string digest = commit(session, {.dry_run = true}).digest;
    output(session, change);
    const auto refused = session.commit({.expect = digest});
    ASSERT_FALSE(refused) << change;
    EXPECT_EQ(readFile(workspace / "f"), "old\n") << change;
    EXPECT_FALSE(exists(workspace / "extra"));
  }
  const std::string digest = commit(session, {.dry_run = true}).digest;
  EXPECT_EQ(commit(session, {.expect = digest}).digest, digest);
  EXPECT_EQ(readFile(workspace / "f"), "bbb\n");
  EXPECT_FALSE(session.commit({.expect = "no digest"}));
  expectNoLeftovers(session);
}

TEST_F(CommitManifest, DigestIsAcceptedOnTheCommandLine) {
  Session session = create();
  output(session, "echo one > f");
  const RunOutput dry = cli({"commit", "--dry-run", "--json", session.id()});
  const std::string digest = dry.json()["digest"];
  EXPECT_NE(cli({"commit", "--dry-run", session.id()}).err.find(digest), std::string::npos);
  output(session, "echo two > f");
  const RunOutput refused = cli({"commit", "--expect", digest, session.id()});
  EXPECT_EQ(refused.exit_status, 125) << refused.describe();
  EXPECT_FALSE(exists(workspace / "f"));
  output(session, "echo one > f");
  EXPECT_EQ(cli({"commit", "--expect", digest, session.id()}).exit_status, 0);
  EXPECT_EQ(readFile(workspace / "f"), "one\n");
}

TEST_F(CommitManifest, FileIsReadOnceWhileItIsRewritten) {
  Session session = create();
  output(session, "head -c 300000 /dev/zero | tr '\\0' a > f");
  auto started = session.start({.command = {"python3", "-c",
                                            "import os\n"
                                            "f = os.open('f', os.O_WRONLY)\n"
                                            "n = 0\n"
                                            "while True:\n"
                                            "  os.pwrite(f, bytes([97 + n % 26]) * 300000, 0)\n"
                                            "  n += 1\n"}});
  ASSERT_TRUE(started) << started.error().message();
  for (int round = 0; round < 20; ++round) {
    const CommitReport report = commit(session);
    EXPECT_FALSE(report.consistent);
    if (report.applied.empty()) continue;  // it was the same as in the round before
    const RunOutput sum = runProgram({"sha256sum", workspace / "f"});
    ASSERT_EQ(sum.out.substr(0, 64), report.applied[0].sha256) << "what arrived is not what the manifest says";
  }
  EXPECT_TRUE(commit(session, {.stop = true}).consistent);
  const auto status = session.status(*started);
  ASSERT_TRUE(status) << status.error().message();
  EXPECT_FALSE(status->running);
}

TEST_F(CommitManifest, IdleSessionIsFrozenAndResumed) {
  Session session = create();
  output(session, "echo 1 > f; echo kept > /tmp/kept");
  const CommitReport report = commit(session);
  EXPECT_TRUE(report.consistent);
  EXPECT_EQ(output(session, "cat f /tmp/kept; echo 2 > f; cat f"), "1\nkept\n2\n") << "its sandbox stays";
  EXPECT_EQ(applied(commit(session)), "f\n");
  EXPECT_EQ(readFile(workspace / "f"), "2\n");
}

TEST_F(CommitManifest, ListThatCannotBePrintedDoesNotMeanThatNothingWasWritten) {
  workspace.write("f", "old\n");
  Session session = create();
  output(session, "echo new > f");
  const auto printed_to_full = [&](const std::string& words) {
    return runProgram({"sh", "-c", caissonBinary() + " session " + words + " " + session.id() + " > /dev/full"});
  };
  EXPECT_EQ(printed_to_full("commit --dry-run").exit_status, 125);
  EXPECT_EQ(readFile(workspace / "f"), "old\n");
  EXPECT_EQ(printed_to_full("commit").exit_status, 1);
  EXPECT_EQ(readFile(workspace / "f"), "new\n");
  EXPECT_EQ(printed_to_full("uncommit").exit_status, 1);
  EXPECT_EQ(readFile(workspace / "f"), "old\n");
}

}  // namespace
}  // namespace caisson::test
