// surface: how much of the kernel a sandbox leaves open (docs/syscalls.md).
//
//   surface probe                      inside a sandbox: counts what opens, then waits for the end of its input
//   surface measure -- COMMAND...      outside, as root: runs COMMAND, which must end in `surface probe`, and prints
//                                      one line of JSON: calls, socket families, ioctl requests, files of /proc
//   surface lists                      the generated part of docs/syscalls.md
#include <dirent.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/syscall_names.h"
#include "surface/document.h"
#include "surface/filter_reader.h"
#include "surface/probe.h"

namespace caisson::surface {
namespace {

std::string fileText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The probe, by the variable that marks this measurement; the innermost process that has it as an argument.
std::optional<pid_t> findProbe(const std::string& mark) {
  std::optional<pid_t> found;
  DIR* stream = opendir("/proc");
  while (const dirent* entry = readdir(stream)) {
    const pid_t pid = std::atoi(entry->d_name);
    if (pid <= 0 || pid == getpid()) continue;
    const std::string command = fileText("/proc/" + std::to_string(pid) + "/cmdline");
    const std::string end = std::string("probe") + '\0' + mark + '\0';
    const std::string program = command.substr(0, command.find('\0'));
    if (command.ends_with(end) && program.ends_with("surface")) found = pid;
  }
  closedir(stream);
  return found;
}

int printError(const std::string& what) {
  std::cerr << "surface: " << what << '\n';
  return 1;
}

int measure(std::vector<std::string> command) {
  const std::string mark = "measurement-" + std::to_string(getpid());
  command.push_back(mark);
  int input[2], output[2];
  if (pipe(input) != 0 || pipe(output) != 0) return printError("pipe failed");
  const pid_t child = fork();
  if (child == 0) {
    dup2(input[0], STDIN_FILENO);
    dup2(output[1], STDOUT_FILENO);
    for (const int fd : {input[0], input[1], output[0], output[1]}) close(fd);
    std::vector<char*> words;
    for (std::string& word : command) words.push_back(word.data());
    words.push_back(nullptr);
    execvp(words[0], words.data());
    _exit(127);
  }
  close(input[0]);
  close(output[1]);
  std::string line;
  char letter;
  while (read(output[0], &letter, 1) == 1 && letter != '\n') line += letter;
  auto result = nlohmann::ordered_json::parse(line, nullptr, false);
  const auto probe_pid = findProbe(mark);
  const auto filters = probe_pid ? readFilters(*probe_pid) : std::nullopt;
  close(input[1]);
  waitpid(child, nullptr, 0);
  if (result.is_discarded()) return printError("the probe did not run: " + line);
  if (!filters) return printError("the probe's filters cannot be read: run this as root, outside every container");
  result["calls"] = countCalls(*filters);
  result["filters"] = filters->size();
  const auto requests = countRequests(*filters);
  result["ioctl_requests"] = requests ? nlohmann::ordered_json(*requests) : nlohmann::ordered_json("all");
  std::cout << result.dump() << '\n';
  return 0;
}

int run(const std::vector<std::string>& words) {
  if (!words.empty() && words[0] == "probe") return probe();
  if (!words.empty() && words[0] == "lists") return std::fputs(describeLists().c_str(), stdout) < 0 ? 1 : 0;
  if (words.size() > 2 && words[0] == "measure" && words[1] == "--") return measure({words.begin() + 2, words.end()});
  return printError("usage: surface probe | lists | measure -- COMMAND...");
}

}  // namespace
}  // namespace caisson::surface

int main(int argc, char** argv) { return caisson::surface::run({argv + 1, argv + argc}); }
