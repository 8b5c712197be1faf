#include "sys/program_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "sys/fd.h"

namespace caisson::sys {
namespace {

constexpr std::size_t kPiece = 64 * 1024;

bool isProgram(const std::string& file) {
  struct stat info{};
  return ::stat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode) && ::access(file.c_str(), X_OK) == 0;
}

std::string resolved(const std::string& file) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(file.c_str(), nullptr), &std::free);
  return real == nullptr ? "" : real.get();
}

Fd openFile(const std::string& file) { return Fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)); }

/// Reads up to `size` bytes; fewer at the end of the file or on an error.
std::size_t readFully(int fd, char* room, std::size_t size) {
  std::size_t have = 0;
  while (have < size) {
    const ssize_t got = ::read(fd, room + have, size - have);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    have += static_cast<std::size_t>(got);
  }
  return have;
}

bool sameBytes(const Fd& one, const Fd& other) {
  std::vector<char> left(kPiece), right(kPiece);
  while (true) {
    const std::size_t size = readFully(one.get(), left.data(), kPiece);
    if (size != readFully(other.get(), right.data(), kPiece)) return false;
    if (std::memcmp(left.data(), right.data(), size) != 0) return false;
    if (size < kPiece) return true;
  }
}

struct MultiCall {
  std::string_view name, words;
};
constexpr MultiCall kMultiCall[] = {{"busybox", "BusyBox v"}, {"toybox", "landley.net/toybox"}};
constexpr off_t kLargestMultiCall = 3 << 20;

}  // namespace

std::string locateProgram(std::string_view name, std::string_view path) {
  if (name.empty()) return {};
  if (name.find('/') != std::string_view::npos) {
    const std::string file(name);
    return isProgram(file) ? resolved(file) : "";
  }
  while (!path.empty()) {
    const std::size_t end = std::min(path.find(':'), path.size());
    const std::string file = std::string(path.substr(0, end)) + "/" + std::string(name);
    if (isProgram(file)) return resolved(file);
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return {};
}

bool sameProgram(const std::string& one, const std::string& other) {
  const Fd left = openFile(one);
  const Fd right = openFile(other);
  struct stat here{}, there{};
  if (!left || !right || ::fstat(left.get(), &here) != 0 || ::fstat(right.get(), &there) != 0) return false;
  if (!S_ISREG(here.st_mode) || !S_ISREG(there.st_mode)) return false;
  if (here.st_dev == there.st_dev && here.st_ino == there.st_ino) return true;
  return here.st_size == there.st_size && sameBytes(left, right);
}

std::string scriptInterpreter(const std::string& file) {
  const Fd script = openFile(file);
  std::array<char, 256> room{};
  if (!script) return {};
  std::string_view line(room.data(), readFully(script.get(), room.data(), room.size()));
  if (!line.starts_with("#!")) return {};
  line = line.substr(2, line.find('\n') == std::string_view::npos ? line.npos : line.find('\n') - 2);
  constexpr std::string_view kBlanks = " \t\r";
  std::string interpreter;
  while (!line.empty()) {
    line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
    const std::string_view word = line.substr(0, line.find_first_of(kBlanks));
    line.remove_prefix(word.size());
    const bool for_env = word.starts_with('-') || word.find('=') != std::string_view::npos;
    if (word.empty() || (for_env && !interpreter.empty())) continue;
    interpreter = word;
    if (!interpreter.ends_with("/env")) break;
  }
  return interpreter;
}

std::string_view multiCallProgram(int fd) {
  struct stat info{};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size > kLargestMultiCall) return {};
  // Each piece starts with the end of the previous one, since the text may span two.
  constexpr std::size_t kOverlap = 32;
  std::vector<char> room(kPiece + kOverlap);
  std::size_t kept = 0;
  for (off_t at = 0; at < info.st_size;) {
    const ssize_t got = ::pread(fd, room.data() + kept, kPiece, at);
    if (got <= 0) return {};
    const std::size_t size = kept + static_cast<std::size_t>(got);
    for (const MultiCall& one : kMultiCall) {
      if (::memmem(room.data(), size, one.words.data(), one.words.size()) != nullptr) return one.name;
    }
    kept = std::min(size, kOverlap);
    std::memmove(room.data(), room.data() + size - kept, kept);
    at += got;
  }
  return {};
}

}  // namespace caisson::sys
