// Which addresses belong to this machine. Queries the kernel's routing each time, since addresses change at runtime.
#pragma once

#include "base/error.h"
#include "egress/address.h"
#include "sys/fd.h"

namespace caisson::egress {

class OwnAddresses {
 public:
  /// Opens the netlink socket; call before confine().
  Result<void> open();
  /// Whether a connection to `address` would stay on this machine, or go to a broadcast or similar address. True if the
  /// kernel gives no answer, false if it has no route.
  [[nodiscard]] bool contains(const Address& address) const;

 private:
  sys::Fd netlink_;
};

}  // namespace caisson::egress
