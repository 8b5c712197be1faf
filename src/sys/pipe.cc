#include "sys/pipe.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace caisson::sys {

Result<Fd> aboveStandard(Fd fd, Stage stage) {
  if (fd.get() > STDERR_FILENO) return fd;
  Fd copy(::fcntl(fd.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (!copy) return fail(sysError(stage, "fcntl", "F_DUPFD_CLOEXEC", errno));
  return copy;
}

Result<Pipe> makePipe(Stage stage, std::string_view object) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return fail(sysError(stage, "pipe2", object, errno, "raise the limit on open files"));
  auto read = aboveStandard(Fd(ends[0]), stage);
  auto write = aboveStandard(Fd(ends[1]), stage);
  if (!read) return fail(read.error());
  if (!write) return fail(write.error());
  return Pipe{std::move(*read), std::move(*write)};
}

}  // namespace caisson::sys
