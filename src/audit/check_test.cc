#include "audit/check.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>

#include "audit/log.h"
#include "audit/reader.h"
#include "support/conforms.h"
#include "support/temp_dir.h"

namespace caisson::audit {
namespace {

using test::readFile;
using test::TempDir;

std::size_t peakKilobytes() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return static_cast<std::size_t>(used.ru_maxrss);
}

class AuditCheck : public testing::Test {
 protected:
  void SetUp() override { fill(10); }

  void fill(int events, Settings settings = {}) const {
    auto log = Log::open(path_, settings);
    ASSERT_TRUE(log) << log.error().message();
    for (int i = 0; i < events; ++i)
      ASSERT_TRUE(log->append({EventType::lifecycle, Severity::info, "cs-x", Fields().number("number", i)}));
  }

  [[nodiscard]] CheckReport check(const CheckOptions& options = {}) const {
    auto report = checkLog(path_, options);
    EXPECT_TRUE(report) << report.error().message();
    return report ? *report : CheckReport{};
  }

  [[nodiscard]] std::string file(std::uint32_t number) const { return path_ + "/" + logName(number); }

  [[nodiscard]] std::vector<std::string> lines(std::uint32_t number = 1) const {
    std::vector<std::string> result;
    LineCutter cutter;
    cutter.add(readFile(file(number)), [&](std::string_view line) { result.emplace_back(line); });
    return result;
  }

  void put(const std::vector<std::string>& lines, std::uint32_t number = 1) const {
    std::ofstream out(file(number), std::ios::trunc);
    for (const std::string& line : lines) out << line;
  }

  void expectFinding(const std::string& words, std::uint64_t line, const CheckOptions& options = {}) const {
    const CheckReport report = check(options);
    std::string all;
    bool found = false;
    for (const Finding& finding : report.findings) {
      all += finding.file + ":" + std::to_string(finding.line) + ": " + finding.what + "\n";
      found = found || (finding.what.find(words) != std::string::npos && finding.line == line);
    }
    EXPECT_TRUE(found) << "no \"" << words << "\" at line " << line << " in\n" << all;
  }

  const TempDir dir_;
  const std::string path_ = dir_ / "audit";
};

TEST_F(AuditCheck, LogThatAnotherProcessHoldsIsAnErrorThatNamesIt) {
  const std::string head = path_ + "/" + kHeadName;
  sys::Fd holder(::open(head.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(holder.get(), LOCK_EX), 0);
  auto checked =
      std::async(std::launch::async, [&] { return checkLog(path_, {.lock_timeout = std::chrono::milliseconds(50)}); });
  const bool bounded = checked.wait_for(std::chrono::seconds(30)) == std::future_status::ready;
  holder.reset();
  EXPECT_TRUE(bounded) << "it waits without a limit";
  const auto report = checked.get();
  ASSERT_FALSE(report);
  EXPECT_NE(report.error().message().find(head + ": another process holds it"), std::string::npos)
      << report.error().message();
  EXPECT_TRUE(check().whole()) << "the log is free again";
}

TEST_F(AuditCheck, IntactLogPasses) {
  const CheckReport report = check();
  EXPECT_TRUE(report.whole()) << report.findings.at(0).what;
  EXPECT_EQ(report.lines, 11U);
  EXPECT_TRUE(report.macs_checked);
  EXPECT_TRUE(check({.anchor = report.head}).whole());
  fill(20);
  EXPECT_TRUE(check({.anchor = report.head}).whole()) << "an anchor stays good while the log grows";
}

TEST_F(AuditCheck, FindsAnEditAndSaysWhere) {
  auto all = lines();
  const std::size_t at = all[4].find("\"number\":3");
  ASSERT_NE(at, std::string::npos);
  all[4].replace(at, 10, "\"number\":9");
  put(all);
  expectFinding("line 5 was changed", 5);
  EXPECT_EQ(check().findings.size(), 1U) << "one edit is one finding";
}

TEST_F(AuditCheck, FindsADeletedLine) {
  CONFORMS("R-AUDIT-10");
  auto all = lines();
  all.erase(all.begin() + 5);
  put(all);
  expectFinding("lines 6 to 6 are missing", 6);
}

TEST_F(AuditCheck, FindsMovedAndCopiedLines) {
  CONFORMS("R-AUDIT-10");
  auto all = lines();
  std::swap(all[3], all[6]);
  put(all);
  EXPECT_FALSE(check().whole());
  expectFinding("copied or moved", 5);
}

TEST_F(AuditCheck, FindsATruncatedTail) {
  CONFORMS("R-AUDIT-10");
  auto all = lines();
  all.resize(8);
  put(all);
  expectFinding("its tail was cut off", 0);
  all[7].resize(30);
  put(all);
  expectFinding("ends within a line", 7);
}

/// One line is rewritten and all later lines are hashed again: only the MACs reveal it.
TEST_F(AuditCheck, FindsARewrittenChain) {
  CONFORMS("R-AUDIT-10");
  auto all = lines();
  SealedLine before;
  ASSERT_TRUE(splitLine(all[3], before));
  Link forged{4, before.hash, Digest{}};
  std::string text;
  for (int i = 0; i < 7; ++i)
    appendLine(text, forged, {EventType::lifecycle, Severity::info, "cs-x", Fields().number("number", 7)}, 0, 1);
  all.resize(4);
  put(all);
  std::ofstream(file(1), std::ios::app) << text;
  expectFinding("not written with the key", 5);
}

TEST_F(AuditCheck, FindsARestoredOlderCopyOnlyWithAnAnchor) {
  CONFORMS("R-AUDIT-10");
  const std::string copy = dir_ / "copy";
  std::filesystem::copy(path_, copy, std::filesystem::copy_options::recursive);
  fill(5);
  const std::string anchor = check().head;
  std::filesystem::remove_all(path_);
  std::filesystem::copy(copy, path_, std::filesystem::copy_options::recursive);
  std::filesystem::permissions(path_, std::filesystem::perms::owner_all);
  EXPECT_TRUE(check().whole());
  expectFinding("is not in the log", 0, {.anchor = anchor});
}

TEST_F(AuditCheck, FindsAReplacedOrMissingHead) {
  CONFORMS("R-AUDIT-10");
  const std::string head = readFile(path_ + "/head");
  fill(3);
  std::ofstream(path_ + "/head", std::ios::binary) << head;
  EXPECT_TRUE(check().whole()) << "an older head alone is made good by the next writer";
  ASSERT_EQ(::unlink((path_ + "/head").c_str()), 0);
  expectFinding("head is missing", 0);
  fill(1);
  expectFinding("a new chain begins here", 1);
}

TEST_F(AuditCheck, FollowsRotationAndPruningAndFindsAMissingFile) {
  CONFORMS("R-AUDIT-10", "R-AUDIT-11");
  fill(200, {.rotate_bytes = 4000, .total_bytes = 20000});
  EXPECT_TRUE(check().whole()) << check().findings.at(0).what;
  EXPECT_GT(check().files, 2U);
  std::uint32_t oldest = 1;
  while (!test::exists(file(oldest))) ++oldest;
  EXPECT_GT(oldest, 1U);
  const std::string saved = readFile(file(oldest + 1));
  ASSERT_EQ(::unlink(file(oldest + 1).c_str()), 0);
  expectFinding("the file is missing", 0);
  std::ofstream(file(oldest + 1)) << readFile(file(oldest));
  EXPECT_FALSE(check().whole()) << "a swapped file";
  std::ofstream(file(oldest + 1)) << saved;
  EXPECT_TRUE(check().whole());
  ASSERT_EQ(::unlink(file(oldest).c_str()), 0);
  expectFinding("the file is missing", 0);
}

TEST_F(AuditCheck, FindsForeignFiles) {
  std::ofstream(file(7)) << "x\n";
  expectFinding("the head knows nothing of this file", 0);
  std::ofstream(file(7), std::ios::trunc) << "";
  expectFinding("the file is missing", 0);
  ASSERT_EQ(::unlink(file(7).c_str()), 0);
  ASSERT_EQ(::rename(file(1).c_str(), (path_ + "/aside").c_str()), 0);
  ASSERT_EQ(::symlink("aside", file(1).c_str()), 0);
  expectFinding("symbolic link", 0);
}

/// The second slot of a new head is the first that counts lines.
TEST_F(AuditCheck, FirstWriterThatDiedLeavesOnlyNotes) {
  std::filesystem::remove_all(path_);
  fill(1);
  std::string head = readFile(path_ + "/head");
  ASSERT_EQ(head.size(), kHeadBytes);
  head.replace(kSlotBytes, kSlotBytes, kSlotBytes, '\0');
  std::ofstream(path_ + "/head", std::ios::trunc) << head;
  for (const bool lines : {true, false}) {
    if (!lines) std::filesystem::resize_file(file(1), 0);
    const CheckReport report = check();
    EXPECT_TRUE(report.findings.empty()) << report.findings.front().what;
    EXPECT_EQ(report.lines, 0U);
  }
  fill(1);
  EXPECT_TRUE(check().findings.empty());
  EXPECT_GT(check().lines, 1U);
}

TEST_F(AuditCheck, FirstWriterThatDiedBeforeItWroteTheHeadLeavesANewLog) {
  std::ofstream(path_ + "/head", std::ios::trunc) << "";
  EXPECT_FALSE(check().findings.empty()) << "there are lines";
  for (int number = 1; std::filesystem::exists(file(number)); ++number) std::filesystem::resize_file(file(number), 0);
  const CheckReport report = check();
  EXPECT_TRUE(report.findings.empty()) << report.findings.front().what;
  EXPECT_EQ(report.lines, 0U);
  ASSERT_EQ(::unlink(file(1).c_str()), 0);
  ASSERT_EQ(::symlink("aside", file(1).c_str()), 0);
  EXPECT_FALSE(check().findings.empty()) << "a file that cannot be read may have lines";
}

/// A writer creates the next file before it writes the head that names it.
TEST_F(AuditCheck, NextFileOfADeadWriterIsANote) {
  std::ofstream(file(2)) << "";
  EXPECT_TRUE(check().whole()) << check().findings.at(0).what;
  ASSERT_EQ(check().notes.size(), 1U);
  EXPECT_TRUE(check().notes[0].starts_with("a writer died")) << check().notes[0];
  std::ofstream(file(2)) << "x";
  expectFinding("the head knows nothing of this file", 0);
}

TEST_F(AuditCheck, ReportsAMissingKeyAndAcceptsItFromTheCaller) {
  Digest key;
  ASSERT_TRUE(readHex(readFile(path_ + "/" + keyName(1)).substr(0, 64), key));
  ASSERT_EQ(::unlink((path_ + "/" + keyName(1)).c_str()), 0);
  EXPECT_TRUE(check().whole());
  EXPECT_FALSE(check().macs_checked);
  EXPECT_TRUE(check({.first_key = key}).whole());
  EXPECT_TRUE(check({.first_key = key}).macs_checked);
  key[0] ^= 1;
  EXPECT_FALSE(check({.first_key = key}).whole());
}

TEST_F(AuditCheck, GarbageIsAFindingNotACrash) {
  std::ofstream(file(1), std::ios::trunc) << std::string(300000, 'x') << "\n{}\n" << std::string(5, '\0') << "\n";
  EXPECT_FALSE(check().whole());
  std::ofstream(file(1), std::ios::trunc) << "";
  EXPECT_FALSE(check().whole());
}

/// A planted file with the highest number must not cause a hundred million findings or key lookups.
TEST_F(AuditCheck, FileWithAHugeNumberIsCheckedQuickly) {
  std::ofstream(file(99'999'999)) << "x\n";
  for (const bool with_head : {true, false}) {
    if (!with_head) {
      ASSERT_EQ(::unlink((path_ + "/head").c_str()), 0);
    }
    const auto begin = std::chrono::steady_clock::now();
    const CheckReport report = check();
    EXPECT_FALSE(report.whole());
    EXPECT_LE(report.findings.size(), kMaxFindings + 2);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  }
}

/// Hundreds of megabytes without a line end are read in pieces and reported as a finding.
TEST_F(AuditCheck, AHugeFileIsAFinding) {
  fill(200, {.rotate_bytes = 4000, .total_bytes = 1U << 30U});
  ASSERT_EQ(::truncate(file(2).c_str(), 300 << 20), 0);
  const std::size_t before = peakKilobytes();
  EXPECT_FALSE(check().whole());
  EXPECT_LT(peakKilobytes() - before, 64U << 10U);
  auto reader = Reader::open(path_);
  ASSERT_TRUE(reader);
  std::size_t entries = 0;
  ASSERT_TRUE(reader->read([&](Entry&&, std::string_view) { ++entries; }));
  EXPECT_GT(entries, 200U) << "what can be read is shown";
  EXPECT_LT(peakKilobytes() - before, 64U << 10U);
}

TEST_F(AuditCheck, ReaderReturnsWhatWasWritten) {
  auto reader = Reader::open(path_);
  ASSERT_TRUE(reader);
  std::vector<Entry> entries;
  const auto take = [&](Entry&& entry, std::string_view) { entries.push_back(std::move(entry)); };
  ASSERT_TRUE(reader->read(take));
  ASSERT_EQ(entries.size(), 11U);
  EXPECT_EQ(entries[10].data, "{\"number\":9}");
  EXPECT_EQ(entries[10].sandbox, "cs-x");
  fill(3, {.rotate_bytes = 1000, .total_bytes = 1U << 20U});
  ASSERT_TRUE(reader->read(take));
  EXPECT_EQ(entries.back().data, "{\"number\":2}");
  for (std::size_t i = 0; i < entries.size(); ++i) EXPECT_EQ(entries[i].seq, i + 1);
  EXPECT_EQ(reader->foreign(), 0U);
}

}  // namespace
}  // namespace caisson::audit
