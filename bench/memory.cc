#include "memory.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

namespace bench {
namespace {

struct Process {
  pid_t parent = 0;
  std::string name;
  double peak_rss_kib = 0;
};

/// The text after "KEY:" in a /proc file of such lines; empty if there is none.
std::string field(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, key.size(), key) != 0) continue;
    const auto begin = line.find_first_not_of(" \t", key.size());
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

std::string procPath(pid_t pid, const char* file) { return "/proc/" + std::to_string(pid) + "/" + file; }

std::map<pid_t, Process> allProcesses() {
  std::map<pid_t, Process> processes;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const pid_t pid = std::atoi(name.c_str());
    const std::string status = procPath(pid, "status");
    const std::string parent = field(status, "PPid:");
    if (parent.empty()) continue;
    processes[pid] = {std::atoi(parent.c_str()), field(status, "Name:"), std::atof(field(status, "VmHWM:").c_str())};
  }
  return processes;
}

bool descendsFrom(const std::map<pid_t, Process>& processes, pid_t pid, pid_t ancestor) {
  while (pid > 1 && pid != ancestor) {
    const auto found = processes.find(pid);
    if (found == processes.end()) return false;
    pid = found->second.parent;
  }
  return pid == ancestor;
}

/// Follows the tree below `pid` until it exits. A process is identified by its last name, so a payload is not counted
/// as the sandbox's before its exec.
MemoryResult watch(pid_t pid, const std::string& payload) {
  MemoryResult result;
  std::map<pid_t, Process> seen;
  while (waitpid(pid, nullptr, WNOHANG) == 0) {
    const auto processes = allProcesses();
    double pss = 0;
    unsigned unreadable = 0;
    for (const auto& [candidate, process] : processes) {
      if (!descendsFrom(processes, candidate, pid)) continue;
      Process& known = seen[candidate];
      const double peak = std::max(known.peak_rss_kib, process.peak_rss_kib);
      known = process;
      known.peak_rss_kib = peak;
      if (process.name == payload || process.peak_rss_kib <= 0) continue;
      // An unreadable init must not count as zero: use its RSS instead.
      const std::string share = field(procPath(candidate, "smaps_rollup"), "Pss:");
      if (share.empty()) ++unreadable;
      pss += share.empty() ? process.peak_rss_kib : std::atof(share.c_str());
    }
    if (pss > result.peak_pss_kib) {
      result.peak_pss_kib = pss;
      result.unreadable = unreadable;
    }
    usleep(2000);
  }
  for (const auto& [id, process] : seen) {
    if (process.name == payload || process.peak_rss_kib <= 0) continue;
    ++result.processes;
    result.peak_rss_kib += process.peak_rss_kib;
    result.largest_rss_kib = std::max(result.largest_rss_kib, process.peak_rss_kib);
  }
  return result;
}

std::optional<MemoryResult> watchCommand(const std::string& name, const Command& command) {
  const pid_t pid = start(command);
  if (pid < 0) return std::nullopt;
  MemoryResult result = watch(pid, "sleep");
  result.name = name;
  return result;
}

}  // namespace

std::vector<MemoryResult> measureMemory(const Options& options, const Scratch& scratch) {
  std::vector<MemoryResult> results;
  if (auto argv = bubblewrapPrefix()) {
    argv->insert(argv->end(), {"sleep", "0.2"});
    if (auto result = watchCommand("bubblewrap", {*argv, scratch.workspace(), cleanEnvironment(scratch)})) {
      results.push_back(*result);
    }
  }
  if (const auto command = caissonRun(options, scratch, {"--profile", "bash", "--", "sleep", "0.2"})) {
    if (auto result = watchCommand("caisson full", *command)) results.push_back(*result);
  }
  return results;
}

}  // namespace bench
