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

Execution::Execution(std::string id, std::string command, std::shared_ptr<OutputBudget> budget)
    : id_(std::move(id)),
      command_(std::move(command)),
      cancel_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      budget_(std::move(budget)) {}

Execution::~Execution() { budget_->give(out_.data.size() + err_.data.size()); }

void Execution::keep(Kept& kept, std::string_view piece) {
  const std::size_t wanted = std::min(piece.size(), kMaxKept - kept.data.size());
  const std::size_t room = budget_->take(wanted);  // before the lock: it locks other commands
  const std::lock_guard lock(mutex_);
  const std::size_t size = kept.data.size() + room;
  if (size > kept.data.capacity()) kept.data.reserve(std::min(kMaxKept, std::max(size, 2 * kept.data.capacity())));
  kept.data.append(piece.substr(0, room));
  kept.dropped += piece.size() - room;
}

void Execution::perform(ExecRequest request, const Run& run) {
  // Not captured: the sandbox's output limit may be much more than is kept here.
  request.out = StreamMode::discard;
  request.err = StreamMode::discard;
  request.cancel_descriptor = cancel_.get();
  request.on_output = [this](OutputStreamKind stream, std::string_view piece) {
    keep(stream == OutputStreamKind::out ? out_ : err_, piece);
  };
  auto result = run(request);
  const std::lock_guard lock(mutex_);
  out_.data.shrink_to_fit();
  err_.data.shrink_to_fit();
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
  return {.running = !result_,
          .out = out_.data,
          .err = err_.data,
          .out_dropped = out_.dropped,
          .err_dropped = err_.dropped,
          .output_gone = output_gone_,
          .result = result_,
          .seconds = std::chrono::duration<double>(end - begin_).count()};
}

std::vector<Denial> Execution::denials() const {
  const std::lock_guard lock(mutex_);
  return result_ && *result_ ? (*result_)->denials : std::vector<Denial>();
}

void Execution::dropOutput() {
  const std::lock_guard lock(mutex_);
  for (Kept* kept : {&out_, &err_}) {
    budget_->give(kept->data.size());
    output_gone_ = output_gone_ || !kept->data.empty();
    kept->dropped += kept->data.size();
    std::string().swap(kept->data);  // an assignment may keep the memory
  }
}

std::size_t Execution::heldBytes() const {
  const std::lock_guard lock(mutex_);
  return out_.data.capacity() + err_.data.capacity();
}

std::string Execution::lastLine() const {
  const std::lock_guard lock(mutex_);
  std::string_view text = out_.data.empty() ? err_.data : out_.data;
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
