// Plain access to paths that should not exist, be readable, or be writable.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "payload.h"

namespace payload {
namespace {

const std::string& settled(const std::string& path) {
  if (path.starts_with("/proc/1/")) waitForInitToSettle();
  return path;
}

/// Prints the content, newlines as spaces. An empty readable file does not count as success: masks look like that.
int readPath(const Arguments& arguments) {
  std::string content = contentOf(settled(arguments[0]));
  if (errno != 0) return refused("read " + arguments[0]);
  if (content.empty()) return refused("read " + arguments[0] + ": empty", 0);
  for (char& byte : content) {
    if (byte == '\n' || byte == '\0') byte = ' ';
  }
  return done(content.substr(0, 4000));
}

int openPath(const Arguments& arguments) {
  const bool writing = arguments.size() > 1 && arguments[1] == "write";
  return report("open",
                open(settled(arguments[0]).c_str(), (writing ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
}

/// Creates or replaces a file.
int writePath(const Arguments& arguments) {
  const int fd = open(arguments[0].c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return refused("open");
  const std::string text = arguments.size() > 1 ? arguments[1] : "written by the payload\n";
  return report("write", write(fd, text.data(), text.size()));
}

int statPath(const Arguments& arguments) {
  struct stat status{};
  return report("stat", stat(settled(arguments[0]).c_str(), &status));
}

int removePath(const Arguments& arguments) { return report("unlink", unlink(arguments[0].c_str())); }

int renamePath(const Arguments& arguments) {
  return report("rename", rename(arguments[0].c_str(), arguments[1].c_str()));
}

int makeLink(const Arguments& arguments) {
  return report("symlink", symlink(arguments[0].c_str(), arguments[1].c_str()));
}

/// Creates a second name for a file, in a writable directory.
int makeHardLink(const Arguments& arguments) {
  return report("link", linkat(AT_FDCWD, arguments[0].c_str(), AT_FDCWD, arguments[1].c_str(), AT_SYMLINK_FOLLOW));
}

/// Polls for a file that the host creates while the payload runs, up to three seconds.
int awaitPath(const Arguments& arguments) {
  for (int round = 0; round < 150; ++round) {
    if (!contentOf(arguments[0]).empty()) return readPath(arguments);
    pauseFor(20);
  }
  return readPath(arguments);
}

constexpr Verb kVerbs[] = {
    {"read", "PATH", 1, readPath},           {"open", "PATH [write]", 1, openPath},
    {"write", "PATH [TEXT]", 1, writePath},  {"stat", "PATH", 1, statPath},
    {"remove", "PATH", 1, removePath},       {"rename", "FROM TO", 2, renamePath},
    {"symlink", "TARGET PATH", 2, makeLink}, {"hard-link", "FILE PATH", 2, makeHardLink},
    {"await", "PATH", 1, awaitPath},
};

}  // namespace

std::span<const Verb> fileVerbs() { return kVerbs; }

}  // namespace payload
