// Fills writable places until it is stopped, up to a bound from the caller; and a neighbour that measures the impact on
// other processes.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>

#include "payload.h"

namespace payload {
namespace {

constexpr std::size_t kMiB = 1024 * 1024;
constexpr long kHoldMs = 400;

int stopped(std::string_view call) {
  const int error = errno;
  pauseFor(kHoldMs);
  return refused(call, error);
}

long number(const Arguments& arguments, std::size_t at) { return std::atol(arguments[at].c_str()); }

int make(const std::string& path) { return open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600); }

bool writePiece(int fd) {
  static const std::array<char, kMiB> piece = {1};
  for (std::size_t have = 0; have < piece.size();) {
    const ssize_t count = write(fd, piece.data() + have, piece.size() - have);
    if (count <= 0) return false;
    have += static_cast<std::size_t>(count);
  }
  return true;
}

/// One file.
int fillFile(const Arguments& arguments) {
  const int fd = make(arguments[0] + "/abuse");
  if (fd < 0) return refused("open");
  for (long have = 0; have < number(arguments, 1); ++have) {
    if (!writePiece(fd)) return stopped("write");
  }
  pauseFor(kHoldMs);
  return done();
}

/// Many files of a mebibyte.
int fillDirectory(const Arguments& arguments) {
  for (long have = 0; have < number(arguments, 1); ++have) {
    const int fd = make(arguments[0] + "/abuse" + std::to_string(have));
    if (fd < 0) return stopped("open");
    const bool written = writePiece(fd);
    const int error = errno;
    close(fd);
    errno = error;
    if (!written) return stopped("write");
  }
  pauseFor(kHoldMs);
  return done();
}

/// Files that were unlinked but are still open.
int fillDeleted(const Arguments& arguments) {
  const std::string path = arguments[0] + "/deleted";
  for (long have = 0; have < number(arguments, 1); have += 8) {
    const int fd = make(path);
    if (fd < 0) return stopped("open");
    unlink(path.c_str());
    for (int piece = 0; piece < 8; ++piece) {
      if (!writePiece(fd)) return stopped("write");
    }
  }
  pauseFor(kHoldMs);
  return done();
}

/// In a directory that its owner cannot list.
int fillHidden(const Arguments& arguments) {
  const std::string hidden = arguments[0] + "/hidden";
  if (mkdir(hidden.c_str(), 0300) != 0) return refused("mkdir");
  const int result = fillDirectory({hidden, arguments[1]});
  return result;
}

int fillInodes(const Arguments& arguments) {
  for (long have = 0; have < number(arguments, 1); ++have) {
    const int fd = make(arguments[0] + "/i" + std::to_string(have));
    if (fd < 0) return stopped("open");
    close(fd);
  }
  pauseFor(kHoldMs);
  return done();
}

int makeSparse(const Arguments& arguments) {
  const int fd = make(arguments[0] + "/sparse");
  if (fd < 0) return refused("open");
  return ftruncate(fd, static_cast<off_t>(number(arguments, 1)) * static_cast<off_t>(kMiB)) == 0 ? done()
                                                                                                 : stopped("ftruncate");
}

int preallocate(const Arguments& arguments) {
  const int fd = make(arguments[0] + "/allocated");
  if (fd < 0) return refused("open");
  if (fallocate(fd, 0, 0, static_cast<off_t>(number(arguments, 1)) * static_cast<off_t>(kMiB)) != 0)
    return stopped("fallocate");
  pauseFor(kHoldMs);
  return done();
}

int floodOutput(const Arguments& arguments) {
  for (long have = 0; have < number(arguments, 0); ++have) {
    if (!writePiece(1)) return kRefused;
  }
  return kDone;
}

double now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

/// Starts a program repeatedly for MILLISECONDS; prints the median and the 99th percentile in microseconds.
int measureExec(const Arguments& arguments) {
  std::vector<double> times;
  const double end = now() + static_cast<double>(number(arguments, 0)) * 1e3;
  while (now() < end) {
    const double start = now();
    const pid_t child = vfork();
    if (child == 0) {
      execl("/proc/self/exe", "payload", "nothing", nullptr);
      _exit(127);
    }
    if (child < 0 || waitpid(child, nullptr, 0) != child) return refused("vfork");
    times.push_back(now() - start);
  }
  std::sort(times.begin(), times.end());
  return done(std::to_string(times[times.size() / 2]) + " " + std::to_string(times[times.size() * 99 / 100]) + " " +
              std::to_string(times.size()));
}

int nothing(const Arguments&) { return kDone; }

constexpr Verb kVerbs[] = {
    {"fill-file", "DIRECTORY MIB", 2, fillFile},       {"fill-directory", "DIRECTORY MIB", 2, fillDirectory},
    {"fill-deleted", "DIRECTORY MIB", 2, fillDeleted}, {"fill-hidden", "DIRECTORY MIB", 2, fillHidden},
    {"fill-inodes", "DIRECTORY COUNT", 2, fillInodes}, {"make-sparse", "DIRECTORY MIB", 2, makeSparse},
    {"preallocate", "DIRECTORY MIB", 2, preallocate},  {"flood-output", "MIB", 1, floodOutput},
    {"measure-exec", "MILLISECONDS", 1, measureExec},  {"nothing", "", 0, nothing},
};

}  // namespace

std::span<const Verb> abuseDiskVerbs() { return kVerbs; }

}  // namespace payload
