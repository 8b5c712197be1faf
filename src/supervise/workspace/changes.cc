#include "supervise/workspace/changes.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "base/json_writer.h"
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
    appendJsonString(names, name.substr(0, audit::Fields::kLongestValue / ChangedFiles::kMaxNames));
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

void explainFailure(Error& error, const plan::Plan& plan) {
  if (!error.hint.empty()) return;
  const int code = error.sys_errno;
  if (error.stage == Stage::exec) {
    if (error.code == ErrorCode::no_working_directory) {
      error.hint = "the working directory is not visible inside the sandbox";
    } else if (error.code == ErrorCode::no_interpreter) {
      error.reason = "the interpreter that its first line names, or its loader, is not inside the sandbox";
      error.hint = "look at its first line; programs come from the host's /usr, others must be shown with --ro PATH";
    } else if (code == ENOENT) {
      error.reason = "no such program inside the sandbox";
      error.hint = "programs come from the host's /usr; others must be shown with --ro PATH";
    } else if (code == EACCES) {
      error.reason = "the program may not be executed";
      error.hint = "its file lacks the execute bit, or lies on a noexec mount (see `caisson plan`)";
    } else if (code == ENOEXEC) {
      error.reason = "not a program of this machine, and not a script with a #! line";
      error.hint = "start scripts through their interpreter: caisson run -- sh FILE";
    } else if (code == E2BIG) {
      error.reason = "the arguments and environment are larger than the kernel takes (a quarter of the stack limit)";
      error.hint = "pass the data by standard input or a file";
    }
  } else if (error.stage == Stage::mounts) {
    if (error.code == ErrorCode::file_system_refused && code == EINVAL && plan.workspace_overlay) {
      error.hint =
          "the workspace has other mounts inside, which an overlay cannot show: use --workspace DIR:ro or DIR:rw";
    } else if (error.code == ErrorCode::denied_path_missing) {
      error.reason = "it does not exist, and a path that is created later cannot be denied in a writable tree";
      error.hint = "use --workspace DIR:overlay, or create it first";
    } else if (code == ENOSYS) {
      error.hint = "the kernel, or a filter around this process, lacks this call; run `caisson doctor`";
    } else if (code == ELOOP) {
      error.reason = "a symbolic link is in the path that was not there when it was checked";
      error.hint = "run again; if it stays, another process is replacing the directory";
    } else if (code == EPERM || code == EACCES) {
      error.hint = "run `caisson doctor`: it names what this host forbids and the remedy";
    }
  } else if (error.stage == Stage::self_test) {
    error.reason = "the sandbox is not tight on this host; the program was not started";
    error.hint = "run `caisson doctor`, and please report this";
  } else if ((error.code == ErrorCode::no_apparmor || error.code == ErrorCode::apparmor_refused) &&
             (code == ENOENT || code == EINVAL)) {
    const bool inactive = error.code == ErrorCode::no_apparmor;
    error.reason = inactive ? "the policy names an AppArmor profile, and AppArmor is not active on this host"
                            : "the AppArmor profile \"" + plan.apparmor_profile + "\" is not loaded on this host";
    error.hint = inactive ? "remove isolation.apparmor_profile from the policy, or boot with AppArmor"
                          : "load it with apparmor_parser, or remove isolation.apparmor_profile from the policy";
  } else if (error.code == ErrorCode::selinux_refused) {
    error.reason = "SELinux does not accept the label \"" + plan.selinux_label + "\"";
    error.hint =
        "name a label of the loaded SELinux policy that the caller may enter, or remove isolation.selinux_label";
  } else if (error.stage == Stage::launch && code == EAGAIN) {
    error.reason = "the limit on processes leaves no room for the program itself";
    error.hint = "raise it with --pids, or this user's own (ulimit -u)";
  } else if (code == EPERM || code == EACCES || code == ENOSYS) {
    error.hint = "run `caisson doctor`: it names what this host forbids and the remedy";
  }
}

}  // namespace caisson::supervise
