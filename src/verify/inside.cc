#include "verify/inside.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/syscall_names.h"
#include "sys/fd.h"

namespace caisson::verify {
namespace {

using Words = std::span<const std::string_view>;

int say(std::string_view text, int status) {
  const std::string line = std::string(text) + "\n";
  (void)!::write(1, line.data(), line.size());
  return status;
}

int done(const std::string& detail = {}) { return say(detail.empty() ? "done" : "done: " + detail, 0); }
int refused(std::string_view what, int error) {
  return say("refused: " + std::string(what) + ": " + errnoName(error), 1);
}
int unavailable(std::string_view why) { return say("unavailable: " + std::string(why), 3); }
int report(std::string_view what, long result) { return result >= 0 ? done() : refused(what, errno); }

/// Decimal or 0x...; "@text" passes the address of the text.
long argument(std::string_view word) {
  if (word.starts_with('@')) return reinterpret_cast<long>(word.data() + 1);
  return static_cast<long>(std::strtoull(std::string(word).c_str(), nullptr, 0));
}

int tryWrite(Words words) {
  return report("open", ::open(std::string(words[0]).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
}

/// Retries, since an attacker would as well, and pid 1 is better protected while it still has capabilities.
int tryRead(Words words) {
  sys::Fd file;
  for (int tries = 0; !file && tries < 3; ++tries) {
    if (tries > 0) ::usleep(30'000);
    file = sys::Fd(::open(std::string(words[0]).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  }
  if (!file) return refused("open", errno);
  char text[256];
  const ssize_t got = ::read(file.get(), text, sizeof(text));
  if (got < 0) return refused("read", errno);
  if (got == 0) return say("refused: it is empty", 1);
  return done(std::string(text, static_cast<std::size_t>(got)));
}

/// A call that the filter must block. Any error other than EPERM or ENOSYS comes from the kernel.
int tryCall(Words words) {
  const auto number = syscallNumber(words[0]);
  if (!number) return unavailable("this architecture has no " + std::string(words[0]));
  long values[6] = {};
  for (std::size_t at = 1; at < words.size() && at <= 6; ++at) values[at - 1] = argument(words[at]);
  const long result = ::syscall(*number, values[0], values[1], values[2], values[3], values[4], values[5]);
  if (result >= 0) return done();
  if (errno == EPERM || errno == ENOSYS) return refused(words[0], errno);
  return done("the kernel answered " + errnoName(errno));
}

int trySocket(Words words) {
  const int made = ::socket(static_cast<int>(argument(words[0])), static_cast<int>(argument(words[1])),
                            static_cast<int>(argument(words[2])));
  return report("socket", made);
}

/// TIOCSTI on a non-terminal: the kernel returns ENOTTY, the filter EPERM.
int tryIoctl(Words words) {
  const long result = ::syscall(SYS_ioctl, 0, argument(words[0]), "x");
  if (result >= 0) return done();
  return errno == EPERM ? refused("ioctl", errno) : done("the kernel answered " + errnoName(errno));
}

int tryConnect(Words words) {
  const sys::Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(argument(words[1])));
  if (::inet_pton(AF_INET, std::string(words[0]).c_str(), &address.sin_addr) != 1) return 2;
  return report("connect", ::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)));
}

/// Fetches a page through the sandbox's proxy; prints the status and the body's first line.
int tryHttp(Words words) {
  const sys::Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in proxy{};
  proxy.sin_family = AF_INET;
  proxy.sin_port = htons(3128);
  proxy.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&proxy), sizeof(proxy)) != 0) return refused("connect", errno);
  const std::string host(words[0]);
  const std::string request =
      "GET http://" + host + std::string(words[1]) + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n";
  if (::send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) return refused("send", errno);
  std::string reply;
  char piece[2048];
  for (ssize_t got = 0; reply.size() < 65536 && (got = ::read(fd.get(), piece, sizeof(piece))) > 0;) {
    reply.append(piece, static_cast<std::size_t>(got));
  }
  const std::size_t space = reply.find(' '), body = reply.find("\r\n\r\n");
  if (space == std::string::npos || body == std::string::npos) return say("refused: no answer", 1);
  const std::string text = reply.substr(body + 4);
  return say("status " + reply.substr(space + 1, 3) + ": " + text.substr(0, text.find('\n')), 0);
}

int tryAbstractSocket(Words words) {
  const sys::Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t length = std::min(words[0].size(), sizeof(address.sun_path) - 1);
  std::memcpy(address.sun_path + 1, words[0].data(), length);
  return report("connect", ::connect(fd.get(), reinterpret_cast<sockaddr*>(&address),
                                     static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length)));
}

int tryForks(Words words) {
  const long wanted = argument(words[0]);
  long made = 0;
  int error = 0;
  for (; made < wanted; ++made) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      for (;;) ::pause();
    }
    if (pid < 0) {
      error = errno;
      break;
    }
  }
  ::signal(SIGTERM, SIG_IGN);
  ::kill(0, SIGTERM);
  if (made == wanted) return done(std::to_string(made) + " processes");
  return refused("fork after " + std::to_string(made), error);
}

int tryAllocate(Words words) {
  const auto bytes = static_cast<std::size_t>(argument(words[0]));
  constexpr std::size_t kStep = std::size_t{4} << 20U;
  for (std::size_t have = 0; have < bytes; have += kStep) {
    void* piece = ::mmap(nullptr, kStep, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (piece == MAP_FAILED) return refused("mmap", errno);
    std::memset(piece, 1, kStep);
    ::usleep(2000);  // gives the supervisor time to react
  }
  return done(std::to_string(bytes) + " bytes");
}

int tryDescriptors(Words) {
  std::string found;
  DIR* stream = ::opendir("/proc/self/fd");
  if (stream == nullptr) return unavailable("no /proc/self/fd");
  while (const dirent* entry = ::readdir(stream)) {
    const int number = std::atoi(entry->d_name);
    if (entry->d_name[0] != '.' && number > 2 && number != ::dirfd(stream)) found += " " + std::string(entry->d_name);
  }
  ::closedir(stream);
  return found.empty() ? say("refused: nothing but 0, 1 and 2", 1) : done("open:" + found);
}

/// `done` if the mount at PATH lacks FLAG (ro, noexec, nosuid, nodev), `refused` if it has it.
int tryWithout(Words words) {
  struct statvfs status;
  if (::statvfs(std::string(words[0]).c_str(), &status) != 0) return unavailable("statvfs: " + errnoName(errno));
  const unsigned long flag = words[1] == "ro"       ? ST_RDONLY
                             : words[1] == "noexec" ? ST_NOEXEC
                             : words[1] == "nosuid" ? ST_NOSUID
                                                    : ST_NODEV;
  return (status.f_flag & flag) == 0 ? done("it is not " + std::string(words[1]))
                                     : say("refused: it is " + std::string(words[1]), 1);
}

int trySharedMemory(Words words) {
  const int id = ::shmget(static_cast<key_t>(argument(words[0])), 0, 0);
  return report("shmget", id);
}

int trySetuid(Words words) {
  const std::string path(words[0]);
  const sys::Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0755));
  if (!file) return unavailable("open: " + errnoName(errno));
  return report("fchmod", ::fchmod(file.get(), 04755));
}

/// The only device that the kernel lets every user make, so only the filter can deny it.
int tryDevice(Words words) {
  return report("mknod", ::mknod(std::string(words[0]).c_str(), S_IFCHR | 0600, makedev(0, 0)));
}

int trySignal(Words words) { return report("kill", ::kill(static_cast<pid_t>(argument(words[0])), 0)); }

/// Reads every capability set of this process from /proc/self/status.
int tryCapabilities(Words) {
  const sys::Fd file(::open("/proc/self/status", O_RDONLY | O_CLOEXEC));
  char text[4096] = {};
  if (::read(file.get(), text, sizeof(text) - 1) <= 0) return unavailable("no /proc/self/status");
  const std::string status(text);
  for (const char* set : {"CapInh:\t", "CapPrm:\t", "CapEff:\t", "CapBnd:\t", "CapAmb:\t"}) {
    const std::size_t at = status.find(set);
    if (at == std::string::npos) return unavailable("no capability sets shown");
    const std::string value = status.substr(at + std::strlen(set), 16);
    if (value != "0000000000000000") return done(std::string(set, 6) + " " + value);
  }
  return say("refused: all five sets are empty", 1);
}

/// `refused` if a line "Name:\tvalue" of /proc/self/status has this value, else `done`.
int tryStatusNot(Words words) {
  const sys::Fd file(::open("/proc/self/status", O_RDONLY | O_CLOEXEC));
  char text[4096] = {};
  if (::read(file.get(), text, sizeof(text) - 1) <= 0) return unavailable("no /proc/self/status");
  const std::string sought = "\n" + std::string(words[0]) + ":\t" + std::string(words[1]) + "\n";
  return std::string(text).find(sought) == std::string::npos ? done("it is not " + std::string(words[1]))
                                                             : say("refused: it is " + std::string(words[1]), 1);
}

struct Attempt {
  std::string_view name;
  std::size_t arguments;
  int (*perform)(Words words);
};

constexpr Attempt kAttempts[] = {
    {"write", 1, tryWrite},
    {"read", 1, tryRead},
    {"call", 1, tryCall},
    {"socket", 3, trySocket},
    {"ioctl", 1, tryIoctl},
    {"connect", 2, tryConnect},
    {"http", 2, tryHttp},
    {"abstract", 1, tryAbstractSocket},
    {"forks", 1, tryForks},
    {"allocate", 1, tryAllocate},
    {"descriptors", 0, tryDescriptors},
    {"without", 2, tryWithout},
    {"shared-memory", 1, trySharedMemory},
    {"setuid", 1, trySetuid},
    {"device", 1, tryDevice},
    {"signal", 1, trySignal},
    {"capabilities", 0, tryCapabilities},
    {"status-not", 2, tryStatusNot},
};

}  // namespace

int tryInside(Words words) {
  if (words.empty()) return 2;
  for (const Attempt& attempt : kAttempts)
    if (attempt.name == words[0] && words.size() - 1 >= attempt.arguments) return attempt.perform(words.subspan(1));
  return 2;
}

}  // namespace caisson::verify
