// The `caisson` program. verbs.cc lists the verbs; each has its own file.
#include "cli/program_main.h"
#include "cli/terminate.h"
#include "cli/verb.h"

int main(int count, char** words) {
  caisson::cli::programMain(count, words, [](std::span<char* const> line) {
    return caisson::cli::dispatch(line.subspan(line.empty() ? 0 : 1));
  });
}
