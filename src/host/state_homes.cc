#include "host/state_homes.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/sha256.h"
#include "sys/real_name.h"
#include "sys/root_dir.h"
#include "sys/state_home.h"

namespace caisson::host {
namespace {

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
    const auto home = records.readLink(entry.name);
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
  if (::lstat((place + "/" + name).c_str(), &status) == 0 && S_ISLNK(status.st_mode)) return {};
  auto opened = sys::openPrivateDirectory(place);
  if (!opened) return {};
  const auto records = sys::RootDir::adopt(std::move(*opened), {.known_as = place});
  if (!records) return fail(records.error());
  if (auto removed = removeStaleRecords(*records); !removed) return removed;
  // A link, since it is made whole or not at all: a launch that is killed leaves no temporary file. Nothing follows it.
  if (::symlinkat(home.c_str(), records->descriptor(), name.c_str()) == 0 || errno == EEXIST) return {};
  return fail(sysError(Stage::state, "symlink", place + "/" + name, errno));
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
    const auto home = records->readLink(entry.name);
    const int problem = home ? 0 : home.error().sys_errno;
    if (problem == ENOENT || problem == EINVAL) continue;  // removed at this moment, or no record
    if (!home) return fail(home.error());
    if (homeRecordName(*home) != entry.name || *home == own || !isDirectoryNow(*home)) continue;
    homes.push_back(*home);
  }
  return homes;
}

}  // namespace caisson::host
