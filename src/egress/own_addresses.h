// Which addresses are this machine's own, asked of the kernel's routing each time: a list made at the start would be
// wrong an hour later.
#pragma once

#include "base/error.h"
#include "egress/address.h"
#include "sys/fd.h"

namespace caisson::egress {

class OwnAddresses {
 public:
  Result<void> open();
  /// Whether a connection to `address` would stay on this machine, or go to a whole network at once. An address that
  /// the kernel gives no answer for counts as one.
  [[nodiscard]] bool contains(const Address& address) const;

 private:
  sys::Fd netlink_;
};

}  // namespace caisson::egress
