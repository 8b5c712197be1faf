#include "mcp/http/stream.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>

#include "mcp/protocol/message.h"

namespace caisson::mcp {
namespace {

constexpr std::size_t kMaxHeld = std::size_t{4} << 20U;
/// Of an event that was sent. A session keeps 32 streams.
constexpr std::size_t kMaxKeptEvent = std::size_t{16} << 10U;

}  // namespace

HttpStream::HttpStream(std::string name) : name_(std::move(name)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void HttpStream::wake() const {
  const std::uint64_t one = 1;
  // A full counter is already readable; no other error is possible.
  static_cast<void>(::write(wake_.get(), &one, sizeof one));
  std::function<void()> notify;
  {
    const std::lock_guard lock(mutex_);
    notify = notify_;
  }
  if (notify) notify();
}

void HttpStream::onWake(std::function<void()> notify) {
  const std::lock_guard lock(mutex_);
  notify_ = std::move(notify);
}

void HttpStream::add(const Json& message, std::shared_ptr<void> memory) {
  Event event{.text = writeJson(message), .response = isResponse(message), .memory = std::move(memory)};
  if (const Json* error = findObject(message, "error"))
    event.error_code = static_cast<int>(integerAt(*error, "code").value_or(0));
  const bool dispensable = !event.response && !message.contains("id");
  {
    const std::lock_guard lock(mutex_);
    if (finished_) return;
    if (dispensable && held_ + event.text.size() > kMaxHeld) return;
    event.number = ++last_;
    held_ += event.text.size();
    finished_ = event.response;
    events_.push_back(std::move(event));
  }
  wake();
}

void HttpStream::disconnect() {
  if (name_.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    disconnect_ = true;
  }
  wake();
}

void HttpStream::finish() {
  {
    const std::lock_guard lock(mutex_);
    finished_ = true;
  }
  wake();
}

std::optional<HttpStream::Event> HttpStream::after(std::size_t number) {
  const std::lock_guard lock(mutex_);
  // Sent events are needed again only if a client may reconnect for them.
  while (!events_.empty() && events_.front().number <= number && (name_.empty() || held_ > kMaxHeld / 2)) {
    held_ -= events_.front().text.size();
    events_.pop_front();
  }
  for (const Event& event : events_)
    if (event.number > number) return event;
  return std::nullopt;
}

void HttpStream::dropSent() {
  const std::lock_guard lock(mutex_);
  std::erase_if(events_, [&](const Event& event) {
    const bool dropped = name_.empty() || event.text.size() > kMaxKeptEvent;
    if (dropped) held_ -= event.text.size();
    return dropped;
  });
  for (Event& event : events_) event.memory.reset();
}

bool HttpStream::endsAt(std::size_t number) const {
  const std::lock_guard lock(mutex_);
  return finished_ && number >= last_;
}

bool HttpStream::takeDisconnect() {
  const std::lock_guard lock(mutex_);
  return std::exchange(disconnect_, false);
}

}  // namespace caisson::mcp
