#include "audit/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace caisson::audit {

Result<sys::Fd> openOwn(int directory, const std::string& path, const std::string& name, int flags) {
  const std::string object = path + "/" + name;
  const auto refuse = [&](std::string_view reason) {
    return fail(plainError(Stage::state, "audit log", object, reason,
                           "find out who put it there; move it away, then try again"));
  };
  sys::Fd file(::openat(directory, name.c_str(), flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600));
  if (!file) {
    if (errno == ELOOP) return refuse("it is a symbolic link");
    if (errno == EISDIR) return refuse("it is a directory");
    return fail(sysError(Stage::state, "openat", object, errno,
                         errno == EACCES || errno == EROFS || errno == ENOSPC
                             ? "nothing runs unseen: make it writable, or set CAISSON_HOME to a directory that is"
                             : ""));
  }
  struct stat status;
  if (::fstat(file.get(), &status) != 0) return fail(sysError(Stage::state, "fstat", object, errno));
  if (!S_ISREG(status.st_mode)) return refuse("it is not a regular file");
  if (status.st_uid != ::geteuid()) return refuse("it belongs to user " + std::to_string(status.st_uid));
  if (status.st_nlink != 1) return refuse("it has " + std::to_string(status.st_nlink) + " names (hard links)");
  if ((flags & O_ACCMODE) != O_RDONLY && (status.st_mode & 077U) != 0) ::fchmod(file.get(), 0600);
  return file;
}

}  // namespace caisson::audit
