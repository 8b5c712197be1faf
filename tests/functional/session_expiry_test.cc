// A session's time: extended by use, and with a grace period for uncommitted changes.
#include <filesystem>
#include <fstream>

#include "functional/session.h"
#include "session/store/metadata.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

class SessionExpiry : public SessionTest {
 protected:
  Session createFor(double seconds, const std::string& name = {}) {
    SessionOptions wanted = options();
    wanted.ttl_seconds = seconds;
    wanted.name = name;
    wanted.keep = true;
    auto made = store->create(wanted);
    EXPECT_TRUE(made) << made.error().message();
    return *std::move(made);
  }
  [[nodiscard]] bool isExpired(const std::string& id) const {
    const auto json = cli({"list", "--json"}).json();
    for (const auto& one : json["sessions"]) {
      if (one["id"] == id) return one["expired"].get<bool>();
    }
    return true;
  }
  void expire(const Session& session) {
    ASSERT_TRUE(eventually([&] { return isExpired(session.id()); }, std::chrono::seconds(20)));
  }
  [[nodiscard]] bool isStored(const std::string& id) const { return exists(home_path + "/stores/" + id); }
  /// Moves the session's end into the past by this much.
  void moveExpiryBack(const std::string& id, double seconds) const {
    const std::string directory = home_path + "/sessions/" + id;
    const std::string file = directory + "/meta.json";
    auto metadata = session::metadataFromJson(readFile(file), file);
    ASSERT_TRUE(metadata) << metadata.error().message();
    metadata->setTtl(session::Moment::now(), -seconds);
    std::ofstream(file, std::ios::trunc) << session::toJson(*metadata);
    std::filesystem::remove(directory + "/activity");
  }
};

TEST_F(SessionExpiry, RequestsExtendTheTime) {
  CONFORMS("R-SESSION-14");
  Session session = createFor(4);
  const auto began = std::chrono::steady_clock::now();
  // Twice its time, with requests that come well within it.
  while (std::chrono::steady_clock::now() - began < std::chrono::seconds(8)) {
    ASSERT_EQ(cli({"exec", session.id(), "--", "true"}).exit_status, 0);
    sleepFor(std::chrono::milliseconds(500));
  }
  EXPECT_GT(session.info()->expires_in, 1);
  EXPECT_TRUE(eventually([&] { return !store->find(session.id()); }, std::chrono::seconds(20))) << "left alone it ends";
}

TEST_F(SessionExpiry, ReviewExtendsTheTimeToo) {
  Session session = createFor(4);
  const auto began = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - began < std::chrono::seconds(8)) {
    ASSERT_EQ(cli({"diff", session.id()}).exit_status, 0);
    sleepFor(std::chrono::milliseconds(500));
  }
  EXPECT_TRUE(session.info()->live) << "its supervisor looks at the time that clients extended";
}

TEST_F(SessionExpiry, ProcessesOfThePayloadDoNotExtendTheTime) {
  CONFORMS("R-SESSION-3");
  Session session = createFor(2);
  ASSERT_TRUE(session.start({.command = {"sh", "-c", "while :; do echo x > f; sleep 0.1; done"}}));
  expire(session);
  EXPECT_TRUE(eventually([&] { return !session.info()->live; }));
}

TEST_F(SessionExpiry, UncommittedChangesAreKeptAndListed) {
  CONFORMS("R-SESSION-14");
  workspace.write("f", "1\n");
  Session session = createFor(2, "worked");
  output(session, "echo 2 >> f; echo new > g");
  expire(session);
  EXPECT_TRUE(eventually([&] { return !session.info()->live; })) << "its sandbox is gone";
  const std::string list = cli({"list"}).out;
  EXPECT_NE(list.find("expired, uncommitted changes kept for 6d23h  worked"), std::string::npos) << list;
  const auto info = cli({"info", "worked", "--json"}).json();
  EXPECT_EQ(info["expired"], true);
  EXPECT_GT(info["removed_in"], 6.9 * 86400);
  EXPECT_EQ(cli({"diff", "worked"}).out, "M f\nA g\n");
  EXPECT_NE(cli({"export", "worked"}).out.find("+2\n"), std::string::npos);
  const RunOutput refused = cli({"exec", "worked", "--", "true"});
  EXPECT_EQ(refused.exit_status, 125);
  EXPECT_NE(refused.err.find("expired"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("session renew"), std::string::npos) << refused.err;
  EXPECT_EQ(cli({"create", "--name", "worked"}).exit_status, 125) << "its name is still its own";
  ASSERT_EQ(cli({"renew", "worked", "1h"}).exit_status, 0);
  EXPECT_EQ(cli({"exec", "worked", "--", "cat", "f", "g"}).out, "1\n2\nnew\n");
}

TEST_F(SessionExpiry, CommitOfExpiredSessionRemovesIt) {
  workspace.write("f", "1\n");
  Session session = createFor(2);
  output(session, "echo 2 > f");
  expire(session);
  EXPECT_TRUE(isStored(session.id()));
  const RunOutput committed = cli({"commit", session.id()});
  EXPECT_EQ(committed.exit_status, 0) << committed.describe();
  EXPECT_EQ(readFile(workspace / "f"), "2\n");
  EXPECT_EQ(cli({"list"}).out, "");
  EXPECT_FALSE(isStored(session.id()));
}

TEST_F(SessionExpiry, SessionWithoutChangesIsRemoved) {
  workspace.write("f", "1\n");
  Session session = createFor(2);
  output(session, "cat f > t; cat t > f; rm t");
  EXPECT_TRUE(eventually([&] { return cli({"list"}).out.empty(); }, std::chrono::seconds(20)));
  EXPECT_FALSE(isStored(session.id()));
}

TEST_F(SessionExpiry, GracePeriodEnds) {
  CONFORMS("R-SESSION-14");
  workspace.write("f", "1\n");
  Session session = create();
  output(session, "echo 2 > f");
  moveExpiryBack(session.id(), kSessionGraceSeconds - 600);
  EXPECT_NE(cli({"list"}).out.find("expired"), std::string::npos) << "ten minutes are left";
  EXPECT_TRUE(store->find(session.id()));
  moveExpiryBack(session.id(), kSessionGraceSeconds + 600);
  EXPECT_FALSE(store->find(session.id()));
  EXPECT_EQ(cli({"list"}).out, "");
  EXPECT_FALSE(isStored(session.id()));
}

TEST_F(SessionExpiry, DestroyWarnsAboutUncommittedChanges) {
  workspace.write("f", "1\n");
  Session changed = create(), same = create();
  output(changed, "echo 2 > f");
  output(same, "cat f");
  const RunOutput quiet = cli({"destroy", same.id()});
  EXPECT_EQ(quiet.exit_status, 0);
  EXPECT_EQ(quiet.err, "");
  Session third = create();
  const RunOutput warned = cli({"destroy", changed.id(), "unknown", third.id()});
  EXPECT_EQ(warned.exit_status, 125) << "one of them is unknown";
  EXPECT_NE(warned.err.find("warning: " + changed.id() + " has uncommitted changes"), std::string::npos) << warned.err;
  EXPECT_EQ(warned.err.find(third.id()), std::string::npos) << warned.err;
  EXPECT_FALSE(store->find(changed.id()));
  EXPECT_FALSE(store->find(third.id())) << "the others are destroyed";
}

}  // namespace
}  // namespace caisson::test
