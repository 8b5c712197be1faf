#include "supervise/processes/proc_text.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <string_view>

#include "sys/fd.h"

namespace caisson::supervise {

std::string readFile(const char* path) {
  const sys::Fd fd(::open(path, O_RDONLY | O_CLOEXEC));
  std::string text;
  char buffer[4096];
  for (ssize_t got; fd && text.size() < (1U << 20) && (got = ::read(fd.get(), buffer, sizeof(buffer))) > 0;)
    text.append(buffer, static_cast<std::size_t>(got));
  return text;
}

std::string readFile(pid_t pid, const char* name) {
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
  return readFile(path);
}

std::string programName(pid_t pid) {
  std::string name = readFile(pid, "comm");
  while (!name.empty() && name.back() == '\n') name.pop_back();
  return name;
}

std::vector<int> numbersIn(pid_t pid, const char* name, std::size_t most) {
  std::vector<int> numbers;
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
  DIR* stream = ::opendir(path);
  if (stream == nullptr) return numbers;
  while (const dirent* entry = ::readdir(stream)) {
    const std::string_view text = entry->d_name;
    int number = 0;
    if (std::from_chars(text.begin(), text.end(), number).ptr == text.end() && !text.empty()) numbers.push_back(number);
    if (numbers.size() >= most) break;
  }
  ::closedir(stream);
  return numbers;
}

}  // namespace caisson::supervise
