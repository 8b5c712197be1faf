#include "cli/reader_process.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "egress/confine.h"
#include "plan/own_filter.h"
#include "session/protocol.h"
#include "sys/pipe.h"

namespace caisson::cli {
namespace {

constexpr std::string_view kReaderCalls[] = {
    "brk",    "clock_gettime",   "close",          "exit",         "exit_group", "futex",
    "getpid", "getrandom",       "gettid",         "gettimeofday", "madvise",    "mremap",
    "munmap", "restart_syscall", "rt_sigprocmask", "rt_sigreturn", "time",       "write"};
constexpr rlim_t kReaderMemory = rlim_t{1} << 30U;
constexpr rlim_t kReaderSeconds = 10;
constexpr std::size_t kMaxAnswer = 16U << 20;
constexpr char kGood = '+', kBad = '-';

bool writeAnswer(int pipe, std::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = ::write(pipe, text.data(), text.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return true;
}

[[noreturn]] void answer(int pipe, const std::function<Result<std::string>()>& read) {
  const rlimit memory{kReaderMemory, kReaderMemory}, seconds{kReaderSeconds, kReaderSeconds};
  ::setrlimit(RLIMIT_AS, &memory);
  ::setrlimit(RLIMIT_CPU, &seconds);
  ::close_range(0, static_cast<unsigned>(pipe) - 1, 0);
  ::close_range(static_cast<unsigned>(pipe) + 1, ~0U, 0);
  const auto confined =
      egress::confineSelf({.descriptors = 16, .filter = readerFilter(static_cast<std::uint32_t>(::getpid()))});
  const auto result = confined ? read() : fail(confined.error());
  const std::string text =
      result ? std::string(1, kGood) + *result : std::string(1, kBad) + session::codec::encode(result.error());
  ::_exit(writeAnswer(pipe, text) ? 0 : 1);
}

}  // namespace

plan::SyscallFilter readerFilter(std::uint32_t self, Architecture architecture) {
  plan::rules::Rules rules = plan::allowCalls({kReaderCalls}, architecture);
  plan::allowAbort(rules, self);
  return plan::denyUnlisted(std::move(rules));
}

Result<std::string> readConfined(const std::string& object, const std::function<Result<std::string>()>& read) {
  auto pipe = sys::makePipe(Stage::policy, object);
  if (!pipe) return fail(pipe.error());
  const pid_t child = ::fork();
  if (child < 0) return fail(sysError(Stage::launch, "fork", object, errno));
  if (child == 0) answer(pipe->write.get(), read);
  pipe->write = {};
  std::string text;
  char piece[16 * 1024];
  for (ssize_t got = 0; text.size() < kMaxAnswer;) {
    got = ::read(pipe->read.get(), piece, sizeof(piece));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(piece, static_cast<std::size_t>(got));
  }
  pipe->read = {};
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  const bool complete = WIFEXITED(status) && WEXITSTATUS(status) == 0 && !text.empty();
  if (complete && text.front() == kGood) return text.substr(1);
  if (complete && text.front() == kBad) {
    if (auto error = session::codec::decode<Error>(std::string_view(text).substr(1))) return fail(*std::move(error));
  }
  return fail(plainError(Stage::policy, "read", object,
                         "the process that reads it was ended: it is too large or malformed",
                         "look at the file with an editor before you use it"));
}

}  // namespace caisson::cli
