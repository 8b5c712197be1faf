// Starts a sandbox's broker, from outside the sandbox.
#pragma once

#include <string>

#include "base/error.h"
#include "broker/settings.h"
#include "sys/fd.h"
#include "sys/helper_process.h"

namespace caisson::broker {

/// The path of the broker's program: in ../libexec/caisson from `caisson` (egress::programPath), beside it, or its
/// installation path. libexec is first: `caisson self verify` knows every file there. Empty: not installed.
std::string program(const std::string& caisson);

struct Started {
  sys::HelperProcess process;
  sys::Fd egress;           ///< for the egress process; the broker exits when the last copy is closed
  std::string certificate;  ///< of its authority, PEM
};

/// Starts the broker of program(), sends it `settings`, and waits until it is ready; an error if it does not answer for
/// ten seconds.
Result<Started> start(const std::string& caisson, const Settings& settings);

}  // namespace caisson::broker
