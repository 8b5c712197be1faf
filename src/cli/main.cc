// The `caisson` program. Verbs are listed in verbs.cc, each in a file of its own.
#include <unistd.h>

#include <span>

#include "cli/verb.h"

int main(int count, char** words) {
  const auto size = count > 0 ? static_cast<std::size_t>(count) : 0;
  const int status = caisson::cli::dispatch(std::span<char* const>(words, size).subspan(size > 0 ? 1 : 0));
  // Nothing is buffered and nothing is left to undo: taking the process apart piece by piece would only cost time.
  ::_exit(status);
}
