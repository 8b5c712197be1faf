// One brokered connection: TLS with the client, TLS with the host, and the exchange in between.
#pragma once

#include <memory>
#include <string>

#include "broker/authority.h"
#include "broker/exchange.h"
#include "egress/broker_messages.h"
#include "egress/loop.h"
#include "sys/fd.h"

namespace caisson::broker {

/// A host with a credential, with both TLS contexts.
struct Host {
  egress::HostPort target;
  std::vector<Injection> injections;
  Context server, client;  ///< towards the client, and towards the host
};

class Broker;

class Relay final : public egress::Watcher {
 public:
  Relay(Broker& broker, const Host& host, sys::Fd client, sys::Fd upstream);

  /// Starts both TLS handshakes and watches both sockets. Closes the connection if that fails. Call once.
  void begin();
  void onEvents(int descriptor, std::uint32_t events) override;
  /// Does all work that is possible without blocking, up to the share of one turn (Broker::again).
  void progress();
  [[nodiscard]] bool closed() const { return closed_; }

 private:
  /// Sets up both TLS objects and watches the sockets; false on failure.
  bool prepare();
  /// Continues both handshakes, which run in parallel. False if the connection was closed because the client's failed.
  /// If the host's fails, requests get a 502.
  bool shakeHands();
  /// Reads decrypted bytes, or the end, into the exchange. False if there was neither.
  bool read(SSL* tls, bool from_client);
  /// Sends and removes as much as possible; true if that was something. Overwrites what was sent, since it may contain
  /// a credential. If the peer no longer reads, drops the rest; if that is the client, also closes the connection.
  bool write(SSL* tls, std::string& bytes);
  /// The host's handshake failed: reports the reason and passes it on to the exchange.
  void hostFailed();
  /// Reports the exchange's events to the egress process.
  void reportEvents();
  /// Reports the last events and closes both sockets. `politely`: with a TLS close message to the client.
  void close(bool politely);

  Broker& broker_;
  const Host& host_;
  sys::Fd client_fd_, upstream_fd_;
  Tls client_, upstream_;
  Exchange exchange_;
  bool client_ready_ = false, upstream_ready_ = false, upstream_over_ = false;  ///< handshakes done; the host's failed
  bool closed_ = false;
};

/// State shared by all relays.
class Broker {
 public:
  egress::Loop loop;

  /// Sends a report to the egress process; blocks while its socket is full.
  void sendReport(const egress::BrokerReport& report) const;
  /// Runs `relay` again in the next turn, since it used up its share of this one.
  void again(Relay* relay) { unfinished_.push_back(relay); }
  /// A relay has closed: it is removed after the current turn.
  void retire() { retired_ = true; }

 protected:
  sys::Fd egress_;                  ///< link to the egress process
  std::vector<Relay*> unfinished_;  ///< see again()
  bool retired_ = false;            ///< see retire()
};

}  // namespace caisson::broker
