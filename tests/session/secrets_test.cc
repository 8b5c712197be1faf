// Secret files that are created in a workspace during a session.
#include "functional/session.h"

namespace caisson::test {
namespace {

using SessionSecrets = SessionTest;

constexpr const char* kReadAll = "find . -type f -exec cat {} + 2>/dev/null | sort";

TEST_F(SessionSecrets, FileThatAppearsLaterIsHiddenFromTheNextCommand) {
  workspace.write("backend/app.py", "code\n");
  Session session = create();
  EXPECT_EQ(output(session, kReadAll), "code\n");
  workspace.write("backend/.env.production", "canary\n");
  EXPECT_EQ(output(session, kReadAll), "code\n");
  workspace.write("certs/server.key", "-----BEGIN PRIVATE KEY-----\ncanary\n");
  EXPECT_EQ(output(session, "echo mine > new; " + std::string(kReadAll)), "code\nmine\n");
  EXPECT_EQ(output(session, kReadAll), "code\nmine\n") << "it stays hidden when the layers change";
}

TEST_F(SessionSecrets, HiddenFileStaysHiddenWhenTheHostReplacesIt) {
  workspace.write(".env", "canary\n");
  Session session = create();
  EXPECT_EQ(output(session, kReadAll), "");
  workspace.write("fresh", "canary\n");
  std::filesystem::rename(workspace / "fresh", workspace / ".env");
  EXPECT_EQ(output(session, kReadAll), "");
}

TEST_F(SessionSecrets, CredentialsInGitConfigurationNeverShow) {
  for (const char* file : {"HEAD", "objects/x", "refs/x"})
    workspace.write(std::string(".git/") + file, "ref: refs/heads/main\n");
  workspace.write(".git/config", "[remote \"o\"]\n\turl = https://me:canary@example.org/x\n");
  Session session = create();
  EXPECT_EQ(output(session, "cat .git/config").find("canary"), std::string::npos);
  EXPECT_EQ(output(session, "echo x > f; cat .git/config").find("canary"), std::string::npos);
  EXPECT_NE(output(session, "cat .git/config").find("REDACTED@example.org"), std::string::npos);
}

TEST_F(SessionSecrets, BusySessionSaysWhatIsVisible) {
  Session session = create();
  const auto started = session.start({.command = {"sleep", "60"}});
  ASSERT_TRUE(started) << started.error().message();
  workspace.write(".env", "x\n");
  const RunResult result = exec(session, "true");
  bool told = false;
  for (const std::string& notice : result.notices) told = told || notice.find(".env") != std::string::npos;
  EXPECT_TRUE(told);
}

}  // namespace
}  // namespace caisson::test
