#include "mcp/server/call.h"

#include <algorithm>
#include <utility>

namespace caisson::mcp {

int logLevelRank(std::string_view level) {
  const auto* const place = std::find(kLogLevels.begin(), kLogLevels.end(), level);
  return place == kLogLevels.end() ? -1 : static_cast<int>(place - kLogLevels.begin());
}

Call::Call(Message message, std::shared_ptr<Channel> to, std::shared_ptr<Client> from)
    : id(std::move(message.id)),
      method(std::move(message.method)),
      params(std::move(message.params)),
      channel(std::move(to)),
      client(std::move(from)) {
  const Json* meta = findObject(params, "_meta");
  const Json* token = meta == nullptr ? nullptr : find(*meta, "progressToken");
  if (token != nullptr && (token->is_string() || token->is_number_integer())) progress_token_ = *token;
}

bool Call::can(std::string_view capability) const { return findObject(capabilities, capability) != nullptr; }

bool Call::takesTask() const {
  if (revision == ProtocolRevision::legacy)
    return version == kLegacyTasksVersion && findObject(params, "task") != nullptr;
  const Json* extensions = findObject(capabilities, "extensions");
  return extensions != nullptr && findObject(*extensions, kTasksExtension) != nullptr;
}

void Call::progress(double amount, std::optional<double> total, std::string_view message) {
  if (!wantsProgress()) return;
  const std::lock_guard lock(mutex_);
  if (cancelled_ || answered_) return;
  if (amount <= progress_sent_) amount = progress_sent_ + 0.001;
  progress_sent_ = amount;
  Json body{{"progressToken", progress_token_}, {"progress", amount}};
  if (total) body["total"] = *total;
  if (!message.empty()) body["message"] = message;
  channel->send(makeNotification("notifications/progress", std::move(body)));
}

void Call::log(std::string_view level, std::string_view logger, Json data) {
  if (log_level.empty() || logLevelRank(level) < logLevelRank(log_level)) return;
  notify("notifications/message", {{"level", level}, {"logger", logger}, {"data", std::move(data)}});
}

void Call::notify(std::string_view name, Json notification_params) {
  const std::lock_guard lock(mutex_);
  if (cancelled_ || answered_) return;
  channel->send(makeNotification(name, std::move(notification_params)));
}

bool Call::cancelled() const {
  const std::lock_guard lock(mutex_);
  return cancelled_;
}

std::shared_ptr<void> Call::onCancel(std::function<void()> hook) {
  auto held = std::make_shared<std::function<void()>>(std::move(hook));
  const std::lock_guard lock(mutex_);
  if (cancelled_) {
    (*held)();
    return nullptr;
  }
  hooks_.push_back(held);
  // Removed under the mutex: once the guard is gone, no hook runs.
  return {held.get(), [this, held](void*) {
            const std::lock_guard guard(mutex_);
            std::erase(hooks_, held);
          }};
}

bool Call::pause(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, time, [this] { return cancelled_; });
}

void Call::cancel() {
  const std::lock_guard lock(mutex_);
  if (cancelled_ || answered_) return;
  cancelled_ = true;
  changed_.notify_all();
  for (const auto& hook : hooks_) (*hook)();
}

void Call::answer(const Json& message, std::shared_ptr<void> share) {
  {
    const std::lock_guard lock(mutex_);
    if (cancelled_ || answered_) return;
    answered_ = true;
  }
  // Outside the mutex: a peer that does not read must not delay a cancellation. No message can follow the answer.
  channel->sendAnswer(message, std::move(share));
}

}  // namespace caisson::mcp
