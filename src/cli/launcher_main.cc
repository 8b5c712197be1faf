// The `caisson` program of packages: it contains `run`, and becomes caisson-commands, which is main.cc, for everything
// else, also for the egress process of a run. It is small that way, and starts fast from a disk.
#include "cli/companion.h"
#include "cli/perform_verb.h"
#include "cli/program_main.h"
#include "cli/terminate.h"

namespace {

using namespace caisson;

int becomeCommands(std::span<char* const> line) {
  const std::string own = cli::ownProgram();
  std::vector<std::string> words{own};
  for (std::size_t at = 1; at < line.size(); ++at) words.emplace_back(line[at]);
  return cli::becomeProgram(cli::companionProgram("caisson-commands"), words,
                            "install caisson-commands in libexec/caisson beside bin");
}

}  // namespace

int main(int count, char** words) {
  const std::span<char* const> line(words, count > 0 ? static_cast<std::size_t>(count) : 0);
  const std::string_view word = line.size() > 1 ? line[1] : "";
  if (word != cli::kRun.path) {
    // The streams of a worker and of an egress process are their parent's decision.
    if (word != session::kWorkerArgument && word != egress::kProgramWord) cli::openStandardStreams();
    ::_exit(becomeCommands(line));
  }
  cli::openStandardStreams();
  ::_exit(cli::performVerb(cli::kRun, line.subspan(2)));
}
