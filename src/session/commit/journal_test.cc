#include "session/commit/journal.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "sys/root_dir_testing.h"

namespace caisson::session {
namespace {

class CommitJournal : public testing::Test {
 protected:
  [[nodiscard]] std::string file() const { return directory_.path() + "/" + kJournal; }

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
          .known_directories = {"src"}};
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
  std::fstream stream(file(), std::ios::in | std::ios::out | std::ios::binary);
  const auto put = [&](std::size_t at, char byte) {
    stream.seekp(static_cast<std::streamoff>(at)).put(byte).flush();
    ASSERT_TRUE(stream);
  };
  const std::size_t separator = whole.find('\n') + 65;  // after the checksum; carries nothing
  for (std::size_t at = 0; at < whole.size(); ++at) {
    put(at, static_cast<char>(whole[at] ^ 1));
    EXPECT_EQ(readJournal(session_).has_value(), at == separator) << "byte " << at;
    put(at, whole[at]);
  }
  EXPECT_TRUE(readJournal(session_));
  for (std::size_t size = whole.size(); size-- > 0;) {
    std::filesystem::resize_file(file(), size);
    EXPECT_FALSE(readJournal(session_)) << "cut at " << size;
  }
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
