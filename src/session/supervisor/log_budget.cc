#include "session/supervisor/log_budget.h"

#include <algorithm>

#include "session/store/background_files.h"

namespace caisson::session {
namespace {

constexpr std::uint64_t kDefaultDisk = policy::kGiB;  // where the policy has no disk limit
constexpr std::uint64_t kMinLimit = policy::kMiB, kMaxLimit = 256 * policy::kMiB;
constexpr auto kPauseWhenFull = std::chrono::seconds(1);  // 10,000 commands have up to 50,000 files

}  // namespace

std::uint64_t LogBudget::limitOf(const policy::Policy& policy) {
  return std::clamp(policy.filesystem.max_total_size.value_or(kDefaultDisk) / 4, kMinLimit, kMaxLimit);
}

LogBudget::LogBudget(const sys::RootDir& logs, std::uint64_t limit) : logs_(logs), limit_(limit) { measure(); }

void LogBudget::measure() {
  used_ = 0;
  const auto entries = logs_.list("");
  for (const sys::DirectoryEntry& entry : entries ? *entries : std::vector<sys::DirectoryEntry>{}) {
    if (const auto info = logs_.stat(entry.name)) used_ += info->size;
  }
}

void LogBudget::makeRoom(std::uint64_t wanted,
                         const std::function<std::uint64_t(const sys::RootDir& logs, std::uint32_t exec)>& release) {
  measure();  // clients remove files, too
  const auto commands = listCommands(logs_);
  for (const std::uint32_t exec : commands ? *commands : std::vector<std::uint32_t>{}) {
    if (left() >= wanted) return;
    used_ -= std::min(used_, release(logs_, exec));
  }
}

std::uint64_t LogBudget::takeOutput(std::uint64_t bytes, std::uint64_t written) {
  const std::uint64_t share = limit_ / 64, for_records = limit_ / 8, wanted = written + 2 * bytes;
  const auto room = [&] { return left() - std::min(left(), for_records); };
  auto& next_try = next_try_[written < share ? 0 : 1];
  if (const auto now = Clock::now(); room() < wanted && now >= next_try) {
    const std::uint64_t spare = written < share ? share : limit_;
    makeRoom(std::max(wanted, limit_ / 8) + for_records,
             [&](const sys::RootDir& logs, std::uint32_t exec) { return freeOutput(logs, exec, spare); });
    if (room() < wanted) next_try = now + kPauseWhenFull;
  }
  const std::uint64_t taken = std::min(bytes, (room() - std::min(room(), written)) / 2);
  used_ += taken;
  return taken;
}

bool LogBudget::takeRecord(std::uint64_t bytes) {
  if (left() < bytes) {
    makeRoom(std::max(bytes, limit_ / 8),
             [](const sys::RootDir& logs, std::uint32_t exec) { return freeOutput(logs, exec, 0); });
  }
  if (left() < bytes) makeRoom(bytes, freeRecord);
  if (left() < bytes) return false;
  used_ += bytes;
  return true;
}

void LogBudget::countEnd(std::uint32_t exec) {
  for (auto& next_try : next_try_) next_try = {};  // now its output can be dropped
  for (const char* ending : {".end", ".blocked"}) {
    if (const auto info = logs_.stat(fileName(exec, ending))) used_ += info->size;
  }
}

}  // namespace caisson::session
