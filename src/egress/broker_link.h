// The egress process's side of the credential broker: which connections go to it, and what it says about them.
//
// The broker gets two sockets of pairs made here, never the connection itself: every byte passes through this process
// on its way to the broker and back, so limits, counters, time-outs and live denials hold as for any other connection,
// and the broker needs no network at all.
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

  bool watch();
  void onEvents(int descriptor, std::uint32_t events) override;

  /// Whether a connection to `target` has to go through the broker, or nowhere.
  [[nodiscard]] bool handles(const HostPort& target) const;

  /// Our ends of the two pairs whose other ends the broker now has.
  struct Ends {
    sys::Fd client, upstream;
  };
  /// Or why the connection can't be made; it must not go on without the broker then.
  std::expected<Ends, std::string_view> handOver(const HostPort& target);

 private:
  Server& server_;
  sys::Fd link_;  ///< invalid once the broker is gone
};

}  // namespace caisson::egress
