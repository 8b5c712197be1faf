// The `caisson` program. verbs.cc lists the verbs; each has its own file.
#include <fcntl.h>
#include <unistd.h>

#include <span>

#include "cli/verb.h"
#include "egress/program.h"
#include "session/client/worker.h"

namespace {

/// A caller may start us with some of 0, 1, 2 closed; a descriptor that we open could then be mistaken for a stream.
void openStandardStreams() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) != -1) continue;
    if (::open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY) != fd) ::_exit(125);
  }
}

}  // namespace

int main(int count, char** words) {
  if (count == 2 && words[1] == caisson::egress::kProgramWord) ::_exit(caisson::egress::programMain());
  const std::span<char* const> line(words, count > 0 ? static_cast<std::size_t>(count) : 0);
  if (count > 2 && words[1] == caisson::session::kWorkerArgument) {
    ::_exit(caisson::session::workerMain(line.subspan(2)));
  }
  openStandardStreams();
  const int status = caisson::cli::dispatch(line.subspan(line.empty() ? 0 : 1));
  // Nothing is buffered and nothing needs cleanup, so skip destructors to save time.
  ::_exit(status);
}
