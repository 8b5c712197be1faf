// Replaces and removes files that were hidden from the session and that no rename can move to where no sandbox sees
// them: the session's directory is on another file system. They are copied, and compared before and after they are
// lost.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "session/commit/apply.h"
#include "session/commit/object_moves.h"
#include "session/layers/steps.h"

namespace caisson::session {
namespace {

Error hiddenError(std::string_view call, const std::string& path, int error) {
  return sysError(Stage::state, call, path, error);
}

/// Whether no program wrote to a file, of which `before` was read when it had a name.
bool isUnwritten(int file, const sys::FileInfo& before) {
  struct stat status;
  if (::fstat(file, &status) != 0) return false;
  const sys::FileInfo now = fileInfoOf(status);
  return now.size == before.size && now.modified_ns == before.modified_ns && now.mode == before.mode &&
         !isOpenForWriting(file);
}

}  // namespace

Result<std::string> Applier::replaceHidden(std::size_t index, const Source* source, int parent,
                                           const std::string& name) {
  constexpr const char* kWritten = "it was changed meanwhile, or a program has it open for writing";
  const Action& action = transaction_.actions[index];
  const auto before = infoAt(parent, name);
  if (!before || !action.before->matches(*before, true)) return kWritten;
  const sys::Fd old(::openat(parent, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));  // not of a link
  if (old && isOpenForWriting(old.get())) return kWritten;
  if (kept_ != nullptr) {
    if (auto copied = kept_->copy(index, parent, name, action.path); !copied) return fail(copied.error());
  }
  step("commit: hidden file copied");
  const auto now = infoAt(parent, name);
  if (!now || !HostIdentity::of(*before).matches(*now) || (old && isOpenForWriting(old.get()))) {
    if (kept_ != nullptr) kept_->drop(index);
    return kWritten;
  }
  int error = 0;
  const auto staged = source != nullptr ? infoAt(source->directory, source->name) : std::nullopt;
  if (source != nullptr) {
    error = renameWith(source->directory, source->name, parent, name, 0);
  } else if (::unlinkat(parent, name.c_str(), 0) != 0) {
    error = errno;
  }
  if (error != 0) return fail(hiddenError(source != nullptr ? "rename" : "unlink", action.path, error));
  if (source != nullptr) notePlaced(index, staged, parent, name);
  step("commit: hidden file replaced");
  if (!old || isUnwritten(old.get(), *before)) {
    done_.push_back({index, source != nullptr ? How::replaced : How::removed, source != nullptr && source->beside});
    return "";
  }
  if (auto put = putBackCopy(old.get(), source, parent, name, action.path); !put) return fail(put.error());
  noteTakenBack(index);
  if (kept_ != nullptr) kept_->drop(index);
  return kWritten;
}

Result<void> Applier::putBackCopy(int old, const Source* source, int parent, const std::string& name,
                                  const std::string& path) {
  // Without a name, so that no sandbox sees it on its way.
  const sys::Fd copy(::openat(parent, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!copy) return fail(hiddenError("create", path, errno));
  if (auto copied = copyOpenFile(old, copy.get(), path); !copied) return copied;
  const int error = source == nullptr ? 0 : moveNew(parent, name, source->directory, source->name);
  if (error != 0) return fail(hiddenError("rename", path, error));
  const std::string self = "/proc/self/fd/" + std::to_string(copy.get());
  if (::linkat(AT_FDCWD, self.c_str(), parent, name.c_str(), AT_SYMLINK_FOLLOW) == 0) return {};
  return fail(hiddenError("link", path, errno));
}

}  // namespace caisson::session
