#include "supervise/workspace/changes.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "base/json_writer.h"
#include "base/path_text.h"
#include "policy/rules/command.h"
#include "policy/rules/network_client.h"
#include "sys/fd.h"

namespace caisson::supervise {
namespace {

constexpr std::size_t kDepthLimit = 64;

/// Counts the changes of one upper directory.
class ChangeCounter {
 public:
  ChangeCounter(std::size_t max_entries, std::optional<timespec> since) : left_(max_entries), since_(since) {}

  /// Depth first with one open directory per level: the depth is bounded, and so are the descriptors.
  /// Closes `directory`.
  void walk(int directory, const std::string& path, std::size_t depth);
  ChangedFiles take() { return std::move(changes_); }

 private:
  [[nodiscard]] bool isNew(int directory, const char* name) const;
  void add(const std::string& path) {
    ++changes_.count;
    if (changes_.names.size() < ChangedFiles::kMaxNames) changes_.names.push_back(path);
  }

  std::size_t left_;
  std::optional<timespec> since_;
  ChangedFiles changes_;
};

/// Whether an entry changed since `since_`, by its change time, which a program cannot set.
bool ChangeCounter::isNew(int directory, const char* name) const {
  if (!since_) return true;
  struct stat status;
  if (::fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0) return false;
  const timespec& changed = status.st_ctim;
  return changed.tv_sec > since_->tv_sec || (changed.tv_sec == since_->tv_sec && changed.tv_nsec >= since_->tv_nsec);
}

void ChangeCounter::walk(int directory, const std::string& path, std::size_t depth) {
  DIR* stream = depth > kDepthLimit ? nullptr : ::fdopendir(directory);
  if (stream == nullptr) {
    ::close(directory);
    changes_.complete = false;
    return;
  }
  while (const dirent* entry = ::readdir(stream)) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (left_ == 0) {
      changes_.complete = false;
      break;
    }
    --left_;
    const std::string below = path.empty() ? std::string(name) : path + "/" + std::string(name);
    if (entry->d_type != DT_DIR) {  // a changed or new file, or a whiteout
      if (isNew(::dirfd(stream), entry->d_name)) add(below);
      continue;
    }
    const int inner = ::openat(::dirfd(stream), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (inner < 0) {
      changes_.complete = false;
      continue;
    }
    const std::size_t before = changes_.count;
    walk(inner, below, depth + 1);
    // An empty directory counts as one change.
    if (changes_.count == before && isNew(::dirfd(stream), entry->d_name)) add(below);
  }
  ::closedir(stream);
}

}  // namespace

ChangedFiles findChangedFiles(int upper, std::size_t max_entries, std::optional<timespec> since) {
  const int copy = ::openat(upper, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (copy < 0) return {.complete = false};
  ChangeCounter counter(max_entries, since);
  counter.walk(copy, "", 0);
  return counter.take();
}

void noteDiscardedChanges(const ChangedFiles& changes, const plan::Plan& plan, RunResult& result) {
  if (changes.count == 0) return;
  std::string text = changes.complete ? std::to_string(changes.count) : "more than " + std::to_string(changes.count);
  text += changes.count == 1 && changes.complete ? " changed file" : " changed files";
  text += " in " + plan.workspace_target + " discarded; keep changes with --workspace DIR:rw";
  result.notices.push_back(std::move(text));
}

audit::Fields describeChanges(const ChangedFiles& changes) {
  std::string names = "[";
  for (const std::string& name : changes.names) {
    if (names.size() > 1) names += ',';
    appendJsonString(names, displayedPath(name).substr(0, audit::Fields::kMaxValue / ChangedFiles::kMaxNames));
  }
  audit::Fields fields;
  fields.number("count", changes.count).flag("complete", changes.complete).raw("first", names + "]");
  return fields;
}

void explainMissingNetwork(policy::NetworkMode mode, const std::vector<std::string>& command, std::string_view session,
                           RunResult& result) {
  if (mode != policy::NetworkMode::none) return;
  if (result.outcome != OutcomeKind::exited || result.exit_code == 0) return;
  if (const auto client = policy::networkClient(command)) {
    result.notices.push_back(policy::describeNetworkNeed(*client, session));
  } else if (const auto sign = policy::networkUse(policy::commandLine(command))) {
    result.notices.push_back("`" + *sign + "` looks like network use, and this sandbox has no network");
  }
}

}  // namespace caisson::supervise
