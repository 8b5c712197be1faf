// Connections to ports of the host in the audit log: recorded like those of the egress.
#pragma once

#include <functional>
#include <string>

#include "audit/log.h"
#include "egress/request_log.h"
#include "supervise/network/port_relay.h"

namespace caisson::supervise {

class PortLog {
 public:
  /// `log` returns null if the policy switches the audit off.
  PortLog(std::function<audit::Log*()> log, std::string sandbox_id)
      : log_(std::move(log)), sandbox_id_(std::move(sandbox_id)) {}

  /// Records a new connection. False: it could not be recorded, so it must not carry a byte.
  bool opened(std::uint16_t port);
  /// Records the end of a connection, with its bytes.
  void closed(std::uint16_t port, const PortRelay::Finished& finished);
  /// Records a connection that network.max_connections does not allow.
  void refused(std::uint16_t port);
  /// Records the counts of connections that have no record of their own.
  void flush();

 private:
  bool record(egress::Request request, std::string_view error = {});

  std::function<audit::Log*()> log_;
  std::string sandbox_id_;
  egress::RequestLog requests_;
};

}  // namespace caisson::supervise
