// Single system calls, foreign calling conventions, code without a file.
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "payload.h"

namespace payload {
namespace {

/// An argument: a number in C's notation, or @text for a pointer to that text.
long argumentOf(const Arguments& arguments, std::size_t index) {
  if (index >= arguments.size()) return 0;
  const std::string& text = arguments[index];
  if (text.starts_with('@')) return reinterpret_cast<long>(text.c_str() + 1);
  return static_cast<long>(std::strtoull(text.c_str(), nullptr, 0));
}

/// Any call by its number, with up to six arguments. The caller chooses arguments that change nothing.
int tryCall(const Arguments& arguments) {
  const long result =
      syscall(std::atoi(arguments[0].c_str()), argumentOf(arguments, 1), argumentOf(arguments, 2),
              argumentOf(arguments, 3), argumentOf(arguments, 4), argumentOf(arguments, 5), argumentOf(arguments, 6));
  return report("call " + arguments[0], result);
}

/// Runs in a child, since the filter may kill it; succeeds if it returned a process id.
int inChild(std::string_view what, long (*call)()) {
  const pid_t child = fork();
  if (child < 0) return refused("fork");
  if (child == 0) _exit(call() > 0 ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) {
    if (WTERMSIG(status) == SIGSEGV || WTERMSIG(status) == SIGILL) return unavailable("the kernel has no such calls");
    return refused(std::string(what) + ": signal " + std::to_string(WTERMSIG(status)), 0);
  }
  return WEXITSTATUS(status) == 0 ? done() : refused(what, ENOSYS);
}

int tryForeignCall(const Arguments& arguments) {
#if defined(__x86_64__)
  if (arguments[0] == "i386") {
    return inChild("int 0x80", [] {
      long result = 20;  // getpid of i386; writev of x86_64
      asm volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
      return result;
    });
  }
  if (arguments[0] == "x32") {
    return inChild("x32", [] { return syscall(0x40000000 | SYS_getpid); });
  }
#else
  (void)inChild;
#endif
  return unavailable("no " + arguments[0] + " calls on this architecture");
}

int tryPersonality(const Arguments& arguments) {
  return report("personality", personality(std::strtoul(arguments[0].c_str(), nullptr, 0)));
}

/// Executes a copy of itself without a path: `memfd list-processes` prints the output of that copy.
int tryMemfd(const Arguments& arguments) {
  const std::string image = contentOf("/proc/self/exe");
  const int fd = memfd_create("payload", MFD_CLOEXEC);
  if (fd < 0) return refused("memfd_create");
  if (write(fd, image.data(), image.size()) != static_cast<ssize_t>(image.size())) return refused("write");
  std::vector<char*> words;
  std::string name = "payload";
  words.push_back(name.data());
  Arguments copies = arguments;
  for (std::string& word : copies) words.push_back(word.data());
  words.push_back(nullptr);
  syscall(SYS_execveat, fd, "", words.data(), environ, AT_EMPTY_PATH);
  return refused("execveat");
}

/// Executes a second program by its path.
int tryExec(const Arguments& arguments) {
  Arguments copies = arguments;
  std::vector<char*> words;
  for (std::string& word : copies) words.push_back(word.data());
  words.push_back(nullptr);
  execv(words[0], words.data());
  return refused("execve");
}

/// Searches the session keyring, which the caller may have left, for a key and reads it.
int readSessionKey(const Arguments& arguments) {
  constexpr long kSessionKeyring = -3;
  constexpr int kSearch = 10, kRead = 11;
  const long key = syscall(SYS_keyctl, kSearch, kSessionKeyring, "user", arguments[0].c_str(), 0);
  if (key < 0) return refused("keyctl");
  char secret[256] = {};
  const long length = syscall(SYS_keyctl, kRead, key, secret, sizeof(secret) - 1);
  if (length < 0) return refused("keyctl");
  return done(secret);
}

/// An ioctl on a file; its argument points to a number, followed by zeros.
int tryIoctl(const Arguments& arguments) {
  const int fd = open(arguments[0].c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC);
  const int file = fd >= 0 ? fd : open(arguments[0].c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return refused("open");
  alignas(8) unsigned char memory[4096] = {};
  const int value = arguments.size() > 2 ? std::atoi(arguments[2].c_str()) : 0;
  std::memcpy(memory, &value, sizeof(value));
  return report("ioctl", ioctl(file, std::strtoul(arguments[1].c_str(), nullptr, 0), memory));
}

constexpr Verb kVerbs[] = {
    {"ioctl", "PATH REQUEST [NUMBER]", 2, tryIoctl},        {"call", "NUMBER [ARGUMENT]...", 1, tryCall},
    {"foreign-call", "i386|x32", 1, tryForeignCall},        {"personality", "VALUE", 1, tryPersonality},
    {"memfd", "VERB [ARGUMENT]...", 1, tryMemfd},           {"exec", "PROGRAM [ARGUMENT]...", 1, tryExec},
    {"read-session-key", "DESCRIPTION", 1, readSessionKey},
};

}  // namespace

std::span<const Verb> kernelVerbs() { return kVerbs; }

}  // namespace payload
