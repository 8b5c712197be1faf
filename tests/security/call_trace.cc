#include "security/call_trace.h"

#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <set>

#include "support/processes.h"

namespace caisson::test {
namespace {

constexpr int kOptions = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                         PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
constexpr int kSyscallStop = SIGTRAP | 0x80;

std::size_t readBytes(pid_t thread, std::uint64_t address, void* room, std::size_t size) {
  iovec here{room, size};
  iovec there{reinterpret_cast<void*>(address), size};
  const ssize_t got = ::process_vm_readv(thread, &here, 1, &there, 1, 0);
  return got > 0 ? static_cast<std::size_t>(got) : 0;
}

std::string readPath(pid_t thread, std::uint64_t address) {
  std::string text;
  char letter = 0;
  while (text.size() < 4096 && readBytes(thread, address + text.size(), &letter, 1) == 1 && letter != 0) text += letter;
  return text;
}

std::vector<std::uint64_t> readWords(pid_t thread, std::uint64_t address, std::uint64_t bytes) {
  std::vector<std::uint64_t> words(std::min<std::uint64_t>(bytes, 256) / sizeof(std::uint64_t));
  words.resize(readBytes(thread, address, words.data(), words.size() * sizeof(std::uint64_t)) / sizeof(std::uint64_t));
  return words;
}

TracedCall enter(pid_t thread, const __ptrace_syscall_info& info) {
  TracedCall call{.thread = thread, .number = static_cast<long>(info.entry.nr)};
  std::copy_n(info.entry.args, 6, call.arguments);
  if (call.number == SYS_execve) call.text = readPath(thread, call.arguments[0]);
  if (call.number == SYS_execveat) call.text = readPath(thread, call.arguments[1]);
  if (call.number == SYS_clone3 || call.number == SYS_landlock_create_ruleset)
    call.attributes = readWords(thread, call.arguments[0], call.arguments[1]);
  return call;
}

class Tracer {
 public:
  explicit Tracer(pid_t first) : first_(first) {}

  CallTrace trace() {
    int status = 0;
    for (pid_t thread = 0; (thread = ::waitpid(-1, &status, __WALL)) > 0;) {
      if (!WIFSTOPPED(status)) {
        if (thread != first_) continue;
        trace_.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        for (const pid_t left : alive_) signalProcess(left, SIGKILL);
        alive_.clear();
        continue;
      }
      alive_.insert(thread);
      ::ptrace(PTRACE_SYSCALL, thread, nullptr, signalOf(thread, status));
    }
    return std::move(trace_);
  }

 private:
  /// Notes a call, and returns the signal that the thread is to get.
  long signalOf(pid_t thread, int status) {
    if (WSTOPSIG(status) == kSyscallStop) {
      note(thread);
      return 0;
    }
    return status >> 16 != 0 ? 0 : WSTOPSIG(status);  // an event of ptrace, or a signal
  }

  void note(pid_t thread) {
    __ptrace_syscall_info info{};
    if (::ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof(info), &info) <= 0) return;
    if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
      open_[thread] = trace_.calls.size();
      trace_.calls.push_back(enter(thread, info));
    } else if (info.op == PTRACE_SYSCALL_INFO_EXIT && open_.contains(thread)) {
      trace_.calls[open_[thread]].result = info.exit.rval;
    }
  }

  pid_t first_;
  CallTrace trace_;
  std::map<pid_t, std::size_t> open_;
  std::set<pid_t> alive_;
};

}  // namespace

CallTrace traceCalls(const std::vector<std::string>& argv) {
  std::vector<char*> words;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::raise(SIGSTOP);  // until it is traced
    ::execv(words[0], words.data());
    ::_exit(127);
  }
  int status = 0;
  ::waitpid(child, &status, WUNTRACED);
  if (::ptrace(PTRACE_SEIZE, child, nullptr, kOptions) != 0) {
    signalProcess(child, SIGKILL);
    ::waitpid(child, &status, 0);
    return {};
  }
  signalProcess(child, SIGCONT);
  return Tracer(child).trace();
}

}  // namespace caisson::test
