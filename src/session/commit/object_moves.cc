#include "session/commit/object_moves.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>

#include "session/commit/real_tree.h"
#include "session/layers/steps.h"

namespace caisson::session {

std::optional<sys::FileInfo> infoAt(int directory, const std::string& name) {
  struct stat status;
  if (::fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
  return fileInfoOf(status);
}

int renameWith(int from, const std::string& old_name, int to, const std::string& new_name, unsigned flags) {
  return ::renameat2(from, old_name.c_str(), to, new_name.c_str(), flags) == 0 ? 0 : errno;
}

bool isUnsupportedRename(int error) { return error == EINVAL || error == ENOSYS; }

int moveNew(int from, const std::string& old_name, int to, const std::string& new_name) {
  const int error = renameWith(from, old_name, to, new_name, RENAME_NOREPLACE);
  if (!isUnsupportedRename(error)) return error;
  return infoAt(to, new_name) ? EEXIST : renameWith(from, old_name, to, new_name, 0);
}

std::string asideName(const std::string& name) { return name + ".old"; }

int exchange(int from, const std::string& old_name, int to, const std::string& new_name) {
  int error = renameWith(from, old_name, to, new_name, RENAME_EXCHANGE);
  if (!isUnsupportedRename(error)) return error;
  const std::string aside = asideName(old_name);
  error = moveNew(to, new_name, from, aside);
  if (error != 0) return error;
  step("commit: set aside");
  error = moveNew(from, old_name, to, new_name);
  if (error == 0) return renameWith(from, aside, from, old_name, 0);
  (void)moveNew(from, aside, to, new_name);
  return error;
}

}  // namespace caisson::session
