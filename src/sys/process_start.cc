#include "sys/process_start.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>

#include "sys/fd.h"

namespace caisson::sys {

std::uint64_t processStartIn(std::string_view stat) {
  constexpr int kField = 22;
  std::size_t at = stat.rfind(')');  // the name before it may contain anything, even brackets
  if (at == std::string_view::npos) return 0;
  for (int field = 2; field < kField && at != std::string_view::npos; ++field) at = stat.find(' ', at + 1);
  if (at == std::string_view::npos) return 0;
  std::uint64_t start = 0;
  std::from_chars(stat.data() + at + 1, stat.data() + stat.size(), start);
  return start;
}

std::uint64_t processStart(pid_t pid) {
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/%d/stat", pid);
  const Fd file(::open(path, O_RDONLY | O_CLOEXEC));
  char text[1024];
  const ssize_t got = file ? ::read(file.get(), text, sizeof(text)) : -1;
  return got > 0 ? processStartIn({text, static_cast<std::size_t>(got)}) : 0;
}

}  // namespace caisson::sys
