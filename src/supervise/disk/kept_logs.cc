#include "supervise/disk/kept_logs.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <utility>
#include <vector>

#include "sys/root_dir.h"
#include "sys/state_home.h"

namespace caisson::supervise {
namespace {

using sys::Fd;
using sys::FileType;
using sys::RootDir;

constexpr std::size_t kKeptRuns = 20;
constexpr std::size_t kMaxLogFiles = 1000;
constexpr std::size_t kMaxLogDepth = 4;
constexpr std::uint64_t kMaxLogBytes = 128ULL << 20;  // of one run, so that all of them have a bound too

class LogCopier {
 public:
  LogCopier(const RootDir& from, const RootDir& to, std::uint64_t max_bytes) : from_(from), to_(to), left_(max_bytes) {}

  Result<void> copyTree(const std::string& path, std::size_t depth) {
    const auto entries = from_.list(path, kMaxLogFiles);
    if (!entries) {
      complete = false;
      return {};
    }
    for (const auto& entry : *entries) {
      const std::string below = path.empty() ? entry.name : path + "/" + entry.name;
      Result<void> done;
      if (entry.type == FileType::directory && depth < kMaxLogDepth) {
        done = copyTree(below, depth + 1);
      } else if (entry.type == FileType::regular && files < kMaxLogFiles) {
        done = copyFile(path, below);
      } else {
        complete = false;
      }
      if (!done) return done;
    }
    return {};
  }

  std::size_t files = 0;
  bool complete = true;

 private:
  /// Copies at most what is left of the limit. Holes of a sparse file count as bytes, since the copy has none.
  Result<void> copyFile(const std::string& directory, const std::string& path) {
    auto source = from_.openFile(path, {});
    if (!source) {
      complete = false;
      return {};
    }
    if (auto made = directory.empty() ? Result<void>() : to_.makeDirs(directory, 0700); !made) return made;
    auto target = to_.openFile(path, {.flags = O_WRONLY | O_CREAT | O_EXCL, .mode = 0600});
    if (!target) return fail(target.error());
    ++files;
    char buffer[64 * 1024];
    for (;;) {
      const ssize_t got = ::read(source->get(), buffer, std::min<std::uint64_t>(sizeof(buffer), left_));
      if (got == 0 && left_ == 0) complete = false;
      if (got <= 0) return {};
      if (::write(target->get(), buffer, static_cast<std::size_t>(got)) != got)
        return fail(sysError(Stage::state, "write", path, errno == 0 ? ENOSPC : errno));
      left_ -= static_cast<std::uint64_t>(got);
    }
  }

  const RootDir& from_;
  const RootDir& to_;
  std::uint64_t left_;
};

/// Keeps the newest kKeptRuns directories and removes the others, also incomplete ones that a crash left.
void removeOld(const RootDir& logs) {
  const auto entries = logs.list("");
  if (!entries || entries->size() <= kKeptRuns) return;
  std::vector<std::pair<std::int64_t, std::string>> by_age;
  for (const auto& entry : *entries) {
    const auto info = logs.stat(entry.name);
    by_age.emplace_back(info ? info->modified_ns : 0, entry.name);
  }
  std::ranges::sort(by_age);
  for (std::size_t i = 0; i + kKeptRuns < by_age.size(); ++i) (void)logs.removeTree(by_age[i].second);
}

/// A session keeps its logs each time that its sandbox ends.
std::string unusedName(const RootDir& logs, const std::string& name) {
  std::string unused = name;
  for (int number = 2; logs.stat(unused); ++number) unused = name + "." + std::to_string(number);
  return unused;
}

}  // namespace

Result<KeptLogs> keepLogs(int directory, const std::string& name, std::uint64_t max_bytes) {
  auto from = RootDir::adopt(Fd(::fcntl(directory, F_DUPFD_CLOEXEC, 3)), {.known_as = "/logs"});
  if (!from) return fail(from.error());
  const auto entries = from->list("", kMaxLogFiles);
  if (entries && entries->empty()) return KeptLogs{};
  const std::string path = sys::stateHome() + "/logs";
  if (auto made = sys::makePrivatePath(path); !made) return fail(made.error());
  auto logs = RootDir::open(path);
  if (!logs) return fail(logs.error());
  const std::string unused = unusedName(*logs, name);
  if (auto made = logs->makeDirs(unused, 0700); !made) return fail(made.error());
  auto to = logs->enter(unused);
  if (!to) return fail(to.error());
  LogCopier copier(*from, *to, std::min(max_bytes, kMaxLogBytes));
  if (auto copied = copier.copyTree("", 0); !copied) return fail(copied.error());
  removeOld(*logs);
  return KeptLogs{.path = path + "/" + unused, .complete = copier.complete};
}

KeptLogNotes keepWrittenLogs(const plan::Plan& plan, const std::string& sandbox_id,
                             const std::function<int(std::string_view)>& directory_of) {
  KeptLogNotes notes;
  for (const plan::Step& step : plan.steps) {
    const auto* tmpfs = std::get_if<plan::MountTmpfs>(&step);
    if (tmpfs == nullptr || tmpfs->access != policy::TmpfsAccess::wo) continue;
    const int directory = directory_of(tmpfs->target);
    if (directory < 0) continue;
    // Validation allows such directories only at the top, so their names differ.
    const auto kept = keepLogs(directory, sandbox_id + "-" + tmpfs->target.substr(1), tmpfs->bytes);
    if (!kept) {
      notes.warnings.push_back("what was written to " + tmpfs->target + " is lost: " + kept.error().message());
    } else if (!kept->path.empty()) {
      notes.notices.push_back(tmpfs->target + " is kept in " + kept->path + (kept->complete ? "" : ", in part"));
    }
  }
  return notes;
}

std::vector<std::string> keptLogsOf(const std::string& sandbox_id) {
  std::vector<std::string> kept;
  const std::string path = sys::stateHome() + "/logs";
  const auto logs = RootDir::open(path);
  if (!logs) return kept;
  const auto entries = logs->list("");
  if (!entries) return kept;
  for (const auto& entry : *entries) {
    if (entry.name.starts_with(sandbox_id + "-")) kept.push_back(path + "/" + entry.name);
  }
  std::ranges::sort(kept);
  return kept;
}

}  // namespace caisson::supervise
