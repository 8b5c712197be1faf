// The protocol, independent of transports: messages of clients in, answers out through their channels. One Server
// serves any number of clients of both eras at the same time.
//
//   Server server(features);
//   auto client = std::make_shared<Client>();
//   server.receive(client, message, channel, Server::Expect::either);
//
// Short requests are answered before receive() returns, so in order. Worker threads serve calls of tools, prompts and
// resources; fast ones overtake slow ones.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "mcp/protocol/request_state.h"
#include "mcp/server/client.h"
#include "mcp/server/features.h"
#include "mcp/server/workers.h"

namespace caisson::mcp {

class Server final : public Announcer {
 public:
  explicit Server(Features& features);
  ~Server() override;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// What the transport knows about the era. stdio knows nothing (either); HTTP headers name it.
  enum class Expect : std::uint8_t { either, modern, legacy };

  void receive(const std::shared_ptr<Client>& client, Message message, const std::shared_ptr<Channel>& channel,
               Expect expect);
  /// Answers an invalid message with an error.
  static void refuse(const Malformed& malformed, Channel& channel);

  /// Registers a client of an older version for change notifications until it disconnects.
  void attach(const std::shared_ptr<Client>& client);

  void changed(Change what) override;
  void resourceUpdated(const std::string& uri) override;

  /// Ends the subscription streams as the protocol requires.
  void endSubscriptions();

  [[nodiscard]] Features& features() { return features_; }

 private:
  struct Listener {
    std::shared_ptr<Call> call;
    Json filter;  ///< the granted part
  };

  void serve(const std::shared_ptr<Call>& call, Expect expect);
  void serveModern(const std::shared_ptr<Call>& call);
  void serveLegacy(const std::shared_ptr<Call>& call);
  void initialize(Call& call);
  bool serveShared(const std::shared_ptr<Call>& call);
  void serveList(Call& call, const char* key, const Json& items);
  void listen(const std::shared_ptr<Call>& call);
  void discover(Call& call);

  void dispatch(const std::shared_ptr<Call>& call, Outcome (Features::*handler)(Call&));
  Outcome callHandler(Call& call, Outcome (Features::*handler)(Call&));
  void answerOutcome(Call& call, Outcome outcome);
  Outcome settleInputs(Call& call, Outcome (Features::*handler)(Call&), Outcome outcome);

  void succeed(Call& call, Json result);
  void fail(Call& call, const RpcError& error);
  void notifyListeners(const char* wish, const char* notification, const Json& params);

  Features& features_;
  RequestState states_;
  std::mutex mutex_;
  std::list<Listener> listeners_;
  std::list<std::weak_ptr<Client>> clients_;
  Workers workers_;  // last: its threads use all of the above
};

}  // namespace caisson::mcp
