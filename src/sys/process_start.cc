#include "sys/process_start.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>

#include "sys/fd.h"

namespace caisson::sys {

namespace {

/// The rest of the text from field `number` on, which is not the first or second; empty if there is none.
std::string_view fieldIn(std::string_view stat, int number) {
  std::size_t at = stat.rfind(')');  // the name before it may contain anything, even brackets
  for (int field = 2; field < number && at != std::string_view::npos; ++field) at = stat.find(' ', at + 1);
  return at == std::string_view::npos ? std::string_view() : stat.substr(at + 1);
}

std::uint64_t numberIn(std::string_view stat, int field) {
  const std::string_view text = fieldIn(stat, field);
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// The content of /proc/PID/stat; empty if there is no such process.
std::string_view readStat(pid_t pid, char (&text)[1024]) {
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/%d/stat", pid);
  const Fd file(::open(path, O_RDONLY | O_CLOEXEC));
  const ssize_t got = file ? ::read(file.get(), text, sizeof(text)) : -1;
  return {text, got > 0 ? static_cast<std::size_t>(got) : 0};
}

}  // namespace

std::uint64_t processStartIn(std::string_view stat) { return numberIn(stat, 22); }

std::uint64_t processStart(pid_t pid) {
  char text[1024];
  return processStartIn(readStat(pid, text));
}

bool stillRunsIn(std::string_view stat, std::uint64_t start) {
  if (start == 0 || processStartIn(stat) != start) return false;
  const std::string_view state = fieldIn(stat, 3);
  const bool dead = state.starts_with('Z') || state.starts_with('X');
  return !dead || numberIn(stat, 20) > 1;  // the first thread may exit before others
}

bool stillRuns(pid_t pid, std::uint64_t start) {
  char text[1024];
  return start != 0 && stillRunsIn(readStat(pid, text), start);
}

}  // namespace caisson::sys
