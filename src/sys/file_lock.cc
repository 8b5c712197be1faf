#include "sys/file_lock.h"

#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <thread>

namespace caisson::sys {

Result<void> lockFile(int file, LockKind kind, std::chrono::milliseconds timeout, std::string_view path) {
  using std::chrono::microseconds;
  using std::chrono::steady_clock;
  const int operation = (kind == LockKind::shared ? LOCK_SH : LOCK_EX) | LOCK_NB;
  const auto deadline = steady_clock::now() + timeout;
  for (microseconds pause(20);; pause = std::min(2 * pause, microseconds(2000))) {
    if (::flock(file, operation) == 0) return {};
    if (errno != EWOULDBLOCK && errno != EINTR) {
      return fail(sysError(Stage::state, "flock", path, errno,
                           "the file system of CAISSON_HOME must have flock locks; set CAISSON_HOME to a local disk"));
    }
    if (timeout.count() == 0) return fail(sysError(Stage::state, "flock", path, EWOULDBLOCK));
    if (steady_clock::now() > deadline) {
      return fail(plainError(Stage::state, "flock", path, "another process holds it and did not release it in time",
                             "see which: fuser -v " + std::string(path)));
    }
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace caisson::sys
