// connect() of a payload without a network namespace, in network mode `proxy`.
//
// The payload may make TCP sockets, but its filter leaves every connect() to the supervisor (plan::kServe). The
// supervisor copies the address once and decides by its copy. For the address of the proxy it makes a connected pair of
// TCP sockets: one end replaces the payload's socket, the other goes to the egress process. The payload's own socket is
// never connected, and no port of the host is left open to other users. Everything else is denied and recorded.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "egress/records.h"
#include "plan/plan.h"
#include "supervise/syscalls/listener.h"
#include "sys/fd.h"

namespace caisson::supervise {

class ProxyConnector {
 public:
  using Report = std::function<void(const egress::Report&)>;

  /// `link`: the socket on which the egress process receives connections. `report` gets what is denied.
  ProxyConnector(sys::Fd link, const plan::Identity& payload, Report report);

  /// Makes the call of `attempt`, a connect(). Returns its errno, 0 after success.
  [[nodiscard]] int connect(const Attempt& attempt, const Listener& listener);
  /// Reports how many denials had no room in the records.
  void finish();

 private:
  /// Connects the descriptor `number` of the process to the egress.
  int connectToProxy(const Attempt& attempt, const Listener& listener, int number);
  /// Records a denied address once; counts it beyond a limit, since the payload chooses the addresses.
  void deny(const std::string& host, std::uint16_t port);

  sys::Fd link_;
  uid_t uid_;  ///< of the payload
  gid_t gid_;
  Report report_;
  std::set<std::string> denied_;
  egress::Overflow beyond_;
};

}  // namespace caisson::supervise
