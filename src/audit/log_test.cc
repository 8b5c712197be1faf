#include "audit/log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "audit/check.h"
#include "audit/syncer.h"
#include "support/conforms.h"
#include "support/run.h"
#include "support/temp_dir.h"
#include "sys/fd.h"

namespace caisson::audit {
namespace {

using test::eventually;
using test::readFile;
using test::TempDir;

std::vector<std::string> linesOf(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = text.find('\n', start);
    if (end == std::string::npos) {
      ADD_FAILURE() << "the last line has no end";
      break;
    }
    lines.push_back(text.substr(start, end + 1 - start));
    start = end + 1;
  }
  return lines;
}

class AuditLog : public testing::Test {
 protected:
  [[nodiscard]] Log opened(Settings settings = {}) const {
    auto log = Log::open(path_, settings);
    EXPECT_TRUE(log) << log.error().message();
    return std::move(*log);
  }

  void write(Log& log, int number, Severity severity = Severity::info) const {
    const auto written = log.append({EventType::lifecycle, severity, "cs-test", Fields().number("number", number)});
    ASSERT_TRUE(written) << written.error().message();
  }

  [[nodiscard]] std::string file(std::uint32_t number) const { return path_ + "/" + logName(number); }

  /// Verifies the whole chain from the first key and returns the parsed lines.
  [[nodiscard]] std::vector<nlohmann::json> chain(std::uint32_t first = 1) const {
    std::vector<nlohmann::json> events;
    Link link;
    EXPECT_TRUE(readHex(readFile(path_ + "/" + keyName(first)).substr(0, 64), link.key));
    for (std::uint32_t number = first; test::exists(file(number)); ++number) {
      for (const std::string& line : linesOf(readFile(file(number)))) {
        EXPECT_TRUE(follows(line, link)) << line;
        events.push_back(nlohmann::json::parse(line, nullptr, false));
        EXPECT_FALSE(events.back().is_discarded()) << line;
      }
    }
    return events;
  }

  [[nodiscard]] static std::size_t count(const std::vector<nlohmann::json>& events, const std::string& name) {
    return static_cast<std::size_t>(
        std::count_if(events.begin(), events.end(), [&](const auto& event) { return event["event"] == name; }));
  }

  TempDir dir_;
  std::string path_ = dir_ / "audit";
};

TEST_F(AuditLog, IsPrivateJsonLinesInOneChain) {
  {
    Log log = opened();
    for (int i = 0; i < 5; ++i) write(log, i);
  }
  Log again = opened();
  write(again, 5);
  const auto events = chain();
  ASSERT_EQ(events.size(), 7U);
  EXPECT_EQ(events[0]["event"], "log_started");
  for (std::size_t i = 0; i < events.size(); ++i) EXPECT_EQ(events[i]["seq"], i + 1);
  EXPECT_EQ(events[6]["data"]["number"], 5);
  EXPECT_EQ(events[6]["sandbox"], "cs-test");
  struct stat status{};
  for (const std::string& name : {file(1), path_ + "/head", path_ + "/" + keyName(1)}) {
    ASSERT_EQ(::stat(name.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0600U) << name;
  }
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0700U);
}

TEST_F(AuditLog, StaysValidWhateverTheTextIs) {
  Log log = opened();
  std::string every_byte;
  for (int byte = 0; byte < 256; ++byte) every_byte += static_cast<char>(byte);
  ASSERT_TRUE(log.append({EventType::lifecycle, Severity::info, every_byte, Fields().text(every_byte, every_byte)}));
  ASSERT_TRUE(
      log.append({EventType::lifecycle, Severity::info, "x", Fields().text("long", std::string(1 << 20, 'x'))}));
  Fields many;
  for (int i = 0; i < 100; ++i) many.text("key" + std::to_string(i), std::string(4000, 'y'));
  ASSERT_TRUE(log.append({EventType::lifecycle, Severity::info, "x", many}));
  const auto events = chain();
  ASSERT_EQ(events.size(), 4U);
  EXPECT_TRUE(events[3]["data"].contains("oversize_bytes"));
}

TEST_F(AuditLog, ManyProcessesWriteOneUnbrokenChain) {
  constexpr int kWriters = 6, kEvents = 200;
  std::vector<pid_t> writers;
  for (int writer = 0; writer < kWriters; ++writer) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      auto log = Log::open(path_, {.rotate_bytes = 20000, .total_bytes = 1U << 30U});
      int done = 0;
      for (; log && done < kEvents; ++done)
        if (!log->append(
                {EventType::lifecycle, Severity::info, "w" + std::to_string(writer), Fields().number("n", done)}))
          break;
      ::_exit(done == kEvents ? 0 : 1);
    }
    writers.push_back(pid);
  }
  for (const pid_t pid : writers) {
    int status = 0;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
  }
  const auto events = chain();
  EXPECT_EQ(count(events, "lifecycle"), static_cast<std::size_t>(kWriters * kEvents));
  EXPECT_GT(count(events, "log_continued"), 10U);
  std::map<std::string, int> next;
  for (const auto& event : events)
    if (event["event"] == "lifecycle") {
      EXPECT_EQ(event["data"]["n"], next[event["sandbox"]]++);
    }
}

TEST_F(AuditLog, TruncatesAPartialLineLeftByADeadWriter) {
  Log log = opened();
  write(log, 1);
  std::ofstream(file(1), std::ios::app) << R"({"seq":3,"time":"2026)";
  write(log, 2);
  const auto events = chain();
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(events[2]["event"], "log_recovered");
  EXPECT_EQ(events[2]["data"]["bytes_cut"], 21);
  EXPECT_EQ(events[3]["data"]["number"], 2);
}

TEST_F(AuditLog, AdoptsACompleteLineWhoseWriterDiedBeforeUpdatingTheHead) {
  Log log = opened();
  write(log, 1);
  const std::string before = readFile(path_ + "/head");
  write(log, 2);
  std::ofstream(path_ + "/head", std::ios::binary | std::ios::in) << before;
  write(log, 3);
  const auto events = chain();
  ASSERT_EQ(events.size(), 5U);
  EXPECT_EQ(events[2]["data"]["number"], 2);
  EXPECT_EQ(events[3]["data"]["lines_taken_over"], 1);
  EXPECT_EQ(events[4]["data"]["number"], 3);
}

/// A writer may die while it writes thousands of deferred events.
TEST_F(AuditLog, AdoptsMoreThanOneBlockOfLines) {
  constexpr int kLines = 3000;
  Log log = opened();
  write(log, 1);
  const std::string before = readFile(path_ + "/head");
  std::vector<Event> events(
      kLines, {EventType::lifecycle, Severity::info, "cs-test", Fields().text("text", std::string(500, 'x'))});
  ASSERT_TRUE(log.append(events));
  ASSERT_GT(readFile(file(1)).size(), 1U << 20U);
  std::ofstream(path_ + "/head", std::ios::binary | std::ios::in) << before;
  write(log, 2);
  const auto written = chain();
  ASSERT_EQ(written.size(), kLines + 4U);
  EXPECT_EQ(written[kLines + 2]["data"]["lines_taken_over"], kLines);
  EXPECT_EQ(written[kLines + 2]["data"]["bytes_cut"], 0);
}

/// The very first start is interrupted after each step: the next start repairs the log without an alert.
TEST_F(AuditLog, InterruptedFirstStartIsRepaired) {
  {
    Log log = opened();
    write(log, 1);
  }
  const std::string whole = readFile(path_ + "/head");
  const std::string key = readFile(path_ + "/" + keyName(1));
  const std::string lines = readFile(file(1));
  Link start;
  ASSERT_TRUE(readHex(key.substr(0, 64), start.key));
  Head begun;
  begun.link = start;
  begun.writes = 2;
  const auto slot = encode(begun);
  const std::string first_head(slot.begin(), slot.end());
  struct Step {
    std::string head, key, lines;
  };
  for (const Step& step : {Step{"", key, ""}, Step{first_head, key, ""}, Step{first_head, key, lines.substr(0, 40)},
                           Step{first_head, key, lines}, Step{whole, key, lines}}) {
    for (const auto& entry : std::filesystem::directory_iterator(path_)) std::filesystem::remove(entry);
    std::ofstream(path_ + "/head") << step.head;
    std::ofstream(path_ + "/" + keyName(1)) << step.key;
    std::ofstream(file(1)) << step.lines;
    Log log = opened();
    write(log, 2);
    const auto events = chain();
    ASSERT_FALSE(events.empty());
    EXPECT_EQ(events[0]["event"], "log_started");
    EXPECT_EQ(count(events, "log_head_lost"), 0U);
    EXPECT_EQ(events.back()["data"]["number"], 2);
    const auto report = checkLog(path_);
    ASSERT_TRUE(report);
    EXPECT_TRUE(report->whole()) << report->findings.at(0).what;
  }
}

/// An attacker who can write to the file but does not know the key cannot add a line.
TEST_F(AuditLog, NeverAdoptsALineWithoutTheKey) {
  Log log = opened();
  write(log, 1);
  const auto lines = linesOf(readFile(file(1)));
  SealedLine last;
  ASSERT_TRUE(splitLine(lines.back(), last));
  Link forged{2, last.hash, {}};
  std::string line;
  appendLine(line, forged, {EventType::lifecycle, Severity::info, "forged", {}}, 0, 1);
  std::ofstream(file(1), std::ios::app) << line;
  write(log, 2);
  const auto events = chain();
  EXPECT_EQ(events[2]["event"], "log_recovered");
  EXPECT_EQ(events[2]["data"]["lines_taken_over"], 0);
}

TEST_F(AuditLog, RecordsATruncatedTailOrARemovedFile) {
  Log log = opened();
  for (int i = 0; i < 3; ++i) write(log, i);
  ASSERT_EQ(::truncate(file(1).c_str(), 700), 0);
  write(log, 3);
  ASSERT_TRUE(test::exists(file(2)));
  const auto after = linesOf(readFile(file(2)));
  EXPECT_NE(after.at(0).find("log_continued"), std::string::npos);
  EXPECT_NE(after.at(1).find("log_tail_lost"), std::string::npos);
  ASSERT_EQ(::unlink(file(2).c_str()), 0);
  write(log, 4);
  EXPECT_NE(readFile(file(3)).find("log_tail_lost"), std::string::npos);
}

TEST_F(AuditLog, StartsAndRecordsANewChainWhenTheHeadIsMissing) {
  {
    Log log = opened();
    write(log, 1);
  }
  for (const bool remove : {true, false}) {
    if (remove) {
      ASSERT_EQ(::unlink((path_ + "/head").c_str()), 0);
    } else {
      std::ofstream(path_ + "/head") << "nonsense";
    }
    Log log = opened();
    write(log, 2);
    const auto events = chain(remove ? 2 : 3);
    EXPECT_EQ(events.at(0)["event"], "log_head_lost");
    EXPECT_EQ(events.at(0)["severity"], "CRITICAL");
  }
}

TEST_F(AuditLog, RecordsRotationAndPruning) {
  CONFORMS("R-AUDIT-11");
  EXPECT_EQ(Settings{}.rotate_bytes, 16U << 20) << "what every run uses";
  EXPECT_EQ(Settings{}.total_bytes, 256U << 20);
  Log log = opened({.rotate_bytes = 4000, .total_bytes = 20000});
  for (int i = 0; i < 200; ++i) write(log, i);
  EXPECT_FALSE(test::exists(file(1)));
  std::uint64_t total = 0;
  int files = 0;
  bool pruned = false;
  for (std::uint32_t number = 1; number < 100; ++number) {
    if (!test::exists(file(number))) continue;
    const std::string text = readFile(file(number));
    total += text.size();
    ++files;
    pruned = pruned || text.find("log_pruned") != std::string::npos;
    EXPECT_NE(linesOf(text).at(0).find("log_continued"), std::string::npos);
  }
  EXPECT_TRUE(pruned);
  EXPECT_GT(files, 2);
  EXPECT_LT(total, 26000U);
}

TEST_F(AuditLog, RefusesForeignFiles) {
  {
    Log log = opened();
    write(log, 1);
  }
  const auto refused = [&] {
    auto log = Log::open(path_);
    if (!log) return log.error().message();
    const auto written = log->append({EventType::lifecycle, Severity::info, {}, {}});
    return written ? std::string() : written.error().message();
  };
  const std::string aside = path_ + "/aside";
  for (const std::string& name : {file(1), path_ + "/head"}) {
    ASSERT_EQ(::rename(name.c_str(), aside.c_str()), 0);
    ASSERT_EQ(::symlink(aside.c_str(), name.c_str()), 0);
    EXPECT_NE(refused().find("symbolic link"), std::string::npos) << refused();
    ASSERT_EQ(::unlink(name.c_str()), 0);
    ASSERT_EQ(::mkdir(name.c_str(), 0700), 0);
    EXPECT_NE(refused().find("directory"), std::string::npos) << refused();
    ASSERT_EQ(::rmdir(name.c_str()), 0);
    ASSERT_EQ(::mkfifo(name.c_str(), 0600), 0);
    EXPECT_NE(refused().find("regular file"), std::string::npos) << refused();
    ASSERT_EQ(::unlink(name.c_str()), 0);
    ASSERT_EQ(::link(aside.c_str(), name.c_str()), 0);
    EXPECT_NE(refused().find("names"), std::string::npos) << refused();
    ASSERT_EQ(::rename(aside.c_str(), (path_ + "/x").c_str()), 0);
    ASSERT_EQ(::unlink((path_ + "/x").c_str()), 0);
    EXPECT_EQ(refused(), "");
  }
  ASSERT_EQ(::chmod(path_.c_str(), 0770), 0);
  EXPECT_NE(refused().find("others may write"), std::string::npos) << refused();
}

TEST_F(AuditLog, RefusesFilesOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  {
    Log log = opened();
    write(log, 1);
  }
  for (const std::string& name : {file(1), path_ + "/head", path_}) {
    ASSERT_EQ(::chown(name.c_str(), 12345, 12345), 0);
    auto log = Log::open(path_);
    std::string complaint = log ? "" : log.error().message();
    if (log) {
      const auto written = log->append({EventType::lifecycle, Severity::info, {}, {}});
      complaint = written ? "" : written.error().message();
    }
    EXPECT_NE(complaint.find("12345"), std::string::npos) << name << ": " << complaint;
    ASSERT_EQ(::chown(name.c_str(), 0, 0), 0);
  }
  Log log = opened();
  write(log, 2);
  EXPECT_EQ(chain().size(), 3U);
}

/// Data beyond the head's end is read in blocks while valid lines follow, and the rest is truncated unread.
TEST_F(AuditLog, HugeFileIsTruncatedWithoutBeingRead) {
  Log log = opened();
  write(log, 1);
  ASSERT_EQ(::truncate(file(1).c_str(), 1LL << 36), 0);
  ASSERT_EQ(::truncate((path_ + "/head").c_str(), 1LL << 36), 0);
  write(log, 2);
  const auto events = chain();
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(events[2]["event"], "log_recovered");
  EXPECT_GT(events[2]["data"]["bytes_cut"], 1LL << 35);
  EXPECT_LT(readFile(file(1)).size(), 1U << 20U);
}

/// The highest possible number is taken: readers would not find a file after it.
TEST_F(AuditLog, RefusesToExceedTheHighestFileNumber) {
  {
    Log log = opened();
    write(log, 1);
  }
  std::ofstream(file(99'999'999)) << "x\n";
  ASSERT_EQ(::unlink((path_ + "/head").c_str()), 0);
  auto log = Log::open(path_);
  const bool refused = !log || !log->append({EventType::lifecycle, Severity::info, {}, {}});
  EXPECT_TRUE(refused);
  EXPECT_FALSE(test::exists(path_ + "/00000000.jsonl"));
}

TEST_F(AuditLog, RefusesAnUnwritableDirectoryAndAFullDisk) {
  if (::geteuid() != 0) {
    const std::string locked = dir_.makeDir("locked", 0500);
    const auto log = Log::open(locked + "/audit");
    ASSERT_FALSE(log);
    EXPECT_NE(log.error().message().find("CAISSON_HOME"), std::string::npos);
  }
  Log log = opened();
  write(log, 1);
  // A file size limit simulates a full disk: the write fails half-way.
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1500, 1500};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    int failures = 0;
    for (int i = 0; i < 20; ++i)
      if (!log.append({EventType::lifecycle, Severity::info, {}, Fields().text("x", std::string(150, 'x'))}))
        ++failures;
    ::_exit(failures > 10 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(status, 0);
  write(log, 2);
  const auto events = chain();
  EXPECT_EQ(count(events, "log_recovered"), 0U) << "what was written half-way was taken back at once";
}

TEST_F(AuditLog, RecordsThatTheClockWentBack) {
  Log log = opened();
  write(log, 1);
  // The same head, with a last time of tomorrow.
  HeadBytes bytes;
  std::string raw = readFile(path_ + "/head");
  std::copy(raw.begin(), raw.end(), bytes.begin());
  Head head = *decode(bytes);
  head.last_time_ns += 86400LL * 1'000'000'000;
  ++head.writes;
  const auto slot = encode(head);
  std::copy(slot.begin(), slot.end(), raw.begin() + static_cast<std::ptrdiff_t>(slotOf(head) * kSlotBytes));
  std::ofstream(path_ + "/head", std::ios::binary | std::ios::in) << raw;
  write(log, 2);
  EXPECT_EQ(count(chain(), "clock_set_back"), 1U);
}

/// The syncer holds `sync` while it works, and leaves nothing behind.
TEST_F(AuditLog, IsSyncedToDiskWithinASecond) {
  Log log = opened();
  write(log, 1);
  log.handOver();
  const int sync = ::open((path_ + "/sync").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(sync, 0);
  EXPECT_NE(::flock(sync, LOCK_EX | LOCK_NB), 0) << "no process syncs the log";
  EXPECT_TRUE(eventually([&] { return ::flock(sync, LOCK_EX | LOCK_NB) == 0; }, std::chrono::seconds(2)));
  ::close(sync);
  int status = 0;
  EXPECT_EQ(::waitpid(-1, &status, WNOHANG), -1) << "it must not be our child";
}

/// A lock that the caller releases is free at once: the syncer has no copy of it, not even for the time that closing
/// thousands of descriptors takes.
TEST_F(AuditLog, SyncProcessHoldsNoLockOfItsParent) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit most = before;
  most.rlim_cur = std::min<rlim_t>(before.rlim_max, 20'000);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &most), 0);
  Log log = opened();
  write(log, 1);
  const sys::Fd directory(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const sys::Fd sync(::open((path_ + "/sync").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  std::vector<sys::Fd> many;
  while (many.size() + 100 < most.rlim_cur) many.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const std::string path = path_ + "/lock of the starter";
  const sys::Fd other(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  for (int round = 0; round < 20; ++round) {
    sys::Fd held(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_EQ(::flock(held.get(), LOCK_EX), 0);
    ASSERT_TRUE(startSyncer(directory.get(), sync.get()));
    held.reset();
    ASSERT_EQ(::flock(other.get(), LOCK_EX | LOCK_NB), 0);
    ::flock(other.get(), LOCK_UN);
  }
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

/// The kernel releases the lock of a killed holder, so that it blocks no other writer.
TEST_F(AuditLog, LockIsReleasedWhenItsHolderDies) {
  Log log = opened();
  write(log, 1);
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    const int head = ::open((path_ + "/head").c_str(), O_RDWR);
    ::flock(head, LOCK_EX);
    (void)!::write(ready[1], "x", 1);
    for (;;) ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  ::kill(pid, SIGKILL);
  write(log, 2);
  ::waitpid(pid, nullptr, 0);
  EXPECT_EQ(chain().size(), 3U);
}

}  // namespace
}  // namespace caisson::audit
