// The `caisson` program. Verbs are listed in verbs.cc, each in a file of its own.
#include <span>

#include "cli/verb.h"

int main(int count, char** words) {
  const auto size = count > 0 ? static_cast<std::size_t>(count) : 0;
  return caisson::cli::dispatch(std::span<char* const>(words, size).subspan(size > 0 ? 1 : 0));
}
