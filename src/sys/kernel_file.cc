#include "sys/kernel_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>

#include "sys/fd.h"

namespace caisson::sys {

std::string readKernelFile(const char* path) {
  std::string text;
  const Fd file(::open(path, O_RDONLY | O_CLOEXEC));
  std::array<char, 4096> chunk;
  for (ssize_t count = 0; file && (count = ::read(file.get(), chunk.data(), chunk.size())) > 0;) {
    text.append(chunk.data(), static_cast<std::size_t>(count));
  }
  while (!text.empty() && (text.back() == '\n' || text.back() == '\0')) text.pop_back();
  return text;
}

}  // namespace caisson::sys
