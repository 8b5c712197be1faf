// The part of the server that notifies clients of changes: subscriptions of 2026-07-28, and the unsolicited
// notifications of older versions.
#include <utility>
#include <vector>

#include "mcp/protocol/task_json.h"
#include "mcp/server/server.h"

namespace caisson::mcp {
namespace {

constexpr std::size_t kMaxListeners = 1024;
constexpr std::size_t kMaxWatched = 256;  ///< resources per subscription
constexpr std::size_t kMaxWatchedTasks = 64;

/// The granted part of the requested notifications. Unknown ones are omitted, which tells the client.
Json grant(const Json& requested, bool tasks) {
  Json granted = Json::object();
  for (const char* name : {"toolsListChanged", "promptsListChanged", "resourcesListChanged"})
    if (booleanAt(requested, name) == true) granted[name] = true;
  if (const Json* watched = find(requested, "resourceSubscriptions"); watched != nullptr && watched->is_array()) {
    Json uris = Json::array();
    for (const Json& uri : *watched)
      if (uri.is_string() && uris.size() < kMaxWatched) uris.push_back(uri);
    granted["resourceSubscriptions"] = std::move(uris);
  }
  if (const Json* watched = find(requested, "taskIds"); tasks && watched != nullptr && watched->is_array()) {
    Json ids = Json::array();
    for (const Json& id : *watched)
      if (id.is_string() && ids.size() < kMaxWatchedTasks) ids.push_back(id);
    granted["taskIds"] = std::move(ids);
  }
  return granted;
}

bool watches(const Json& filter, const std::string& uri) {
  const Json* watched = find(filter, "resourceSubscriptions");
  if (watched == nullptr) return false;
  for (const Json& entry : *watched)
    if (entry == uri) return true;
  return false;
}

}  // namespace

void Server::listen(const std::shared_ptr<Call>& call) {
  const Json* requested = findObject(call->params, "notifications");
  if (requested == nullptr) return fail(*call, {code::kInvalidParams, "params.notifications must be an object", {}});
  if (find(*requested, "taskIds") != nullptr && hasTasks(ProtocolRevision::modern) && !call->takesTask())
    return fail(*call, missingTasks());
  Json filter = grant(*requested, hasTasks(ProtocolRevision::modern));
  {
    const std::lock_guard lock(mutex_);
    listeners_.remove_if([](const Listener& listener) { return listener.call->cancelled(); });
    if (listeners_.size() < kMaxListeners) {
      // Under the mutex: the acknowledgement must precede any notification.
      call->notify("notifications/subscriptions/acknowledged", tagged({{"notifications", filter}}, call->id));
      const bool tasks = filter.contains("taskIds");
      listeners_.push_back({call, std::move(filter), {}});
      if (!tasks) return;
      if (!watcher_.joinable()) watcher_ = std::thread([this] { watchTasks(); });
      watch_.notify_all();
      return;
    }
  }
  fail(*call, {code::kInternal, "too many subscriptions", {}});
}

void Server::attach(const std::shared_ptr<Client>& client) {
  const std::lock_guard lock(mutex_);
  // A client may send `initialize` again; it gets each notification once all the same.
  clients_.remove_if([&](const std::weak_ptr<Client>& other) { return other.expired() || other.lock() == client; });
  clients_.push_back(client);
}

void Server::notifyListeners(const char* wanted, const char* notification, const Json& params) {
  std::vector<std::shared_ptr<Channel>> streams;
  {
    const std::lock_guard lock(mutex_);
    listeners_.remove_if([](const Listener& listener) { return listener.call->cancelled(); });
    for (const Listener& listener : listeners_)
      if (wanted != nullptr ? listener.filter.contains(wanted)
                            : watches(listener.filter, textAt(params, "uri").value_or("")))
        listener.call->notify(notification, tagged(params, listener.call->id));
    for (const auto& weak : clients_) {
      const auto client = weak.lock();
      if (client == nullptr) continue;
      if (wanted == nullptr && !client->subscribed(textAt(params, "uri").value_or(""))) continue;
      if (auto stream = client->stream()) streams.push_back(std::move(stream));
    }
  }
  for (const auto& stream : streams) stream->send(makeNotification(notification, params));
}

void Server::changed(Change what) {
  switch (what) {
    case Change::tools: notifyListeners("toolsListChanged", "notifications/tools/list_changed", {}); break;
    case Change::prompts: notifyListeners("promptsListChanged", "notifications/prompts/list_changed", {}); break;
    case Change::resources: notifyListeners("resourcesListChanged", "notifications/resources/list_changed", {}); break;
  }
}

void Server::resourceUpdated(const std::string& uri) {
  notifyListeners(nullptr, "notifications/resources/updated", {{"uri", uri}});
}

void Server::endSubscriptions() {
  std::list<Listener> listeners;
  {
    const std::lock_guard lock(mutex_);
    listeners.swap(listeners_);
  }
  for (const Listener& listener : listeners)
    succeed(*listener.call, {{"_meta", {{meta::kSubscriptionId, listener.call->id}}}});
}

}  // namespace caisson::mcp
