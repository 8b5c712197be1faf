#include "support/processes.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <map>
#include <sstream>

#include "support/temp_dir.h"

namespace caisson::test {
namespace {

std::vector<pid_t> allProcesses() {
  std::vector<pid_t> pids;
  DIR* proc = opendir("/proc");
  while (const dirent* entry = proc != nullptr ? readdir(proc) : nullptr) {
    if (const pid_t pid = std::atoi(entry->d_name); pid > 0) pids.push_back(pid);
  }
  if (proc != nullptr) closedir(proc);
  return pids;
}

std::string procFile(pid_t pid, const std::string& name) {
  return readFile("/proc/" + std::to_string(pid) + "/" + name);
}

/// The pid in the innermost namespace, and whether that namespace differs from the caller's.
std::pair<pid_t, bool> innermostPid(pid_t pid) {
  const std::string status = procFile(pid, "status");
  const std::size_t begin = status.find("\nNSpid:");
  if (begin == std::string::npos) return {-1, false};
  std::istringstream numbers(status.substr(begin + 7, status.find('\n', begin + 1) - begin - 7));
  pid_t last = -1;
  int count = 0;
  for (pid_t number = 0; numbers >> number; ++count) last = number;
  return {last, count > 1};
}

}  // namespace

std::optional<ProcessState> processState(pid_t pid) {
  const std::string stat = procFile(pid, "stat");
  const std::size_t name_begin = stat.find('(');
  const std::size_t name_end = stat.rfind(')');
  if (name_begin == std::string::npos || name_end == std::string::npos) return std::nullopt;
  ProcessState result;
  result.name = stat.substr(name_begin + 1, name_end - name_begin - 1);
  std::istringstream fields(stat.substr(name_end + 1));
  fields >> result.state >> result.parent;
  std::string skipped;
  for (int field = 5; field < 14; ++field) fields >> skipped;
  for (int field = 14; field < 18; ++field) {
    double ticks = 0;
    fields >> ticks;
    result.cpu_seconds += ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
  }
  if (result.state == 'Z' || result.state == 'X') return std::nullopt;
  return result;
}

std::vector<pid_t> liveProcesses(const std::string& marker) {
  std::vector<pid_t> found;
  for (const pid_t pid : allProcesses()) {
    if (pid == getpid() || procFile(pid, "cmdline").find(marker) == std::string::npos) continue;
    if (processState(pid)) found.push_back(pid);
  }
  return found;
}

pid_t firstLiveProcess(const std::string& marker) {
  const std::vector<pid_t> found = liveProcesses(marker);
  for (const pid_t pid : found) {
    const auto state = processState(pid);
    if (state && std::ranges::find(found, state->parent) == found.end()) return pid;
  }
  return -1;
}

bool signalProcess(pid_t pid, int number) { return pid > 1 && kill(pid, number) == 0; }

pid_t sandboxInit(pid_t pid) {
  while (pid > 1) {
    const auto [inner, nested] = innermostPid(pid);
    if (!nested) return -1;
    if (inner == 1) return pid;
    const auto state = processState(pid);
    if (!state) return -1;
    pid = state->parent;
  }
  return -1;
}

std::vector<pid_t> processTree(pid_t ancestor) {
  std::map<pid_t, pid_t> parents;
  for (const pid_t pid : allProcesses()) {
    if (const auto state = processState(pid)) parents[pid] = state->parent;
  }
  std::vector<pid_t> tree;
  for (const auto& [pid, parent] : parents) {
    for (pid_t at = pid; at > 0; at = parents.contains(at) ? parents[at] : 0) {
      if (at != ancestor) continue;
      tree.push_back(pid);
      break;
    }
  }
  return tree;
}

pid_t sessionSupervisor(const std::string& session_id) {
  using namespace std::string_literals;
  const auto found = liveProcesses("__session\0supervise\0"s + session_id);
  // Its parent, the launcher, has the same command line.
  for (const pid_t pid : found) {
    const auto state = processState(pid);
    if (state && std::ranges::find(found, state->parent) != found.end()) return pid;
  }
  return -1;
}

}  // namespace caisson::test
