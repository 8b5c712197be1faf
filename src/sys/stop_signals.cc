#include "sys/stop_signals.h"

#include <pthread.h>
#include <sys/signalfd.h>

#include <cerrno>
#include <csignal>

namespace caisson::sys {

Result<Fd> stopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, number);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  Fd descriptor(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!descriptor) return fail(sysError(Stage::launch, "signalfd", "", errno));
  return descriptor;
}

}  // namespace caisson::sys
