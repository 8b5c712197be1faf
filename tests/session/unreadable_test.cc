// Sessions whose metadata cannot be read, because they are damaged or of a newer version: they keep their own layers
// and nothing else. And metadata do not grow until they cannot be read.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <ctime>
#include <filesystem>
#include <fstream>

#include "support/environment.h"
#include "support/run.h"
#include "support/session_cli.h"

namespace caisson::test {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxMetadata = std::size_t{1024} * 1024;

class UnreadableSession : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    requireOrSkip(fullIsolationAvailable(&why), why);
  }
  [[nodiscard]] std::string sessionFile(const std::string& id, const std::string& name) const {
    return cli.home / ("state/sessions/" + id + "/" + name);
  }
  [[nodiscard]] bool hasStore(const std::string& id) const { return exists(cli.home / ("state/stores/" + id)); }
  [[nodiscard]] std::string metadata(const std::string& id) const { return readFile(sessionFile(id, "meta.json")); }
  void setMetadata(const std::string& id, const std::string& text) const {
    std::ofstream(sessionFile(id, "meta.json"), std::ios::binary) << text;
  }
  void makeNewer(const std::string& id) const {
    std::string text = metadata(id);
    const std::size_t at = text.find("\"format\":1,");
    ASSERT_NE(at, std::string::npos);
    setMetadata(id, text.replace(at, 11, "\"format\":99,"));
  }
  /// As an older version made it.
  void removeFamilyFile(const std::string& id) const { ASSERT_TRUE(fs::remove(sessionFile(id, "family"))); }
  /// A session that has a layer.
  [[nodiscard]] std::string createUsed(const SessionCli::Words& flags = {}) const {
    std::string id = cli.create("", flags);
    EXPECT_EQ(cli.script(id, "echo kept > kept").exit_status, 0);
    EXPECT_TRUE(hasStore(id));
    return id;
  }
  void makeOlder(const std::string& id, std::time_t age) const {
    const timespec time{std::time(nullptr) - age, 0};
    const timespec times[2] = {time, time};
    ASSERT_EQ(::utimensat(AT_FDCWD, sessionFile(id, "").c_str(), times, 0), 0);
  }
  void destroy(const std::string& id) const {
    const RunOutput destroyed = cli.caisson({"session", "destroy", id});
    EXPECT_EQ(destroyed.exit_status, 0) << destroyed.describe();
  }
  void clean() const {
    const RunOutput cleaned = cli.caisson({"clean"});
    EXPECT_EQ(cleaned.exit_status, 0) << cleaned.describe();
  }

  const SessionCli cli;
};

TEST_F(UnreadableSession, OfNewerVersionKeepsNoLayersOfOthers) {
  const std::string unreadable = createUsed(), other = createUsed(), third = createUsed();
  const std::string good = metadata(unreadable);
  makeNewer(unreadable);
  destroy(other);
  EXPECT_FALSE(hasStore(other));
  removeFamilyFile(unreadable);
  destroy(third);
  EXPECT_FALSE(hasStore(third));
  setMetadata(unreadable, good);
  EXPECT_EQ(cli.exec(unreadable, {"cat", "kept"}).out, "kept\n");
}

TEST_F(UnreadableSession, DamagedOneKeepsItsLayersOnly) {
  const std::string unreadable = createUsed(), other = createUsed();
  const std::string good = metadata(unreadable);
  const RunOutput forked = cli.caisson({"session", "fork", "--stop", unreadable});
  ASSERT_EQ(forked.exit_status, 0) << forked.describe();
  setMetadata(unreadable, std::string(kMaxMetadata + 1, ' '));
  destroy(other);
  EXPECT_FALSE(hasStore(other));
  destroy(forked.out.substr(0, forked.out.find('\n')));
  EXPECT_TRUE(hasStore(unreadable));
  setMetadata(unreadable, good);
  clean();
  EXPECT_TRUE(hasStore(unreadable));
  EXPECT_TRUE(exists(sessionFile(unreadable, "meta.json")));
}

TEST_F(UnreadableSession, ForkIsDestroyedWithItsLayers) {
  const std::string first = createUsed();
  const RunOutput forked = cli.caisson({"session", "fork", "--stop", first});
  ASSERT_EQ(forked.exit_status, 0) << forked.describe();
  const std::string fork = forked.out.substr(0, forked.out.find('\n'));
  destroy(first);
  EXPECT_TRUE(hasStore(first)) << "the fork uses its layers";
  setMetadata(fork, "{");
  destroy(fork);
  EXPECT_FALSE(hasStore(first));
}

TEST_F(UnreadableSession, CleanRemovesLayersOfNoSessionOnceAllFamiliesAreKnown) {
  const std::string unreadable = createUsed(), other = createUsed(), live = createUsed();
  removeFamilyFile(unreadable);
  setMetadata(unreadable, "{");
  destroy(other);
  clean();
  EXPECT_TRUE(hasStore(other)) << "the unreadable session might be a fork of it";
  destroy(unreadable);
  clean();
  EXPECT_FALSE(hasStore(other));
  EXPECT_FALSE(hasStore(unreadable));
  EXPECT_EQ(cli.exec(live, {"cat", "kept"}).out, "kept\n");
}

TEST_F(UnreadableSession, CleanKeepsLayersThatAForkUses) {
  const std::string first = createUsed();
  const RunOutput forked = cli.caisson({"session", "fork", "--stop", first});
  ASSERT_EQ(forked.exit_status, 0) << forked.describe();
  const std::string fork = forked.out.substr(0, forked.out.find('\n'));
  removeFamilyFile(fork);
  destroy(first);
  clean();
  EXPECT_EQ(cli.exec(fork, {"cat", "kept"}).out, "kept\n");
}

TEST_F(UnreadableSession, DamagedOneIsRemovedAWeekAfterItsLastChange) {
  constexpr std::time_t kDay = 86400;
  const std::string damaged = cli.create("", {"--name", "damaged"}), newer = cli.create(), fresh = cli.create();
  ASSERT_TRUE(hasStore(damaged));
  setMetadata(damaged, "{");
  setMetadata(fresh, "{");
  makeNewer(newer);
  makeOlder(damaged, 6 * kDay);
  clean();
  EXPECT_TRUE(exists(sessionFile(damaged, "meta.json")));
  EXPECT_NE(cli.caisson({"session", "list"}).out.find(damaged + "  damaged  unusable: "), std::string::npos);
  makeOlder(damaged, 8 * kDay);
  makeOlder(newer, 8 * kDay);
  clean();
  EXPECT_FALSE(exists(sessionFile(damaged, "meta.json")));
  EXPECT_FALSE(hasStore(damaged));
  EXPECT_TRUE(exists(sessionFile(newer, "meta.json"))) << "its version can use it";
  EXPECT_TRUE(exists(sessionFile(fresh, "meta.json")));
}

TEST_F(UnreadableSession, IsNotMadeByALargeEnvironment) {
  const auto variables = [](std::size_t count) {
    std::string policy = "[environment.set]\n";
    for (std::size_t at = 0; at < count; ++at)
      policy += "V" + std::to_string(at) + " = \"" + std::string(4000, 'v') + "\"\n";
    return policy;
  };
  const std::string file = cli.home.write("large.toml", "extends = \"bash\"\n" + variables(150));
  const RunOutput refused = cli.caisson({"session", "create", "--policy", file});
  EXPECT_NE(refused.exit_status, 0) << refused.describe();
  EXPECT_NE(refused.err.find("the limit is 524288"), std::string::npos) << refused.describe();
  EXPECT_EQ(cli.caisson({"session", "list"}).out, "");
  const std::string id = cli.create(variables(100));
  EXPECT_EQ(cli.script(id, "echo ${#V99}").out, "4000\n");
}

TEST_F(UnreadableSession, IsNotMadeByCheckpoints) {
  const std::string id = cli.create();
  std::string text = metadata(id);
  const std::size_t at = text.find("\"policy\":{");
  ASSERT_NE(at, std::string::npos);
  ASSERT_EQ(text.find("\"typed\":"), std::string::npos);
  // The next checkpoints would make it longer than what can be read.
  setMetadata(id, text.insert(at, "\"typed\":[\"" + std::string(kMaxMetadata - text.size() - 150, 't') + "\"],"));
  for (int round = 0; round < 4; ++round) {
    ASSERT_EQ(cli.script(id, "echo " + std::to_string(round) + " > file").exit_status, 0) << round;
    const RunOutput refused = cli.caisson({"session", "checkpoint", "--stop", id});
    EXPECT_NE(refused.exit_status, 0) << refused.describe();
    EXPECT_NE(refused.err.find("the limit is 983040"), std::string::npos) << refused.describe();
  }
  EXPECT_EQ(cli.exec(id, {"cat", "file"}).out, "3\n");
  EXPECT_EQ(cli.caisson({"session", "renew", id, "2h"}).exit_status, 0);
}

}  // namespace
}  // namespace caisson::test
