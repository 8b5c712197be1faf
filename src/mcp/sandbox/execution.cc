#include "mcp/sandbox/execution.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>

namespace caisson::mcp {
namespace {

/// A policy may allow more output than one response or this server's memory should hold.
constexpr std::size_t kMaxKept = std::size_t{4} << 20U;
constexpr std::size_t kLastLine = 200;

}  // namespace

Execution::Execution(std::string id, std::string command)
    : id_(std::move(id)), command_(std::move(command)), cancel_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void Execution::perform(ExecRequest request, const Run& run) {
  request.out = StreamMode::capture;
  request.err = StreamMode::capture;
  request.cancel_descriptor = cancel_.get();
  request.on_output = [this](OutputStreamKind stream, std::string_view piece) {
    const std::lock_guard lock(mutex_);
    std::string& kept = stream == OutputStreamKind::out ? out_ : err_;
    kept.append(piece.substr(0, kMaxKept - std::min(kMaxKept, kept.size())));
  };
  auto result = run(request);
  const std::lock_guard lock(mutex_);
  if (result) {
    // The complete output is in the result; a second copy would waste memory.
    out_ = std::move(result->out.data).substr(0, kMaxKept);
    err_ = std::move(result->err.data).substr(0, kMaxKept);
    result->out.data.clear();
    result->err.data.clear();
  }
  result_ = std::move(result);
  end_ = Clock::now();
  changed_.notify_all();
}

void Execution::kill() {
  const std::uint64_t one = 1;
  static_cast<void>(::write(cancel_.get(), &one, sizeof one));
}

void Execution::wake() {
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

bool Execution::wait(Clock::time_point until, const std::function<bool()>& stop) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, until, [&] { return result_.has_value() || stop(); });
  return result_.has_value();
}

Execution::View Execution::view() const {
  const std::lock_guard lock(mutex_);
  const auto end = result_ ? end_ : Clock::now();
  return {!result_, out_, err_, result_, std::chrono::duration<double>(end - begin_).count()};
}

std::string Execution::lastLine() const {
  const std::lock_guard lock(mutex_);
  std::string_view text = out_.empty() ? err_ : out_;
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  text = text.substr(text.rfind('\n') + 1);
  if (text.size() > kLastLine) text = text.substr(text.size() - kLastLine);
  return std::string(text);
}

bool Execution::running() const {
  const std::lock_guard lock(mutex_);
  return !result_;
}

}  // namespace caisson::mcp
