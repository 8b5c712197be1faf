#include "mcp/server/client.h"

#include <poll.h>

#include <algorithm>
#include <utility>

namespace caisson::mcp {

void Client::agree(Agreement agreement) {
  const std::lock_guard lock(mutex_);
  agreement_ = std::move(agreement);
}

std::optional<Client::Agreement> Client::agreement() const {
  const std::lock_guard lock(mutex_);
  return agreement_;
}

void Client::setLogLevel(std::string level) {
  const std::lock_guard lock(mutex_);
  if (agreement_) agreement_->log_level = std::move(level);
}

void Client::setStream(std::shared_ptr<Channel> stream) {
  const std::lock_guard lock(mutex_);
  stream_ = std::move(stream);
}

std::shared_ptr<Channel> Client::stream() const {
  const std::lock_guard lock(mutex_);
  return stream_;
}

Client::Admission Client::admit(const std::shared_ptr<Call>& call) {
  const std::lock_guard lock(mutex_);
  if (calls_.size() >= kMaxCalls) return Admission::too_many;
  return calls_.emplace(call->id, call).second ? Admission::admitted : Admission::duplicate;
}

void Client::forget(const Call& call) {
  const std::lock_guard lock(mutex_);
  const auto place = calls_.find(call.id);
  if (place != calls_.end() && place->second.get() == &call) calls_.erase(place);
}

void Client::cancel(const Json& id) {
  std::shared_ptr<Call> call;
  {
    const std::lock_guard lock(mutex_);
    const auto place = calls_.find(id);
    if (place == calls_.end()) return;
    call = std::move(place->second);
    calls_.erase(place);
  }
  call->cancel();
  const std::lock_guard lock(mutex_);  // otherwise a waiter between its check and its sleep would miss it
  delivered_.notify_all();
}

void Client::settle(std::chrono::milliseconds timeout, int until) const {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  const auto busy = [this] {
    const std::lock_guard lock(mutex_);
    return std::any_of(calls_.begin(), calls_.end(),
                       [](const auto& entry) { return entry.second->method != "subscriptions/listen"; });
  };
  pollfd end{until, POLLIN, 0};
  while (busy() && std::chrono::steady_clock::now() < deadline && ::poll(&end, 1, 2) == 0) {
  }
}

void Client::cancelAll() {
  std::map<Json, std::shared_ptr<Call>> calls;
  {
    const std::lock_guard lock(mutex_);
    calls.swap(calls_);
  }
  for (const auto& [id, call] : calls) call->cancel();
  const std::lock_guard lock(mutex_);
  delivered_.notify_all();
}

std::optional<Message> Client::ask(Call& call, const std::string& method, Json params, std::chrono::seconds timeout) {
  std::int64_t id = 0;
  {
    const std::lock_guard lock(mutex_);
    id = next_id_++;
    asked_[id] = std::nullopt;
  }
  // Outside the mutex: a peer that does not read would block everything else of this client.
  call.channel->send(makeRequest(id, method, std::move(params)));
  std::unique_lock lock(mutex_);
  delivered_.wait_for(lock, timeout, [&] { return asked_[id].has_value() || call.cancelled(); });
  std::optional<Message> response = std::move(asked_[id]);
  asked_.erase(id);
  return response;
}

void Client::deliver(Message response) {
  const auto id = integerAt(Json{{"id", response.id}}, "id");
  const std::lock_guard lock(mutex_);
  const auto place = id ? asked_.find(*id) : asked_.end();
  if (place == asked_.end() || place->second) return;
  place->second = std::move(response);
  delivered_.notify_all();
}

bool Client::subscribe(const std::string& uri) {
  const std::lock_guard lock(mutex_);
  if (subscriptions_.size() >= kMaxSubscriptions) return false;
  subscriptions_.insert(uri);
  return true;
}

void Client::unsubscribe(const std::string& uri) {
  const std::lock_guard lock(mutex_);
  subscriptions_.erase(uri);
}

bool Client::subscribed(const std::string& uri) const {
  const std::lock_guard lock(mutex_);
  return subscriptions_.contains(uri);
}

}  // namespace caisson::mcp
