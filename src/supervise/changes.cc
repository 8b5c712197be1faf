#include "supervise/changes.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "sys/fd.h"

namespace caisson::supervise {
namespace {

constexpr std::size_t kCountLimit = 100'000;
constexpr std::size_t kDepthLimit = 64;

struct Count {
  std::size_t entries = 0;
  bool complete = true;
};

/// Depth first with one open directory per level: the depth is bounded, and so are the descriptors.
void countEntries(int directory, std::size_t depth, Count& count) {
  if (depth > kDepthLimit) {
    count.complete = false;
    return;
  }
  DIR* stream = ::fdopendir(directory);
  if (stream == nullptr) {
    ::close(directory);
    count.complete = false;
    return;
  }
  while (const dirent* entry = ::readdir(stream)) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (count.entries >= kCountLimit) {
      count.complete = false;
      break;
    }
    if (entry->d_type != DT_DIR) {
      ++count.entries;  // a changed or new file, or a whiteout
      continue;
    }
    const int below = ::openat(::dirfd(stream), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (below < 0) {
      count.complete = false;
      continue;
    }
    const std::size_t before = count.entries;
    countEntries(below, depth + 1, count);
    if (count.entries == before) ++count.entries;  // an empty directory counts as one change
  }
  ::closedir(stream);
}

}  // namespace

void noteDiscardedChanges(int upper, const plan::Plan& plan, RunResult& result) {
  const int copy = ::openat(upper, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (copy < 0) return;
  Count count;
  countEntries(copy, 0, count);
  if (count.entries == 0) return;
  std::string text = count.complete ? std::to_string(count.entries) : "more than " + std::to_string(count.entries);
  text += count.entries == 1 && count.complete ? " changed file" : " changed files";
  text += " in " + plan.working_directory + " discarded; keep changes with --workspace DIR:rw";
  result.notices.push_back(std::move(text));
}

void explainFailure(Error& error, const plan::Plan& plan) {
  if (!error.hint.empty()) return;
  const int code = error.sys_errno;
  if (error.stage == Stage::exec) {
    if (error.code == ErrorCode::no_working_directory) {
      error.hint = "the working directory is not visible inside the sandbox";
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
  } else if (error.stage == Stage::launch && code == EAGAIN) {
    error.reason = "the limit on processes leaves no room for the program itself";
    error.hint = "raise it with --pids, or this user's own (ulimit -u)";
  } else if (code == EPERM || code == EACCES || code == ENOSYS) {
    error.hint = "run `caisson doctor`: it names what this host forbids and the remedy";
  }
}

}  // namespace caisson::supervise
