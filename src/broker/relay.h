// One brokered connection: TLS with the client, TLS with the host, and the exchange in between.
#pragma once

#include <memory>
#include <string>

#include "broker/authority.h"
#include "broker/exchange.h"
#include "egress/broker_words.h"
#include "egress/loop.h"
#include "sys/fd.h"

namespace caisson::broker {

/// A host with a credential, with both TLS contexts.
struct Host {
  egress::HostPort target;
  std::vector<Injection> injections;
  Context server, client;
};

class Broker;

class Relay final : public egress::Watcher {
 public:
  Relay(Broker& broker, const Host& host, sys::Fd client, sys::Fd upstream);

  /// Closes the connection at once on failure.
  void begin();
  void onEvents(int descriptor, std::uint32_t events) override;
  /// Does all work that is possible without blocking.
  void progress();
  [[nodiscard]] bool closed() const { return closed_; }

 private:
  bool prepare();
  bool shakeHands();
  bool read(SSL* tls, bool from_client);
  bool write(SSL* tls, std::string& bytes);
  void hostFailed();
  void tell();
  void close(bool politely);

  Broker& broker_;
  const Host& host_;
  sys::Fd client_fd_, upstream_fd_;
  Tls client_, upstream_;
  Exchange exchange_;
  bool client_ready_ = false, upstream_ready_ = false, upstream_over_ = false;
  bool closed_ = false;
};

/// State shared by all relays.
class Broker {
 public:
  egress::Loop loop;

  void say(const egress::BrokerWord& word) const;
  /// Runs `relay` again in the next turn, since it used up its share of this one.
  void again(Relay* relay) { unfinished_.push_back(relay); }
  void retire() { retired_ = true; }

 protected:
  sys::Fd egress_;
  std::vector<Relay*> unfinished_;
  bool retired_ = false;
};

}  // namespace caisson::broker
