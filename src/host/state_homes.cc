#include "host/state_homes.h"

#include <sys/stat.h>

#include <cerrno>

#include "base/sha256.h"
#include "sys/no_file_size_signal.h"
#include "sys/real_name.h"
#include "sys/root_dir.h"
#include "sys/state_home.h"

namespace caisson::host {
namespace {

constexpr std::size_t kMaxHomeRecord = 16 * 1024;

std::string recordsDirectory() {
  const std::string home = sys::defaultStateHome();
  return home.empty() ? "" : home + "/trees/homes";
}

std::string homeRecordName(const std::string& home) { return hex(Sha256().add(home).finish()).substr(0, 32); }

bool isDirectoryNow(const std::string& path) {
  struct stat status{};
  return ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

Result<void> removeStaleRecords(const sys::RootDir& records) {
  const auto names = records.list(".");
  if (!names) return fail(names.error());
  for (const sys::DirectoryEntry& entry : *names) {
    const auto home = records.readFile(entry.name, kMaxHomeRecord);
    // Not a file that another launch writes at this moment, whose name is temporary.
    if (!home || homeRecordName(*home) != entry.name || isDirectoryNow(*home)) continue;
    if (auto removed = records.remove(entry.name); !removed) return removed;
  }
  return {};
}

}  // namespace

Result<void> recordStateHome() {
  if (sys::isDefaultStateHome()) return {};
  const std::string home = sys::realName(sys::stateHome()).path, place = recordsDirectory();
  if (home.empty() || place.empty() || !isDirectoryNow(home)) return {};
  const std::string name = homeRecordName(home);
  struct stat status{};
  if (::lstat((place + "/" + name).c_str(), &status) == 0) return {};
  auto opened = sys::openPrivateDirectory(place);
  if (!opened) return {};
  const auto records = sys::RootDir::adopt(std::move(*opened), {.known_as = place});
  if (!records) return fail(records.error());
  if (auto removed = removeStaleRecords(*records); !removed) return removed;
  const sys::NoFileSizeSignal no_signal;
  return records->writeFileAtomic(name, home, 0600);
}

Result<std::vector<std::string>> otherStateHomes() {
  std::vector<std::string> homes;
  const std::string place = recordsDirectory();
  if (place.empty()) return homes;
  const auto records = sys::RootDir::open(place, {.known_as = place});
  // What this user may not open, it did not write either.
  const int why = records ? 0 : records.error().sys_errno;
  if (why == ENOENT || why == EACCES || why == ENOTDIR) return homes;
  if (!records) return fail(records.error());
  const auto names = records->list(".");
  if (!names) return fail(names.error());
  const std::string own = sys::realName(sys::stateHome()).path;
  for (const sys::DirectoryEntry& entry : *names) {
    const auto home = records->readFile(entry.name, kMaxHomeRecord);
    if (!home && home.error().sys_errno == ENOENT) continue;  // removed at this moment
    if (!home) return fail(home.error());
    if (homeRecordName(*home) != entry.name || *home == own || !isDirectoryNow(*home)) continue;
    homes.push_back(*home);
  }
  return homes;
}

}  // namespace caisson::host
