// Starting a sandbox's broker, from outside it.
#pragma once

#include <string>

#include "base/error.h"
#include "broker/settings.h"
#include "sys/fd.h"
#include "sys/helper_process.h"

namespace caisson::broker {

/// Where the broker's program is: beside `caisson`, or where it is installed. Empty: not on this machine.
std::string program();

struct Started {
  sys::HelperProcess process;
  sys::Fd egress;           ///< for the egress process; when its last copy is closed, the broker ends
  std::string certificate;  ///< of its authority, PEM
};

/// Starts it and sends it `settings`.
Result<Started> start(const Settings& settings);

}  // namespace caisson::broker
