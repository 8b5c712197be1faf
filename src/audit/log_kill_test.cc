// Writers killed at any moment lose no event that append() acknowledged, and leave an intact chain.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "audit/check.h"
#include "audit/log.h"
#include "audit/reader.h"
#include "support/environment.h"
#include "support/temp_dir.h"

namespace caisson::audit {
namespace {

/// How many events were acknowledged to each writer; survives the writer.
class Acknowledged {
 public:
  explicit Acknowledged(std::size_t count)
      : bytes_(count * sizeof(std::atomic<int>)),
        memory_(::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {}
  ~Acknowledged() { ::munmap(memory_, bytes_); }
  Acknowledged(const Acknowledged&) = delete;
  Acknowledged& operator=(const Acknowledged&) = delete;
  [[nodiscard]] std::atomic<int>& of(std::size_t incarnation) const {
    return static_cast<std::atomic<int>*>(memory_)[incarnation];
  }

 private:
  std::size_t bytes_;
  void* memory_;
};

/// Small files, so that rotation is covered; no pruning, since all events are counted below.
constexpr Settings kSettings{.rotate_bytes = 256 << 10, .total_bytes = 1ULL << 40};

pid_t startWriter(const std::string& path, std::size_t incarnation, std::atomic<int>& acknowledged) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // it writes for ever
  const std::string id = "w" + std::to_string(incarnation);
  auto log = Log::open(path, kSettings);
  for (int number = 0; log; ++number) {
    const auto severity = number % 100 == 99 ? Severity::critical : Severity::info;
    if (!log->append({EventType::lifecycle, severity, id, Fields().number("number", number)})) break;
    acknowledged = number + 1;
  }
  ::_exit(1);
}

/// Kills writers of a new log, and compares what it holds with what they were told.
void killWriters(std::mt19937& random) {
  constexpr std::size_t kRounds = 40;
  constexpr std::size_t kWriters = 3;
  const test::TempDir dir;
  const std::string path = dir / "audit";
  const Acknowledged acknowledged(kWriters * (kRounds + 1));
  std::uniform_int_distribution<useconds_t> pause(0, 6000);
  std::size_t incarnations = 0;
  std::vector<pid_t> writers;
  const auto begin = [&] {
    writers.push_back(startWriter(path, incarnations, acknowledged.of(incarnations)));
    ++incarnations;
  };
  for (std::size_t writer = 0; writer < kWriters; ++writer) begin();
  for (std::size_t round = 0; round < kWriters * kRounds; ++round) {
    ::usleep(pause(random));
    const std::size_t victim = random() % writers.size();
    ASSERT_EQ(::kill(writers[victim], SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(writers[victim], &status, 0), writers[victim]);
    EXPECT_TRUE(WIFSIGNALED(status)) << "a writer gave up by itself";
    writers.erase(writers.begin() + static_cast<std::ptrdiff_t>(victim));
    if (round % 10 == 0) {  // waits for the others, and then sees what the victim left, if it held the lock
      const auto seen = checkLog(path);
      ASSERT_TRUE(seen) << seen.error().message();
      EXPECT_TRUE(seen->findings.empty()) << seen->findings.front().what;
    }
    begin();
  }
  for (const pid_t writer : writers) {
    ::kill(writer, SIGKILL);
    ::waitpid(writer, nullptr, 0);
  }
  const auto left = checkLog(path);
  ASSERT_TRUE(left) << left.error().message();
  EXPECT_TRUE(left->findings.empty()) << left->findings.front().what;
  {  // the next writer recovers what the last one left
    auto log = Log::open(path, kSettings);
    ASSERT_TRUE(log) << log.error().message();
    ASSERT_TRUE(log->append({EventType::lifecycle, Severity::info, "end", {}}));
  }
  const auto report = checkLog(path);
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_TRUE(report->findings.empty()) << report->findings.front().what;

  std::map<std::string, int> next;
  auto reader = Reader::open(path);
  ASSERT_TRUE(reader);
  ASSERT_TRUE(reader->read([&](Entry&& entry, std::string_view) {
    if (!entry.sandbox.starts_with('w')) return;
    EXPECT_EQ(nlohmann::json::parse(entry.data)["number"], next[entry.sandbox]++) << entry.sandbox;
  }));
  int total = 0;
  for (std::size_t at = 0; at < incarnations; ++at) {
    total += acknowledged.of(at);
    EXPECT_GE(next["w" + std::to_string(at)], acknowledged.of(at)) << "incarnation " << at;
    EXPECT_LE(next["w" + std::to_string(at)], acknowledged.of(at) + 1) << "incarnation " << at;
  }
  EXPECT_GT(total, 1000);
}

TEST(KilledWriters, LoseNothingThatWasAcknowledged) {
  std::mt19937 random(static_cast<unsigned>(::getpid()));
  for (int i = 0; i < test::stress() && !HasFatalFailure(); ++i) killWriters(random);
}

}  // namespace
}  // namespace caisson::audit
