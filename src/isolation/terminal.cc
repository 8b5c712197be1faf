// A pty inside the sandbox, so that the payload never has access to the caller's terminal (TIOCSTI, CVE-2017-5226).
#include <fcntl.h>
#include <sys/ioctl.h>

#include "isolation/child.h"

namespace caisson::isolation {

int openTerminal(const Block& block, int* master) {
  const long ptmx = must(block, Stage::launch, "open", "/dev/ptmx",
                         raw(SYS_openat, AT_FDCWD, "/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC, 0));
  const int unlock = 0;
  must(block, Stage::launch, "ioctl TIOCSPTLCK", "/dev/ptmx", raw(SYS_ioctl, ptmx, TIOCSPTLCK, &unlock));
  const winsize size{block.rows, block.columns, 0, 0};
  raw(SYS_ioctl, ptmx, TIOCSWINSZ, &size);
  const long slave = must(block, Stage::launch, "ioctl TIOCGPTPEER", "/dev/ptmx",
                          raw(SYS_ioctl, ptmx, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  *master = static_cast<int>(ptmx);
  return static_cast<int>(slave);
}

}  // namespace caisson::isolation
