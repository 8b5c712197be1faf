#include "session/commit/journal.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <optional>

#include "base/sha256.h"
#include "sys/root_dir_testing.h"

namespace caisson::session {
namespace {

class CommitJournal : public testing::Test {
 protected:
  // The key of seals is made there.
  void SetUp() override { ::setenv("CAISSON_HOME", (directory_.path() + "/state").c_str(), 1); }
  void TearDown() override { home_ ? ::setenv("CAISSON_HOME", home_->c_str(), 1) : ::unsetenv("CAISSON_HOME"); }

  [[nodiscard]] std::string file() const { return directory_.path() + "/" + kJournal; }

  const std::optional<std::string> home_ =
      std::getenv("CAISSON_HOME") != nullptr ? std::optional<std::string>(std::getenv("CAISSON_HOME")) : std::nullopt;
  sys::fixtures::TempDir directory_;
  sys::RootDir session_ = std::move(*sys::RootDir::open(directory_.path()));
};

Transaction exampleTransaction() {
  Action file{.path = "src/a b\n.c", .mode = 0644, .size = 5, .sha256 = std::string(64, 'a')};
  file.before = HostIdentity{.type = sys::FileType::regular, .device = 1, .inode = 2, .size = 3, .modified_ns = 4};
  file.device = 7;
  file.inode = 8;
  file.merged = true;
  Action link{.kind = ActionKind::link, .path = "l", .target = "../x"};
  link.may_lead_out = true;
  return {.id = "t1",
          .workspace = "identity",
          .digest = "d",
          .since_ns = 11,
          .actions = {file, link, {.kind = ActionKind::remove, .path = "old"}},
          .known_directories = {{"src", 1, 2, 0755, "o"}}};
}

TEST_F(CommitJournal, IsReadAsItWasWritten) {
  ASSERT_TRUE(writeJournal(session_, exampleTransaction()));
  const auto read = readJournal(session_);
  ASSERT_TRUE(read && *read);
  EXPECT_EQ(codec::encode(**read), codec::encode(exampleTransaction()));
}

TEST_F(CommitJournal, MissingJournalIsNotAnError) {
  const auto read = readJournal(session_);
  ASSERT_TRUE(read);
  EXPECT_FALSE(read->has_value());
}

TEST_F(CommitJournal, DamageAtAnyByteIsAnError) {
  ASSERT_TRUE(writeJournal(session_, exampleTransaction()));
  const std::string whole = sys::fixtures::readText(file());
  const auto put = [&](const std::string& text) { std::ofstream(file(), std::ios::binary) << text; };
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    put(damaged);
    EXPECT_FALSE(readJournal(session_)) << "byte " << at;
  }
  put(whole);
  EXPECT_TRUE(readJournal(session_));
  for (std::size_t size = whole.size(); size-- > 0;) {
    put(whole.substr(0, size));
    EXPECT_FALSE(readJournal(session_)) << "cut at " << size;
  }
}

/// Any program that can write the file can compute a checksum.
TEST_F(CommitJournal, ChecksumInPlaceOfTheSealIsRefusedAndTheFileKeptAside) {
  ASSERT_TRUE(writeJournal(session_, exampleTransaction()));
  const std::string whole = sys::fixtures::readText(file());
  const std::size_t heading = whole.find('\n') + 1;
  const std::string body = whole.substr(heading + 65);
  std::ofstream(file(), std::ios::binary) << whole.substr(0, heading) << hex(Sha256().add(body).finish()) << "\n"
                                          << body;
  EXPECT_FALSE(readJournal(session_));
  EXPECT_TRUE(sys::fixtures::exists(file() + ".invalid"));
  const auto read = readJournal(session_);
  ASSERT_TRUE(read) << "it is reported once";
  EXPECT_FALSE(read->has_value());
}

TEST(HostIdentity, ChangesWithContentAndWithTheFile) {
  const sys::FileInfo seen{
      .type = sys::FileType::regular, .size = 3, .inode = 2, .device = 1, .modified_ns = 4, .changed_ns = 5};
  const HostIdentity identity = HostIdentity::of(seen);
  EXPECT_TRUE(identity.matches(seen));
  const auto differs = [&](auto member, auto value) {
    sys::FileInfo other = seen;
    other.*member = value;
    return !identity.matches(other);
  };
  EXPECT_TRUE(differs(&sys::FileInfo::size, 4U));
  EXPECT_TRUE(differs(&sys::FileInfo::device, 2U));
  EXPECT_TRUE(differs(&sys::FileInfo::inode, 3U));
  EXPECT_TRUE(differs(&sys::FileInfo::modified_ns, 5));
  EXPECT_TRUE(differs(&sys::FileInfo::changed_ns, 6));
  EXPECT_TRUE(differs(&sys::FileInfo::type, sys::FileType::link));
}

TEST(HostIdentity, RenameMayChangeOnlyTheChangeTime) {
  sys::FileInfo seen{
      .type = sys::FileType::regular, .size = 3, .inode = 2, .device = 1, .modified_ns = 4, .changed_ns = 5};
  const HostIdentity identity = HostIdentity::of(seen);
  seen.changed_ns = 6;
  EXPECT_TRUE(identity.matches(seen, true));
  seen.modified_ns = 6;
  EXPECT_FALSE(identity.matches(seen, true));
}

TEST(HostIdentity, DirectoryMayGainNames) {
  sys::FileInfo seen{
      .type = sys::FileType::directory, .size = 3, .inode = 2, .device = 1, .modified_ns = 4, .changed_ns = 5};
  const HostIdentity identity = HostIdentity::of(seen);
  seen.size = 4;
  seen.modified_ns = 9;
  EXPECT_TRUE(identity.matches(seen));
  seen.inode = 3;
  EXPECT_FALSE(identity.matches(seen));
}

}  // namespace
}  // namespace caisson::session
