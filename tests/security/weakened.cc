// caisson-weakened WEAKNESS[,WEAKNESS]... [OPTION]... -- COMMAND [ARGUMENT]...
//
// `caisson run` with selected protections disabled, so that every test of an attack can show that the attack works
// without them. It builds the plan that caisson would execute, changes the plan's data, and passes it to the same
// supervisor. Never as root: attacks really succeed.
//
// Options: --workspace DIR[:MODE]  --ro PATH  --rw PATH  --deny PATH  --level LEVEL  --tier TIER  --profile NAME
//          --policy FILE  --allow-weaker RUNG
//          --swap LINK   after planning and before launch the workspace is moved aside and LINK put in its place
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "caisson/policy.h"
#include "caisson/run.h"
#include "plan/plan.h"
#include "security/weaken.h"
#include "supervise/supervise.h"

namespace caisson {
namespace {

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    parts.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

struct CommandLine {
  std::vector<std::string> weaknesses;
  std::string profile = "bash", file;
  std::vector<std::pair<std::string, std::string>> settings;  ///< policy keys
  std::string swap, workspace;
  std::vector<std::string> command;
};

std::optional<CommandLine> parse(int argc, char** argv) {
  CommandLine line;
  if (argc < 2) return std::nullopt;
  line.weaknesses = split(argv[1]);
  int at = 2;
  for (; at + 1 < argc && std::string_view(argv[at]) != "--"; at += 2) {
    const std::string option = argv[at];
    const std::string value = argv[at + 1];
    if (option == "--workspace") {
      const std::size_t colon = value.rfind(':');
      line.workspace = value.substr(0, colon);
      if (!line.workspace.empty()) line.settings.emplace_back("filesystem.workspace.path", line.workspace);
      if (colon != std::string::npos) line.settings.emplace_back("filesystem.workspace.mode", value.substr(colon + 1));
    } else if (option == "--ro") {
      line.settings.emplace_back("filesystem.read_only", value);
    } else if (option == "--rw") {
      line.settings.emplace_back("filesystem.read_write", value);
    } else if (option == "--deny") {
      line.settings.emplace_back("filesystem.denied", value);
    } else if (option == "--level") {
      line.settings.emplace_back("isolation.level", value);
    } else if (option == "--tier") {
      line.settings.emplace_back("isolation.tier", value);
    } else if (option == "--allow-weaker") {
      line.settings.emplace_back("isolation.may_be_missing", value);
    } else if (option == "--profile") {
      line.profile = value;
    } else if (option == "--policy") {
      line.file = value;
    } else if (option == "--swap") {
      line.swap = value;
    } else {
      return std::nullopt;
    }
  }
  for (++at; at < argc; ++at) line.command.emplace_back(argv[at]);
  if (line.command.empty()) return std::nullopt;
  return line;
}

int printError(const std::string& what) {
  std::cerr << "caisson-weakened: " << what << '\n';
  return 125;
}

int runWeakened(const CommandLine& line) {
  auto policy = line.file.empty() ? Policy::profile(line.profile) : Policy::load(line.file);
  if (!policy) return printError(policy.error().message());
  for (const auto& [key, value] : line.settings) {
    const bool list = key == "filesystem.read_only" || key == "filesystem.read_write" || key == "filesystem.denied" ||
                      key == "isolation.may_be_missing";
    const auto set = list ? policy->append(key, value) : policy->set(key, value);
    if (!set) return printError(set.error().message());
  }
  Request request{.policy = *policy, .command = line.command};
  request.out = request.err = StreamMode::relay;
  request.relay_stdin = true;
  request.interactive = isatty(STDIN_FILENO) == 1;
  request.forward_signals = true;
  if (const char* program = std::getenv("CAISSON_BIN")) request.program = program;
  auto plan = test::planToWeaken(request);
  if (!plan) return printError(plan.error().message());
  for (const std::string& name : line.weaknesses) {
    if (!test::weaken(*plan, name)) return printError("no weakness is called " + name);
  }
  if (!line.swap.empty()) {
    const std::string aside = line.workspace + ".aside";
    if (rename(line.workspace.c_str(), aside.c_str()) != 0 || symlink(line.swap.c_str(), line.workspace.c_str()) != 0) {
      return printError("can't swap " + line.workspace);
    }
  }
  const RunResult result = supervise::supervise(*plan, request);
  if (result.error) printError(result.error->message());
  return exitStatus(result);
}

}  // namespace
}  // namespace caisson

int main(int argc, char** argv) {
  if (geteuid() == 0)
    return caisson::printError("never for root: an attack that gets through would have root's rights");
  const auto line = caisson::parse(argc, argv);
  if (!line)
    return caisson::printError(
        "usage: caisson-weakened WEAKNESS[,WEAKNESS]... [OPTION VALUE]... -- COMMAND [ARGUMENT]...");
  return caisson::runWeakened(*line);
}
