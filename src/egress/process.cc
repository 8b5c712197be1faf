#include "egress/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "egress/program.h"
#include "sys/clone.h"
#include "sys/raw_syscall.h"

namespace caisson::egress {
namespace {

constexpr std::size_t kStackBytes = 32 * 1024;
constexpr int kFinishMs = 1000, kReadyMs = 10000;

std::string& programPath() {
  static std::string path = CAISSON_INSTALLED_PROGRAM;
  return path;
}

struct Start {
  const char* path;
  char* const* arguments;
  int control, link;
  int init, listener;  ///< for a resident one, else -1
  int error = 0;
};

/// Shares memory with the parent, which waits until the exec: raw calls only.
int becomeProgram(void* argument) {
  auto* start = static_cast<Start*>(argument);
  using sys::raw;
  // A resident one is nobody's child: its parent ends here and the kernel adopts it.
  if (start->init >= 0 && raw(SYS_clone, SIGCHLD, 0, 0, 0, 0) != 0) raw(SYS_exit_group, 0);
  raw(SYS_setpgid, 0, 0);  // the terminal's interrupts are the supervisor's to handle
  const long null = raw(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC, 0);
  for (int fd = 0; fd < 3; ++fd) raw(SYS_dup3, null, fd, 0);
  // Both above the places they go to, so that none overwrites the other.
  const long control = raw(SYS_fcntl, start->control, F_DUPFD_CLOEXEC, 16);
  const long link = raw(SYS_fcntl, start->link, F_DUPFD_CLOEXEC, 16);
  const long init = raw(SYS_fcntl, start->init, F_DUPFD_CLOEXEC, 16);
  const long listener = raw(SYS_fcntl, start->listener, F_DUPFD_CLOEXEC, 16);
  raw(SYS_dup3, control, kSupervisorEnd, 0);
  raw(SYS_dup3, link, kSandboxEnd, 0);
  if (start->init >= 0) {
    raw(SYS_dup3, init, kInitDescriptor, 0);
    raw(SYS_dup3, listener, kListenerDescriptor, 0);
  }
  raw(SYS_close_range, start->init >= 0 ? kListenerDescriptor + 1 : kSandboxEnd + 1, ~0U, 0);
  char* const environment[] = {nullptr};
  start->error = static_cast<int>(-raw(SYS_execve, start->path, start->arguments, environment));
  raw(SYS_exit_group, 127);
  return 127;
}

}  // namespace

void useProgram(std::string path) { programPath() = std::move(path); }

const std::string& ownProgram() { return programPath(); }

Result<Link> makeLink() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return fail(sysError(Stage::launch, "socketpair", "egress", errno));
  }
  Link link{sys::Fd(ends[0]), sys::Fd(ends[1])};
  for (sys::Fd* end : {&link.sandbox, &link.egress}) {
    if (end->get() > 2) continue;  // a caller may have started us with some of 0, 1, 2 closed
    *end = sys::Fd(::fcntl(end->get(), F_DUPFD_CLOEXEC, 3));
    if (!*end) return fail(sysError(Stage::launch, "fcntl", "F_DUPFD_CLOEXEC", errno));
  }
  return link;
}

std::vector<std::string> hostDnsServers() {
  std::vector<std::string> servers;
  const sys::Fd file(::open("/etc/resolv.conf", O_RDONLY | O_CLOEXEC));
  char text[8192];
  const ssize_t got = file ? ::read(file.get(), text, sizeof(text)) : 0;
  std::string_view rest(text, got > 0 ? static_cast<std::size_t>(got) : 0);
  while (!rest.empty()) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (!line.starts_with("nameserver")) continue;
    line.remove_prefix(10);
    const std::size_t begin = line.find_first_not_of(" \t");
    if (begin == 0 || begin == std::string_view::npos) continue;
    const std::string_view address = line.substr(begin, line.find_first_of(" \t\r#;", begin) - begin);
    if (Address::parse(address)) servers.emplace_back(address);
  }
  return servers;
}

Result<Process> Process::start(const Settings& settings, sys::Fd link) {
  return spawn(settings, std::move(link), -1, -1);
}

Result<void> startResident(Settings settings, sys::Fd link, int init, int listener) {
  settings.resident = true;
  auto process = Process::spawn(settings, std::move(link), init, listener);
  if (!process) return fail(process.error());
  pollfd wait{process->descriptor(), POLLIN, 0};
  std::optional<Error> failure = plainError(Stage::launch, "egress", "egress process", "it did not start",
                                            "see the kernel's log; please report it");
  if (::poll(&wait, 1, kReadyMs) > 0) {
    process->receive([&](const Report& report) {
      failure.reset();
      if (report.kind == Report::Kind::failed)
        failure = plainError(Stage::launch, "egress", "egress process", report.text);
    });
  }
  if (failure) return fail(*failure);
  return {};
}

Result<Process> Process::spawn(const Settings& settings, sys::Fd link, int init, int listener) {
  auto control = makeLink();
  if (!control) return fail(control.error());
  const std::string packet = encode(settings);
  if (::send(control->sandbox.get(), packet.data(), packet.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(packet.size())) {
    return fail(sysError(Stage::launch, "send", "egress settings", errno, "use fewer host patterns"));
  }
  void* stack = ::mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (stack == MAP_FAILED) return fail(sysError(Stage::launch, "mmap", "egress", errno));
  const std::string path = programPath();
  char name[] = "caisson";
  char word[16] = {};
  kProgramWord.copy(word, sizeof(word) - 1);
  char* const arguments[] = {name, word, nullptr};
  Start start{path.c_str(), arguments, control->egress.get(), link.get(), init, listener};
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // inherited: nothing but KILL and our own socket ends it
  int pidfd = -1;
  Process process;
  // No exit signal: an application that embeds us must not see this child in its own handling of SIGCHLD.
  process.pid_ = sys::clone(becomeProgram, static_cast<char*>(stack) + kStackBytes,
                            CLONE_VM | CLONE_VFORK | CLONE_PIDFD, &start, &pidfd);
  const int error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::munmap(stack, kStackBytes);
  if (process.pid_ < 0) return fail(sysError(Stage::launch, "clone", "egress", error));
  process.pidfd_ = sys::Fd(pidfd);
  process.control_ = std::move(control->sandbox);
  if (start.error != 0) {
    return fail(sysError(Stage::launch, "execve", path, start.error,
                         "network mode proxy starts the caisson program again; is it installed there?"));
  }
  return process;
}

Process::~Process() { end(); }

void Process::end() {
  if (pid_ < 0 || !pidfd_) return;
  sys::raw(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0);
  int status = 0;
  while (sys::raw(SYS_wait4, pid_, &status, __WALL, nullptr) == -EINTR) {
  }
  pid_ = -1;
}

bool Process::receive(const std::function<void(const Report&)>& take) {
  std::string packet(kPacketBytes, '\0');
  for (;;) {
    const ssize_t got = ::recv(control_.get(), packet.data(), packet.size(), MSG_DONTWAIT);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    if (got == 0) return false;
    if (const auto report = decodeReport({packet.data(), static_cast<std::size_t>(got)})) take(*report);
  }
}

Result<void> Process::change(const Change& change) {
  if (auto pattern = parsePattern(change.pattern); !pattern) {
    return fail(plainError(Stage::policy, "egress", change.pattern, pattern.error(),
                           "use a host name, \"*.name\", \".name\", an address or \"*\", with or without \":port\""));
  }
  const std::string packet = encode(change);
  if (::send(control_.get(), packet.data(), packet.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(packet.size())) {
    return fail(sysError(Stage::supervise, "send", "egress", errno, "the session's egress is gone; start a new one"));
  }
  return {};
}

void Process::finish(const std::function<void(const Report&)>& take) {
  if (pid_ < 0) return;
  ::shutdown(control_.get(), SHUT_WR);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kFinishMs);
  while (receive(take)) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) break;
    pollfd wait{control_.get(), POLLIN, 0};
    ::poll(&wait, 1, static_cast<int>(left.count()));
  }
  end();
}

}  // namespace caisson::egress
