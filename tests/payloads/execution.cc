// Ways to start a program that is not on the list of executables. Each starts something harmless (`true`, `id`) and
// succeeds only if that ran to completion.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "payload.h"

namespace payload {
namespace {

constexpr int kNoExec = 111;

/// Runs `start` in a child; succeeds if the executed program exits with 0.
template <class Start>
int runChild(std::string_view call, Start start) {
  int failure[2];
  if (pipe2(failure, O_CLOEXEC) != 0) return refused("pipe2");
  const pid_t child = fork();
  if (child < 0) return refused("fork");
  if (child == 0) {
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(null, 1);
    dup2(null, 2);
    start();
    const int error = errno;
    [[maybe_unused]] const ssize_t told = write(failure[1], &error, sizeof(error));
    _exit(kNoExec);
  }
  close(failure[1]);
  int error = 0;
  const bool failed = read(failure[0], &error, sizeof(error)) == sizeof(error);
  close(failure[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (failed) return refused(call, error);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return done();
  return refused("it started, and failed", ENOEXEC);  // as ld.so does if it cannot map the program
}

std::vector<char*> pointers(const Arguments& words) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  return argv;
}

int executeArgv(const Arguments& argv) {
  return runChild("execve", [&] { execv(argv[0].c_str(), pointers(argv).data()); });
}

/// Starts it from another directory, by a relative path.
int executeFrom(const Arguments& arguments) {
  if (chdir(arguments[0].c_str()) != 0) return refused("chdir");
  return executeArgv(Arguments(arguments.begin() + 1, arguments.end()));
}

bool copyTo(const std::string& from, int to) {
  const std::string content = contentOf(from);
  std::size_t written = 0;
  while (written < content.size()) {
    const ssize_t count = write(to, content.data() + written, content.size() - written);
    if (count <= 0) return false;
    written += static_cast<std::size_t>(count);
  }
  return !content.empty();
}

/// Sets errno on failure.
bool copyProgram(const std::string& from, const std::string& to) {
  const int fd = open(to.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
  if (fd < 0) return false;
  const bool copied = copyTo(from, fd);
  close(fd);
  return copied;
}

int executeCopy(const Arguments& arguments) {
  if (!copyProgram(arguments[0], arguments[1])) return refused("copy");
  return executeArgv({arguments[1]});
}

int executeSymlink(const Arguments& arguments) {
  if (symlink(arguments[0].c_str(), arguments[1].c_str()) != 0) return refused("symlink");
  return executeArgv({arguments[1]});
}

int executeHardLink(const Arguments& arguments) {
  if (link(arguments[0].c_str(), arguments[1].c_str()) != 0) return refused("link");
  return executeArgv({arguments[1]});
}

int executeScript(const Arguments& arguments) {
  const int fd = open(arguments[1].c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
  if (fd < 0) return refused("open");
  const std::string text = "#!" + arguments[0] + "\nexit 0\n";
  if (write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size())) return refused("write");
  close(fd);
  return executeArgv({arguments[1]});
}

/// The loader reads and maps the program itself: the program file is never executed.
int executeByLoader(const Arguments& arguments) {
  if (!copyProgram(arguments[1], arguments[2])) return refused("copy");
  return executeArgv({arguments[0], arguments[2]});
}

int executeMemory(const Arguments& arguments) {
  const unsigned flags = arguments.size() > 1 ? 0x10 /* MFD_EXEC */ : 0;
  const int fd = static_cast<int>(syscall(SYS_memfd_create, "program", flags));
  if (fd < 0) return refused("memfd_create");
  if (!copyTo(arguments[0], fd)) return refused("copy");
  return runChild("execveat", [&] {
    char* argv[] = {const_cast<char*>("program"), nullptr};
    syscall(SYS_execveat, fd, "", argv, environ, AT_EMPTY_PATH);
  });
}

/// An unnamed file in a given directory, executed by its descriptor.
int executeUnnamed(const Arguments& arguments) {
  const int fd = open(arguments[1].c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0700);
  if (fd < 0) return refused("open");
  if (!copyTo(arguments[0], fd)) return refused("copy");
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  const int readable = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  close(fd);
  return runChild("execveat", [&] {
    char* argv[] = {const_cast<char*>("program"), nullptr};
    syscall(SYS_execveat, readable, "", argv, environ, AT_EMPTY_PATH);
  });
}

/// What ld.so does with LD_PRELOAD: maps a file of the payload as code.
int mapCode(const Arguments& arguments) {
  if (!copyProgram(arguments[0], arguments[1])) return refused("copy");
  const int fd = open(arguments[1].c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return refused("open");
  void* code = mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
  if (code != MAP_FAILED) return done();
  void* data = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
  if (data == MAP_FAILED) return refused("mmap");
  return report("mprotect", mprotect(data, 4096, PROT_READ | PROT_EXEC));
}

constexpr Verb kVerbs[] = {
    {"execute", "PATH [ARGUMENT]...", 1, executeArgv},
    {"execute-from", "DIRECTORY PATH [ARGUMENT]...", 2, executeFrom},
    {"execute-copy", "PROGRAM COPY", 2, executeCopy},
    {"execute-symlink", "PROGRAM LINK", 2, executeSymlink},
    {"execute-hard-link", "PROGRAM LINK", 2, executeHardLink},
    {"execute-script", "INTERPRETER SCRIPT", 2, executeScript},
    {"execute-by-loader", "LOADER PROGRAM COPY", 3, executeByLoader},
    {"execute-memory", "PROGRAM [exec]", 1, executeMemory},
    {"execute-unnamed", "PROGRAM DIRECTORY", 2, executeUnnamed},
    {"map-code", "FILE COPY", 2, mapCode},
};

}  // namespace

std::span<const Verb> executionVerbs() { return kVerbs; }

}  // namespace payload
