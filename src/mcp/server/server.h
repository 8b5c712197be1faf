// The protocol, independent of transports: messages of clients in, answers out through their channels. One Server
// serves any number of clients of both revisions at the same time.
//
//   Server server(features);
//   auto client = std::make_shared<Client>();
//   server.receive(client, message, channel, Server::Expect::either);
//
// Short requests are answered before receive() returns, so in order. Worker threads serve calls of tools, prompts and
// resources; fast ones overtake slow ones.
#pragma once

#include <condition_variable>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "http/workers.h"
#include "mcp/protocol/request_state.h"
#include "mcp/server/client.h"
#include "mcp/server/features.h"
#include "mcp/server/memory_limit.h"

namespace caisson::mcp {

class Server final : public Announcer {
 public:
  explicit Server(Features& features);
  ~Server() override;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// What the transport knows about the revision. stdio knows nothing (either); HTTP headers name it.
  enum class Expect : std::uint8_t { either, modern, legacy };

  /// Handles a message of a client. Answers to a request are sent through `channel`, also after this returns.
  void receive(const std::shared_ptr<Client>& client, Message message, const std::shared_ptr<Channel>& channel,
               Expect expect);
  /// Answers an invalid message with an error.
  static void refuse(const Malformed& malformed, Channel& channel);

  /// Registers a client of an older version for change notifications until it disconnects.
  void attach(const std::shared_ptr<Client>& client);

  void changed(Change what) override;
  void resourceUpdated(const std::string& uri) override;

  /// Sends the final result of every open subscriptions/listen request. Call before the transport closes.
  void endSubscriptions();

  [[nodiscard]] Features& features() { return features_; }

 private:
  struct Listener {
    std::shared_ptr<Call> call;
    Json filter;                                  ///< the granted part
    std::map<std::string, std::string> reported;  ///< the last sent state of each watched task
  };

  /// Determines the revision of a request and serves it.
  void serve(const std::shared_ptr<Call>& call, Expect expect);
  /// Serves a request of 2026-07-28; an error if its _meta lacks the version or the capabilities, or names another
  /// version.
  void serveModern(const std::shared_ptr<Call>& call);
  /// Serves a request of an older version; an error before `initialize`, except for `ping`.
  void serveLegacy(const std::shared_ptr<Call>& call);
  /// Answers `initialize`: agrees on a version, the newest older one if the client's is unknown, and attaches the
  /// client.
  void initialize(Call& call);
  /// Serves the methods that both revisions have. Returns false for other methods.
  bool serveShared(const std::shared_ptr<Call>& call);
  /// Answers a list request with all items in one page; rejects a cursor. Modern clients also get a cache time, which
  /// is 0 for `resources`.
  void serveList(Call& call, const char* key, const Json& items);
  /// Serves subscriptions/listen: the call stays open and gets notifications until endSubscriptions() or its
  /// cancellation.
  void listen(const std::shared_ptr<Call>& call);
  /// Serves tasks/get, tasks/update and tasks/cancel, and tasks/result of 2025-11-25. Returns false for other methods.
  bool serveTasks(const std::shared_ptr<Call>& call);
  /// The handlers of these methods, in a worker thread.
  Outcome getTask(Call& call);
  Outcome updateTask(Call& call);
  Outcome cancelTask(Call& call);
  Outcome awaitTask(Call& call);
  /// Before 2026-07-28: sends the questions of a task to the client that waits for its result, and delivers the
  /// answers. No answer counts as cancelled.
  std::optional<RpcError> askForTask(Call& call, const Task& task);
  /// Whether these features have tasks in this revision.
  [[nodiscard]] bool hasTasks(ProtocolRevision revision) const;
  /// The watcher thread: sends notifications/tasks to listeners whenever a task that they watch changed.
  void watchTasks();
  /// Reads the watched tasks once; returns false if there are none.
  bool reportTasks();
  /// Answers server/discover: versions, capabilities, instructions.
  void discover(Call& call);

  /// Checks the parameters and runs the handler in a worker thread, which answers the call.
  void dispatch(const std::shared_ptr<Call>& call, Outcome (Features::*handler)(Call&));
  /// Runs `handler` in a worker thread, which answers the call with the outcome.
  void runInWorker(const std::shared_ptr<Call>& call, std::function<Outcome(Call&)> handler);
  /// Calls the handler, with its questions settled by settleInputs(). An exception becomes a protocol error.
  Outcome callHandler(Call& call, Outcome (Features::*handler)(Call&));
  /// Answers with the result, the error, or a request for input.
  void answerOutcome(Call& call, Outcome outcome);
  /// Before 2026-07-28: sends the questions of a NeedsInput to the client and calls the handler again with the answers.
  /// A modern call's outcome is returned unchanged.
  Outcome settleInputs(Call& call, Outcome (Features::*handler)(Call&), Outcome outcome);

  /// Removes the call from its client and sends the result, unless the call was cancelled. Sends an error instead if
  /// the clients have read too few answers.
  void succeed(Call& call, Json result);
  /// The same with an error.
  void fail(Call& call, const RpcError& error);
  /// Sends a notification to subscribers: modern ones whose filter has the member `wanted`, and all older clients.
  /// `wanted` null: those that subscribed to the resource params.uri.
  void notifyListeners(const char* wanted, const char* notification, const Json& params);

  Features& features_;
  RequestState states_;
  MemoryLimit call_memory_, answer_memory_;
  std::mutex mutex_;
  std::list<Listener> listeners_;
  std::list<std::weak_ptr<Client>> clients_;
  std::condition_variable watch_;
  bool ending_ = false;
  std::thread watcher_;    ///< started by the first subscription to a task
  http::Workers workers_;  // last: its threads use all of the above
};

}  // namespace caisson::mcp
