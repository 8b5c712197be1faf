// What main() of `caisson` and of `caisson-mcp` have in common: both are also the program of their supervisors, workers
// and egress processes (sys::kOwnProgram).
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <span>

#include "egress/program.h"
#include "session/client/worker.h"

namespace caisson::cli {

/// A caller may start us with some of 0, 1, 2 closed; a descriptor that we open could then be mistaken for a stream.
inline void openStandardStreams() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) != -1) continue;
    if (::open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY) != fd) ::_exit(125);
  }
}

/// Runs a hidden subcommand, or `perform` with the whole command line, and exits.
[[noreturn]] inline void programMain(int count, char** words, int (*perform)(std::span<char* const> line)) {
  if (count == 2 && words[1] == egress::kProgramWord) ::_exit(egress::programMain());
  const std::span<char* const> line(words, count > 0 ? static_cast<std::size_t>(count) : 0);
  if (count > 2 && words[1] == session::kWorkerArgument) ::_exit(session::workerMain(line.subspan(2)));
  openStandardStreams();
  // Nothing is buffered and nothing needs cleanup, so skip destructors to save time.
  ::_exit(perform(line));
}

}  // namespace caisson::cli
