#include "host/written_trees.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <vector>

#include "base/sha256.h"
#include "base/text.h"
#include "host/state_homes.h"
#include "sys/no_file_size_signal.h"
#include "sys/state_home.h"

namespace caisson::host {
namespace {

constexpr const char* kTreesDirectory = "/trees";
constexpr std::size_t kMaxTreeRecord = 16 * 1024;

/// The file's name: what never changes of the directory. Without a handle several directories may share it.
std::string recordName(const sys::FileIdentity& identity) {
  const std::string known = identity.handle.empty() ? "inode " + std::to_string(identity.inode)
                                                    : identity.handle + " " + identity.file_system;
  return hex(Sha256().add(known).finish()).substr(0, 32);
}

/// The clock of change times: the kernel updates it with every tick, so a link that is made later is never older.
std::int64_t coarseNow() {
  timespec time{};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &time);
  return time.tv_sec * 1'000'000'000LL + time.tv_nsec;
}

Result<WrittenTreeRecord> parseTreeRecord(const std::string& text, const std::string& file) {
  const std::size_t line = text.find('\n');
  WrittenTreeRecord record;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + std::min(line, text.size()), record.since);
  if (line == std::string::npos || problem != std::errc() || end != text.data() + line) {
    return fail(plainError(Stage::state, "read", file, "the record of a directory that sandboxes write is damaged",
                           "remove the file if you trust the links in that directory"));
  }
  record.path = text.substr(line + 1);
  if (record.path.ends_with('\n')) record.path.pop_back();
  // A clock that is set back must not make new links look old.
  if (record.since > coarseNow()) record.since = 0;
  return record;
}

}  // namespace

Result<sys::RootDir> openTreeState() {
  std::optional<Error> problem;
  for (const std::string& place : treeStatePlaces()) {
    auto opened = sys::openPrivateDirectory(place);
    if (opened) return sys::RootDir::adopt(std::move(*opened), {.known_as = place});
    problem = opened.error();
  }
  if (problem) return fail(*problem);
  return fail(plainError(Stage::state, "open", "trees", "neither CAISSON_HOME nor HOME is set",
                         "set CAISSON_HOME to a directory you can write"));
}

std::vector<std::string> treeStatePlaces() {
  std::vector<std::string> found;
  const auto add = [&](const std::string& home) {
    if (!home.empty()) found.push_back(home + kTreesDirectory);
  };
  add(sys::defaultStateHome());
  if (!sys::isDefaultStateHome()) add(sys::stateHome());
  return found;
}

Result<void> recordWrittenTree(int directory, const std::string& path) {
  const auto identity = sys::identityOf(directory);
  if (!identity) return fail(identity.error());
  const auto state = openTreeState();
  if (!state) return fail(state.error());
  const std::string name = recordName(*identity);
  struct stat status{};
  if (::fstatat(state->descriptor(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) return {};
  const sys::NoFileSizeSignal no_signal;
  return state->writeFileAtomic(name, std::to_string(coarseNow()) + "\n" + path + "\n", 0600);
}

Result<void> recordWrittenTrees(const plan::Plan& plan) {
  if (auto recorded = recordStateHome(); !recorded) return recorded;
  for (const plan::WrittenTree& tree : plan.written) {
    if (!tree.opened) continue;
    if (auto recorded = recordWrittenTree(tree.opened->get(), tree.path); !recorded) return recorded;
  }
  return {};
}

WrittenTrees::WrittenTrees() {
  for (const std::string& place : treeStatePlaces()) {
    const sys::Fd opened(::open(place.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!opened && errno == ENOENT) continue;
    auto root = opened ? sys::RootDir::share(opened.get(), {.known_as = place})
                       : Result<sys::RootDir>(fail(sysError(Stage::state, "open", place, errno)));
    if (root) {
      states_.push_back(std::move(*root));
    } else {
      problem_ = root.error();
    }
  }
}

Result<std::optional<WrittenTreeRecord>> WrittenTrees::find(int directory) const {
  if (problem_) return fail(*problem_);
  const auto identity = sys::identityOf(directory);
  if (!identity) return fail(identity.error());
  const std::string name = recordName(*identity);
  for (const sys::RootDir& state : states_) {
    const auto text = state.readFile(name, kMaxTreeRecord);
    if (!text && text.error().sys_errno == ENOENT) continue;
    if (!text) return fail(text.error());
    auto record = parseTreeRecord(*text, state.knownAs() + "/" + name);
    if (!record) return fail(record.error());
    return std::optional(std::move(*record));
  }
  return std::optional<WrittenTreeRecord>();
}

}  // namespace caisson::host
