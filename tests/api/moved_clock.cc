// caisson-server with a wall clock that a test can set: it is off by the number of seconds in the file that
// CAISSON_TEST_CLOCK names. A time namespace does not cover the wall clock, and setting the real one would concern the
// whole machine. The linker redirects all calls here (--wrap); those of the C library itself it cannot.
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

extern "C" {
int __real_clock_gettime(clockid_t clock, timespec* time);
int __wrap_clock_gettime(clockid_t clock, timespec* time);
time_t __wrap_time(time_t* result);
}

namespace {

time_t offset() {
  const int error = errno;
  const char* const path = std::getenv("CAISSON_TEST_CLOCK");
  const int file = path == nullptr ? -1 : ::open(path, O_RDONLY | O_CLOEXEC);
  char text[32] = {};
  if (file >= 0) {
    static_cast<void>(!::read(file, text, sizeof text - 1));
    ::close(file);
  }
  errno = error;
  return std::atoll(text);
}

}  // namespace

int __wrap_clock_gettime(clockid_t clock, timespec* time) {
  const int result = __real_clock_gettime(clock, time);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) time->tv_sec += offset();
  return result;
}

time_t __wrap_time(time_t* result) {
  timespec now{};
  __wrap_clock_gettime(CLOCK_REALTIME, &now);
  if (result != nullptr) *result = now.tv_sec;
  return now.tv_sec;
}
