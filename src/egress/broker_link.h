// The egress process's link to the credential broker: which connections it gets, and its reports about them.
//
// The broker gets two ends of socket pairs, never the connection itself: every byte passes through the egress process.
// So limits, counters, timeouts and live denials apply as for any other connection, and the broker needs no network.
#pragma once

#include <expected>
#include <string_view>

#include "egress/host_name.h"
#include "egress/loop.h"
#include "sys/fd.h"

namespace caisson::egress {

class Server;

class BrokerLink final : public Watcher {
 public:
  BrokerLink(Server& server, sys::Fd link) : server_(server), link_(std::move(link)) {}

  /// Registers the link with the server's loop; false on failure.
  bool watch();
  /// A report of the broker arrived, or the broker has exited: records it.
  void onEvents(int descriptor, std::uint32_t events) override;

  /// Whether connections to `target` must go through the broker.
  [[nodiscard]] bool handles(const HostPort& target) const;

  /// Our ends of the two pairs; the broker has the other ends.
  struct Ends {
    sys::Fd client, upstream;
  };
  /// Gives the broker a new connection to `target`. On error returns the reason; the connection must then be denied,
  /// not made without the broker.
  std::expected<Ends, std::string_view> handOver(const HostPort& target);

 private:
  Server& server_;
  sys::Fd link_;  ///< invalid once the broker has exited
};

}  // namespace caisson::egress
