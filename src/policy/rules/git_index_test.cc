#include "policy/rules/git_index.h"

#include <gtest/gtest.h>

namespace caisson::policy {
namespace {

std::string number(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xFF);
  return bytes;
}

std::string header(std::uint32_t version, std::uint32_t count) { return "DIRC" + number(version) + number(count); }

/// What precedes the path: times, inode, mode, size, id, flags.
std::string fixedPart(std::uint32_t mode = 0100644, unsigned flags = 0) {
  std::string bytes;
  for (const std::uint32_t value : {11U, 12U, 13U, 14U, 15U, 16U, mode, 17U, 18U, 19U}) bytes += number(value);
  bytes += std::string(20, '\xAB');
  bytes += static_cast<char>(flags >> 8 & 0xFF);
  bytes += static_cast<char>(flags & 0xFF);
  return bytes;
}

std::string entry(const std::string& path, std::uint32_t mode = 0100644, unsigned flags = 0) {
  std::string bytes = fixedPart(mode, flags | static_cast<unsigned>(path.size())) + path;
  bytes.resize((bytes.size() + 8) / 8 * 8, '\0');
  return bytes;
}

std::vector<std::string> paths(std::string_view bytes) {
  std::vector<std::string> found;
  for (const IndexEntry& one : readIndex(bytes)) found.push_back(one.path);
  return found;
}

using Paths = std::vector<std::string>;

TEST(GitIndex, GivesEachFileWithItsIdentity) {
  const auto entries = readIndex(header(2, 2) + entry("a") + entry("dir/b.txt"));
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[1].path, "dir/b.txt");
  EXPECT_EQ(entries[1].id, "abababababababababababababababababababab");
  EXPECT_EQ(entries[1].changed_s, 11U);
  EXPECT_EQ(entries[1].changed_ns, 12U);
  EXPECT_EQ(entries[1].modified_s, 13U);
  EXPECT_EQ(entries[1].modified_ns, 14U);
  EXPECT_EQ(entries[1].inode, 16U);
  EXPECT_EQ(entries[1].size, 19U);
}

TEST(GitIndex, LeavesOutWhatIsNotOneRegularFile) {
  constexpr unsigned kAssumeValid = 0x8000, kSecondStage = 0x2000;
  EXPECT_EQ(paths(header(2, 5) + entry("link", 0120000) + entry("module", 0160000) +
                  entry("unmerged", 0100644, kSecondStage) + entry("assumed", 0100644, kAssumeValid) +
                  entry("kept", 0100755)),
            Paths{"kept"});
}

TEST(GitIndex, Format3HasMoreFlags) {
  const auto extended = [](const std::string& path, const std::string& flags) {
    std::string bytes = fixedPart(0100644, 0x4000U | static_cast<unsigned>(path.size())) + flags + path;
    bytes.resize((bytes.size() + 8) / 8 * 8, '\0');
    return bytes;
  };
  const std::string skipped("\x40\x00", 2), to_add("\x20\x00", 2), none("\0\0", 2);
  EXPECT_EQ(paths(header(3, 3) + extended("skipped", skipped) + extended("new", to_add) + extended("kept", none)),
            Paths{"kept"});
  EXPECT_EQ(paths(header(2, 1) + extended("x", none)), Paths{}) << "format 2 has no such flags";
}

TEST(GitIndex, Format4SharesTheBeginningOfPaths) {
  const std::string zero(1, '\0');
  const std::string bytes = header(4, 3) + fixedPart() + zero + "dir/one" + zero + fixedPart() + "\x03" + "two" + zero +
                            fixedPart() + "\x07" + "z" + zero;
  EXPECT_EQ(paths(bytes), (Paths{"dir/one", "dir/two", "z"}));
  const std::string drops_too_much = header(4, 1) + fixedPart() + "\x01" + "x" + zero;
  EXPECT_EQ(paths(drops_too_much), Paths{});
}

TEST(GitIndex, CutAnywhereGivesTheEntriesBefore) {
  const std::string first = header(2, 2) + entry("first");
  const std::string whole = first + entry("second");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_EQ(paths(whole.substr(0, size)), size < first.size() ? Paths{} : Paths{"first"}) << size;
  }
}

TEST(GitIndex, UnknownFormatsAreEmpty) {
  EXPECT_EQ(paths(header(1, 1) + entry("a")), Paths{});
  EXPECT_EQ(paths(header(5, 1) + entry("a")), Paths{});
  EXPECT_EQ(paths("DIRX" + number(2) + number(1) + entry("a")), Paths{});
}

std::string extendedEntry(const std::string& path, unsigned more, std::uint32_t mode = 0100644) {
  std::string bytes = fixedPart(mode, 0x4000U | static_cast<unsigned>(path.size()));
  bytes += static_cast<char>(more >> 8 & 0xFF);
  bytes += static_cast<char>(more & 0xFF);
  bytes += path;
  bytes.resize((bytes.size() + 8) / 8 * 8, '\0');
  return bytes;
}

constexpr unsigned kAssumed = 0x8000, kSkipped = 0x4000;
const std::string kChecksum(20, 'c');

TEST(GitIndexFlags, NamesFilesWhoseChangesGitDoesNotShow) {
  const auto flags =
      readIndexFlags(header(3, 4) + entry("plain") + entry("assumed", 0100644, kAssumed) +
                     extendedEntry("skipped", kSkipped) + extendedEntry("dir/", kSkipped, 0040000) + kChecksum);
  EXPECT_TRUE(flags.complete);
  EXPECT_EQ(flags.unwatched, (std::set<std::string>{"assumed", "dir/", "skipped"}));
  EXPECT_EQ(flags.shared, "");
}

TEST(GitIndexFlags, SplitIndexNamesTheSharedOne) {
  const std::string link = "link" + number(21) + std::string(20, '\x0A') + "x";
  const auto flags =
      readIndexFlags(header(2, 1) + entry("", 0100644, kAssumed) + "TREE" + number(2) + "ab" + link + kChecksum);
  EXPECT_EQ(flags.shared, "0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a");
  EXPECT_TRUE(flags.unnamed);
}

TEST(GitIndexFlags, NamesOfSha256AreReadToo) {
  std::string bytes = fixedPart(0100644, kAssumed | 4);
  bytes.insert(40, std::string(12, '\xAB'));
  bytes += "file";
  bytes.resize((bytes.size() + 8) / 8 * 8, '\0');
  EXPECT_TRUE(readIndexFlags(header(2, 1) + bytes + std::string(32, 'c')).unwatched.contains("file"));
}

TEST(GitIndexFlags, LengthsAreThoseThatGitReads) {
  std::string shorter = fixedPart(0100644, 1) + "abcdefgh";  // for git the next entry begins within this name
  shorter.resize(64, '\0');
  EXPECT_FALSE(readIndexFlags(header(2, 2) + shorter + entry("x", 0100644, kAssumed) + kChecksum)
                   .unwatched.contains("abcdefgh"));
  const std::string with_nul = entry(std::string("a\0b", 3), 0100644, kAssumed);
  EXPECT_EQ(readIndexFlags(header(2, 1) + with_nul + kChecksum).unwatched, std::set<std::string>{"a"});
}

TEST(GitIndexFlags, DamagedIndexIsIncomplete) {
  EXPECT_FALSE(readIndexFlags("").complete);
  EXPECT_FALSE(readIndexFlags(header(2, 5) + entry("a")).complete);
}

}  // namespace
}  // namespace caisson::policy
