#include "plan/proc_files.h"

#include <algorithm>
#include <cmath>

namespace caisson::plan {
namespace {

constexpr std::string_view kProc = "/proc/";
constexpr std::string_view kCoveredProc[] = {"cpuinfo", "loadavg", "meminfo", "stat", "uptime", "version"};

std::size_t processors(const policy::Policy& policy, const HostFacts& host) {
  const std::size_t offered =
      policy.resources.cpu_affinity.empty() ? host.cpus.size() : policy.resources.cpu_affinity.size();
  const auto wanted = static_cast<std::size_t>(std::ceil(policy.resources.cpus));
  const std::size_t usable = std::max<std::size_t>(offered, 1);
  return wanted == 0 ? usable : std::min(wanted, usable);
}

/// The content of /proc/meminfo for `bytes` of memory, all of it free, in the kernel's order and with its names.
std::string meminfo(std::uint64_t bytes) {
  const std::uint64_t all = bytes / 1024;
  std::string text;
  const auto add = [&](std::string_view name, std::uint64_t kib) {
    const std::string number = std::to_string(kib);
    text += name;
    text += ':';
    text.append(name.size() < 14 ? 14 - name.size() : 0, ' ');
    text.append(number.size() < 9 ? 9 - number.size() : 1, ' ');
    text += number;
    text += " kB\n";
  };
  text.reserve(1024);
  for (const std::string_view name : {"MemTotal", "MemFree", "MemAvailable"}) add(name, all);
  for (const std::string_view name :
       {"Buffers",        "Cached",       "SwapCached",     "Active",      "Inactive",    "Active(anon)",
        "Inactive(anon)", "Active(file)", "Inactive(file)", "Unevictable", "Mlocked",     "SwapTotal",
        "SwapFree",       "Dirty",        "Writeback",      "AnonPages",   "Mapped",      "Shmem",
        "KReclaimable",   "Slab",         "SReclaimable",   "SUnreclaim",  "KernelStack", "PageTables"}) {
    add(name, 0);
  }
  add("CommitLimit", all);
  add("Committed_AS", 0);
  return text;
}

bool isNumbered(std::string_view key) {
  return key == "processor" || key == "core id" || key == "apicid" || key == "initial apicid";
}

/// The content of /proc/cpuinfo: the host's first block once per processor, numbered from 0. Processor features are not
/// secret: a program can query the processor itself.
std::string cpuinfo(std::string_view block, std::size_t count) {
  std::string text;
  text.reserve((block.size() + 8) * count);
  for (std::size_t number = 0; number < count; ++number) {
    bool named = false;
    for (std::size_t begin = 0; begin < block.size();) {
      const std::size_t end = std::min(block.find('\n', begin), block.size());
      const std::string_view line = block.substr(begin, end - begin);
      begin = end + 1;
      const std::size_t colon = line.find(':');
      const std::size_t name_end = line.substr(0, colon).find_last_not_of(" \t");
      const std::string_view key = line.substr(0, name_end == std::string_view::npos ? 0 : name_end + 1);
      if (colon != std::string_view::npos && isNumbered(key)) {
        text += line.substr(0, colon);
        text += ": " + std::to_string(number);
        named = named || key == "processor";
      } else if (colon != std::string_view::npos && (key == "siblings" || key == "cpu cores")) {
        text += line.substr(0, colon);
        text += ": " + std::to_string(count);
      } else {
        text += line;
      }
      text += '\n';
    }
    if (!named) text += "processor\t: " + std::to_string(number) + "\n";
    text += '\n';
  }
  return text;
}

std::string stat(std::size_t count) {
  constexpr std::string_view kIdle = " 0 0 0 0 0 0 0 0 0 0\n";
  std::string text = "cpu " + std::string(kIdle);
  for (std::size_t number = 0; number < count; ++number) text += "cpu" + std::to_string(number) + std::string(kIdle);
  text += "intr 0\nctxt 0\nbtime ";
  text += kBootTimeMark;
  text += "\nprocesses 1\nprocs_running 1\nprocs_blocked 0\nsoftirq 0 0 0 0 0 0 0 0 0 0 0\n";
  return text;
}

}  // namespace

std::uint64_t shownMemory(const policy::Policy& policy, const HostFacts& host) {
  const std::uint64_t limit = policy.resources.memory;
  return limit != 0 && (host.memory == 0 || limit < host.memory) ? limit : host.memory;
}

std::vector<CoverFile> procFiles(const policy::Policy& policy, const HostFacts& host) {
  const std::size_t count = processors(policy, host);
  return {
      {"/proc/cpuinfo", cpuinfo(host.processor, count)},
      {"/proc/loadavg", "0.00 0.00 0.00 1/1 1\n"},
      {"/proc/meminfo", meminfo(shownMemory(policy, host))},
      {"/proc/stat", stat(count)},
      {"/proc/uptime", std::string(kUptimeMark) + ".00 0.00\n"},
      {"/proc/version", "Linux version " + host.kernel_release + " (sandbox@sandbox) " + host.kernel_version + "\n"},
      {"/proc/sys/kernel/random/boot_id", std::string(kRandomIdMark) + "\n"},
  };
}

bool isMaskedProc(std::string_view path) {
  if (!path.starts_with(kProc)) return false;
  const std::string_view rest = path.substr(kProc.size());
  const std::string_view entry = rest.substr(0, rest.find('/'));
  if (entry.empty() || (entry[0] >= '0' && entry[0] <= '9')) return false;
  return std::ranges::find(kShownProc, entry) == std::end(kShownProc) &&
         std::ranges::find(kCoveredProc, entry) == std::end(kCoveredProc);
}

}  // namespace caisson::plan
