#include "session/client/worker.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>

#include "egress/process.h"
#include "session/layers/squash.h"
#include "session/store/store.h"
#include "session/supervisor/launcher.h"
#include "sys/clone.h"
#include "sys/pipe.h"
#include "sys/raw_syscall.h"

namespace caisson::session {
namespace {

using sys::raw;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kStackBytes = 32 * 1024;
constexpr int kStartTimeoutMs = 30'000;
constexpr int kSayDescriptor = 3, kPassedDescriptor = 4;

struct Start {
  const char* path;
  char* const* arguments;
  char* const* environment;
  int say, passed;
  char* second_stack;  ///< its upper end
};

/// Shares memory with the parent until its exec: raw system calls only.
int becomeProgram(void* argument) {
  const auto* start = static_cast<const Start*>(argument);
  raw(SYS_setsid);  // detach from the caller's terminal
  const long null = raw(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC, 0);
  const long say = raw(SYS_fcntl, start->say, F_DUPFD_CLOEXEC, 16);
  const long passed = start->passed < 0 ? -1 : raw(SYS_fcntl, start->passed, F_DUPFD_CLOEXEC, 16);
  for (int fd = 0; fd < 3; ++fd) raw(SYS_dup3, null, fd, 0);
  raw(SYS_dup3, say, kSayDescriptor, 0);
  if (passed >= 0) raw(SYS_dup3, passed, kPassedDescriptor, 0);
  raw(SYS_close_range, passed >= 0 ? kPassedDescriptor + 1 : kSayDescriptor + 1, ~0U, 0);
  raw(SYS_execve, start->path, start->arguments, start->environment);
  raw(SYS_exit_group, 127);
  return 127;
}

/// The middle of a double fork, so that the caller has no child to reap. Copying the memory of a large caller would
/// take longer than all the rest: both processes share it.
int startProgram(void* argument) {
  const auto* start = static_cast<const Start*>(argument);
  (void)sys::clone(becomeProgram, start->second_stack, CLONE_VM | CLONE_VFORK | SIGCHLD, argument);
  raw(SYS_exit_group, 0);
  return 0;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

/// Reads until end of file or the timeout.
std::string readAll(const sys::Fd& from, int milliseconds) {
  const auto deadline = Clock::now() + std::chrono::milliseconds(milliseconds);
  std::string text;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd wait{from.get(), POLLIN, 0};
    if (left <= 0 || ::poll(&wait, 1, static_cast<int>(left)) == 0) return text;
    char piece[4096];
    const ssize_t got = ::read(from.get(), piece, sizeof(piece));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(piece, static_cast<std::size_t>(got));
  }
}

}  // namespace

Result<sys::Fd> startWorker(const SessionPaths& paths, const std::vector<std::string>& words, int pass) {
  auto pipe = sys::makePipe(Stage::launch, "worker");
  if (!pipe) return fail(pipe.error());
  sys::Fd ours = std::move(pipe->read);
  const sys::Fd theirs = std::move(pipe->write);
  void* stack =
      ::mmap(nullptr, 2 * kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (stack == MAP_FAILED) return fail(sysError(Stage::launch, "mmap", "worker", errno));
  std::vector<std::string> line{"caisson", std::string(kWorkerArgument)};
  line.insert(line.end(), words.begin(), words.end());
  std::vector<std::string> variables{"CAISSON_HOME=" + paths.home()};
  // To find the owner's configuration and the registry of written directories, as every other process of the user does.
  for (const char* name : {"HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"}) {
    if (const char* value = std::getenv(name)) variables.push_back(std::string(name) + "=" + value);
  }
  const std::vector<char*> arguments = pointers(line), environment = pointers(variables);
  const std::string path = egress::programPath(paths.program());
  char* const stacks = static_cast<char*>(stack);
  Start start{path.c_str(), arguments.data(), environment.data(), theirs.get(), pass, stacks + 2 * kStackBytes};
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // inherited: only SIGKILL ends it before its work is done
  // No exit signal: an embedding program must not see this child in its SIGCHLD handling.
  const int child = sys::clone(startProgram, stacks + kStackBytes, CLONE_VM | CLONE_VFORK, &start);
  const int error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (child > 0) {
    while (raw(SYS_wait4, child, nullptr, __WALL, nullptr) == -EINTR) {
    }
  }
  ::munmap(stack, 2 * kStackBytes);
  if (child < 0) return fail(sysError(Stage::launch, "clone", "worker", error));
  return ours;
}

std::string awaitLine(const sys::Fd& worker, int milliseconds) {
  const auto deadline = Clock::now() + std::chrono::milliseconds(milliseconds);
  std::string text;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd wait{worker.get(), POLLIN, 0};
    if (left <= 0 || ::poll(&wait, 1, static_cast<int>(left)) == 0) return "";
    char piece[512];
    const ssize_t got = ::read(worker.get(), piece, sizeof(piece));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return "";
    text.append(piece, static_cast<std::size_t>(got));
    if (const std::size_t end = text.find('\n'); end != std::string::npos) return text.substr(0, end);
  }
}

Result<void> startSupervisor(const SessionPaths& paths, const std::string& id) {
  auto started = startWorker(paths, {"supervise", id});
  if (!started) return fail(started.error());
  const std::string said = readAll(*started, kStartTimeoutMs);
  if (said == "ready") return {};
  constexpr std::string_view kFailed = "failed";
  if (said.starts_with(kFailed)) {
    if (auto error = codec::decode<Error>(std::string_view(said).substr(kFailed.size()))) return fail(*error);
  }
  return fail(plainError(
      Stage::launch, "session", id, "its supervisor did not start",
      "sessions start the caisson program (" + egress::programPath(paths.program()) + "); is it installed there?"));
}

int workerMain(std::span<char* const> words) {
  if (words.size() < 2) return 125;
  ::fcntl(kSayDescriptor, F_SETFD, FD_CLOEXEC);
  const std::string_view job = words[0], id = words[1];
  auto paths = SessionPaths::open(sys::kOwnProgram);
  if (!paths || !isId(id)) return 125;
  auto store = std::make_shared<Store>(std::move(*paths));
  const bool wait = words.size() > 2 && std::string_view(words[2]) == "wait";
  if (job == "squash") return squash(store, std::string(id), {.wait = wait}) ? 0 : 1;
  if (job == "reclaim") return squash(store, std::string(id), {.least = 2}) ? 0 : 1;
  if (job == "supervise") return superviseMain(*store, std::string(id), kSayDescriptor);
  return 125;
}

}  // namespace caisson::session
