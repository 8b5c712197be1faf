// Secret files that are created in a workspace during a session.
#include "functional/session.h"
#include "support/conforms.h"
#include "support/scripts.h"

namespace caisson::test {
namespace {

using SessionSecrets = SessionTest;

constexpr const char* kReadAll = "find . -type f -exec cat {} + 2>/dev/null | sort";

TEST_F(SessionSecrets, FileThatAppearsLaterIsHiddenFromTheNextCommand) {
  CONFORMS("R-FILES-25");
  workspace.write("backend/app.py", "code\n");
  Session session = create();
  EXPECT_EQ(output(session, kReadAll), "code\n");
  workspace.write("backend/.env.production", "canary\n");
  EXPECT_EQ(output(session, kReadAll), "code\n");
  workspace.write("certs/server.key", "-----BEGIN PRIVATE KEY-----\ncanary\n");
  EXPECT_EQ(output(session, "echo mine > new; " + std::string(kReadAll)), "code\nmine\n");
  EXPECT_EQ(output(session, kReadAll), "code\nmine\n") << "it stays hidden when the layers change";
}

TEST_F(SessionSecrets, ShapeOfARepositoryHidesNothingFromTheSearch) {
  for (const char* name : {"HEAD", "commondir"}) workspace.write(name, "");
  for (const char* path : {".env", "conf/.env", "x/.GIT/.env"}) workspace.write(path, "canary\n");
  Session session = create();
  EXPECT_EQ(output(session, kReadAll), "");
  workspace.write("later/.env", "canary\n");
  EXPECT_EQ(output(session, kReadAll), "") << "also for files that appear later";
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

/// A background command that waits for a line before it reads the file, so that the sandbox never saw the name missing.
class SecretsInBackground : public SessionTest {
 protected:
  std::uint32_t startReader(Session& session, const std::string& script) {
    const auto started =
        session.start({.command = {"sh", "-c", "echo started; read line; " + script + "echo end"}, .keep_input = true});
    EXPECT_TRUE(started) << started.error().message();
    EXPECT_TRUE(eventually([&] { return log(session, *started) == "started\n"; }));
    return *started;
  }
  static std::string log(Session& session, std::uint32_t exec) {
    const auto piece = session.logs(exec, OutputStreamKind::out, 0, 1 << 20);
    EXPECT_TRUE(piece) << piece.error().message();
    return piece ? piece->data : "";
  }
  /// Lets the command read the file; returns its output.
  static std::string outputAfterReading(Session& session, std::uint32_t exec) {
    EXPECT_TRUE(session.feed(exec, "now\n", true));
    EXPECT_TRUE(session.wait(exec, 30));
    return log(session, exec);
  }
};

TEST_F(SecretsInBackground, FileThatAppearsIsHiddenFromARunningCommand) {
  workspace.write("backend/app.py", "code\n");
  Session session = create();
  const std::uint32_t exec =
      startReader(session, readUntilHidden("backend/.env") + readUntilHidden("server.key") + "cat backend/app.py; ");
  workspace.write("backend/.env", "canary\n");
  workspace.write("server.key", "-----BEGIN PRIVATE KEY-----\ncanary\n");
  EXPECT_EQ(outputAfterReading(session, exec), "started\ncode\nend\n");
}

TEST_F(SecretsInBackground, FileThatTheHostReplacesStaysHidden) {
  Session session = create();
  const std::uint32_t exec =
      startReader(session, readUntilHidden(".env") + "echo once; read line; " + readUntilHidden(".env"));
  workspace.write(".env", "canary\n");
  ASSERT_TRUE(session.feed(exec, "now\n", false));
  ASSERT_TRUE(eventually([&] { return log(session, exec) == "started\nonce\n"; }));
  workspace.write("fresh", "canary\n");
  std::filesystem::rename(workspace / "fresh", workspace / ".env");
  EXPECT_EQ(outputAfterReading(session, exec), "started\nonce\nend\n");
}

TEST_F(SecretsInBackground, NextCommandOfABusySessionDoesNotSeeThem) {
  Session session = create();
  const auto started = session.start({.command = {"sleep", "60"}});
  ASSERT_TRUE(started) << started.error().message();
  workspace.write(".env", "canary\n");
  const RunResult result = exec(session, "cat .env");  // at once: it waits for the mask
  EXPECT_EQ(result.out.data, "");
  EXPECT_NE(exitStatus(result), 0);
}

TEST_F(SecretsInBackground, StoppedProcessesDoNotDelayTheMask) {
  Session session = create();
  const std::uint32_t exec = startReader(
      session, "for p in /proc/[0-9]*; do p=${p#/proc/}; [ $p = $$ ] || kill -STOP $p; done 2> /dev/null; " +
                   readUntilHidden(".env"));
  const auto other = session.start({.command = {"sleep", "60"}});
  ASSERT_TRUE(other) << other.error().message();
  workspace.write(".env", "canary\n");
  EXPECT_EQ(outputAfterReading(session, exec), "started\nend\n");
}

TEST_F(SecretsInBackground, OwnFileOfTheSessionIsLeftAlone) {
  Session session = create();
  EXPECT_EQ(output(session, "echo mine > .env; cat .env"), "mine\n");
  EXPECT_EQ(output(session, "echo x > frozen"), "") << "this freezes the layer with the file";
  const std::uint32_t exec = startReader(session, readUntilHidden("other/.env") + "cat .env; ");
  workspace.write(".env", "canary\n");
  workspace.write("other/.env", "canary\n");
  EXPECT_EQ(outputAfterReading(session, exec), "started\nmine\nend\n");
}

TEST_F(SecretsInBackground, LeftBehindProcessDoesNotSeeThem) {
  Session session = create();
  // `ls` finds the name without looking it up, which would remember that it was missing.
  EXPECT_EQ(output(session, "(until ls -A | grep -qx .env; do sleep 0.01; done; " + readUntilHidden(".env") +
                                "echo end) > result 2> /dev/null & echo started"),
            "started\n");
  workspace.write(".env", "canary\n");
  EXPECT_TRUE(eventually(
      [&] {
        const auto piece = session.read("result");
        return piece && piece->data == "end\n";
      },
      std::chrono::seconds(20)));
}

/// `session read`, and the files that a model reads over MCP.
TEST_F(SessionSecrets, FileThatAppearsIsHiddenFromClientsThatReadFiles) {
  workspace.write("plain", "shown\n");
  Session session = create();
  EXPECT_EQ(output(session, "cat plain"), "shown\n");
  workspace.write("conf/.env", "canary\n");
  EXPECT_FALSE(session.read("conf/.env"));
  const auto plain = session.read("plain");
  ASSERT_TRUE(plain) << plain.error().message();
  EXPECT_EQ(plain->data, "shown\n");
  EXPECT_EQ(output(session, "echo x > new; " + std::string(kReadAll)), "shown\nx\n");
  EXPECT_FALSE(session.read("conf/.env")) << "it stays hidden when the layers change";
}

}  // namespace
}  // namespace caisson::test
