#include "supervise/syscalls/sandbox_sysinfo.h"

#include <algorithm>
#include <charconv>
#include <ctime>

#include "supervise/processes/proc_text.h"

namespace caisson::supervise {

std::int64_t parseBootOffset(std::string_view text) {
  constexpr std::string_view kName = "boottime";
  const std::size_t at = text.find(kName);
  if (at == std::string_view::npos) return 0;
  text.remove_prefix(at + kName.size());
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  std::int64_t seconds = 0;
  std::from_chars(text.data(), text.data() + text.size(), seconds);
  return seconds;
}

struct sysinfo sandboxSysinfo(const plan::Plan& plan, pid_t pid) {
  struct sysinfo shown{};
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  shown.uptime = now.tv_sec + parseBootOffset(readFile(pid, "timens_offsets"));
  shown.totalram = shown.freeram = plan.shown_memory;
  shown.procs = 1;
  shown.mem_unit = 1;
  return shown;
}

}  // namespace caisson::supervise
