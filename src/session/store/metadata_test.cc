#include "session/store/metadata.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/version.h"
#include "support/conforms.h"
#include "sys/root_dir_testing.h"

namespace caisson::session {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

Metadata example() {
  Metadata metadata;
  metadata.id = "cs-0123456789abcdef0123456789abcdef";
  metadata.name = "work";
  metadata.workspace = "/home/a \"b\"";
  metadata.began = {1000 * kSecond, 10 * kSecond, "boot"};
  metadata.setTtl(metadata.began, 3600);
  metadata.family = "f";
  metadata.frozen = {"2", "1"};
  metadata.upper = "3";
  metadata.checkpoints = {{"first", 7, {"1"}}};
  metadata.pooled = true;
  metadata.payload_id = 1000;
  metadata.granted = {"a.example"};
  metadata.creator = ProcessId{12, 34, "boot"};
  metadata.pooled_by = ProcessId{56, 78, "boot"};
  return metadata;
}

TEST(SessionMetadata, IsReadAsItWasWritten) {
  CONFORMS("R-SESSION-2");
  const std::string text = toJson(example());
  const auto read = metadataFromJson(text, "here");
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(toJson(*read), text);
  ASSERT_TRUE(read->creator);
  EXPECT_EQ(read->creator->pid, 12);
  ASSERT_TRUE(read->pooled_by);
  EXPECT_EQ(read->pooled_by->pid, 56);
  EXPECT_EQ(read->checkpoints.at(0).frozen, std::vector<std::string>{"1"});
}

TEST(SessionMetadata, NewerFormatIsRefusedByNumber) {
  std::string text = toJson(example());
  const std::string format = "\"format\":" + std::to_string(kFormat);
  ASSERT_EQ(text.find(format), 1U);
  text.replace(1, format.size(), "\"format\":" + std::to_string(kFormat + 1));
  const auto read = metadataFromJson(text, "here");
  ASSERT_FALSE(read);
  EXPECT_TRUE(isOtherVersion(read.error()));
  EXPECT_NE(read.error().message().find("format " + std::to_string(kFormat + 1)), std::string::npos)
      << read.error().message();
}

TEST(SessionMetadata, PolicyOfAnotherVersionIsRefusedByItsName) {
  std::string text = toJson(example());
  const std::string own = "\"caisson\":\"" + std::string(ownVersion()) + "\"";
  const auto replace = [&](const std::string& what, const std::string& with) {
    const std::size_t at = text.find(what);
    ASSERT_NE(at, std::string::npos) << text;
    text.replace(at, what.size(), with);
  };
  replace("\"policy\":{", "\"policy\":{\"teleport\":true,");
  const auto damaged = metadataFromJson(text, "here");
  ASSERT_FALSE(damaged);
  EXPECT_FALSE(isOtherVersion(damaged.error())) << "no other version wrote it";
  replace(own, "\"caisson\":\"99.1.0\"");
  const auto newer = metadataFromJson(text, "here");
  ASSERT_FALSE(newer);
  EXPECT_TRUE(isOtherVersion(newer.error()));
  EXPECT_NE(newer.error().message().find("caisson 99.1.0"), std::string::npos) << newer.error().message();
  EXPECT_NE(newer.error().message().find("teleport"), std::string::npos) << newer.error().message();
}

/// Members that a later version added are ignored: they matter only with a new format.
TEST(SessionMetadata, UnknownMemberIsIgnored) {
  std::string text = toJson(example());
  text.insert(1, "\"labels\":{\"a\":[1]},");
  const auto read = metadataFromJson(text, "here");
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(toJson(*read), toJson(example()));
}

TEST(SessionMetadata, EachMissingMemberIsNamed) {
  CONFORMS("R-SESSION-2");
  for (const char* key :
       {"id", "began", "expires", "family", "frozen", "upper", "checkpoints", "payload_id", "policy"}) {
    std::string text = toJson(example());
    const std::string quoted = std::string("\"") + key + "\":";
    text.replace(text.find(quoted), quoted.size(), "\"other\":");
    const auto read = metadataFromJson(text, "here");
    ASSERT_FALSE(read) << key;
    EXPECT_NE(read.error().message().find(key), std::string::npos) << read.error().message();
  }
}

TEST(SessionMetadata, CutAnywhereIsAnError) {
  CONFORMS("R-SESSION-2");
  const std::string text = toJson(example());
  for (std::size_t size = 0; size + 2 < text.size(); size += 7)
    EXPECT_FALSE(metadataFromJson(text.substr(0, size), "here")) << size;
}

TEST(SessionTime, SettingTheWallClockDoesNotCount) {
  const Metadata metadata = example();
  const Moment set_forward{100'000 * kSecond, 20 * kSecond, "boot"};
  EXPECT_DOUBLE_EQ(metadata.secondsLeft(set_forward), 3590);
  EXPECT_DOUBLE_EQ(metadata.secondsSinceEnd(set_forward), 0);
  const Moment late{1000 * kSecond, 3620 * kSecond, "boot"};
  EXPECT_DOUBLE_EQ(metadata.secondsLeft(late), 0);
  EXPECT_DOUBLE_EQ(metadata.secondsSinceEnd(late), 10);
}

TEST(SessionTime, AfterARebootTheWallClockCounts) {
  const Moment rebooted{1100 * kSecond, 1 * kSecond, "another boot"};
  EXPECT_DOUBLE_EQ(example().secondsLeft(rebooted), 3500);
}

class SessionActivity : public testing::Test {
 protected:
  sys::fixtures::TempDir directory_;
  sys::RootDir session_ = std::move(*sys::RootDir::open(directory_.path()));
};

TEST_F(SessionActivity, ExtendsAndIsReadBack) {
  Metadata metadata = example();
  const Moment now = Moment::now();
  metadata.setTtl(now, 3600);
  metadata.expires.wall_ns -= 1800 * kSecond;
  metadata.expires.boot_ns -= 1800 * kSecond;
  ASSERT_TRUE(writeMetadata(session_, metadata));
  EXPECT_TRUE(extendByActivity(session_, metadata));
  EXPECT_GT(metadata.secondsLeft(Moment::now()), 3590);
  const auto read = readMetadata(session_);
  ASSERT_TRUE(read);
  EXPECT_GT(read->secondsLeft(Moment::now()), 3590);
}

TEST_F(SessionActivity, DoesNotReviveAnExpiredSession) {
  Metadata metadata = example();
  metadata.setTtl(Moment::now(), 3600);
  metadata.expires = Moment::now();
  EXPECT_FALSE(extendByActivity(session_, metadata));
}

TEST_F(SessionActivity, SmallExtensionIsNotWritten) {
  Metadata metadata = example();
  metadata.setTtl(Moment::now(), 3600);
  EXPECT_FALSE(extendByActivity(session_, metadata));
  EXPECT_FALSE(sys::fixtures::exists(directory_.path() + "/activity"));
}

TEST(ProcessIdTest, KnowsAReusedPid) {
  ProcessId self = ProcessId::of(::getpid());
  EXPECT_TRUE(self.isAlive());
  ++self.start;
  EXPECT_FALSE(self.isAlive()) << "another process with the same pid";
  self = ProcessId::of(::getpid());
  self.boot = "another boot";
  EXPECT_FALSE(self.isAlive());
  EXPECT_FALSE(ProcessId{}.isAlive());
}

std::int64_t timeOfANewFile(const std::string& path) {
  ::unlink(path.c_str());
  const sys::Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  struct stat status{};
  EXPECT_EQ(::fstat(file.get(), &status), 0);
  return status.st_ctim.tv_sec * kSecond + status.st_ctim.tv_nsec;
}

TEST_F(SessionActivity, FilesThatChangeLaterHaveLaterTimes) {
  for (int i = 0; i < 50; ++i) {
    const Moment now = Moment::now();
    waitForTickAfter(now);
    ASSERT_GT(timeOfANewFile(directory_.path() + "/f"), now.wall_ns);
    const Moment before = Moment::beforeThisTick();
    ASSERT_GT(timeOfANewFile(directory_.path() + "/f"), before.wall_ns);
  }
}

TEST_F(SessionActivity, InitRecordIsReadAsItWasWritten) {
  ASSERT_TRUE(writeInitRecord(session_, {{2, 3, "b"}, {4, 5, "b"}, {"u", "f"}}));
  const auto read = readInitRecord(session_);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->init.pid, 2);
  EXPECT_EQ(read->supervisor.start, 5U);
  EXPECT_EQ(read->layers, (std::vector<std::string>{"u", "f"}));
}

}  // namespace
}  // namespace caisson::session
