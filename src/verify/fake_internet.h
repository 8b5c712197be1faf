// A small internet for one check: a network namespace with a name server and a web server on its loopback, in which the
// sandbox's egress runs. No packet leaves it, and it disappears with the check.
//
//   site.verify.example       127.0.0.1      serves "/" and the redirects "/to-metadata" and "/to-elsewhere"
//   inner.verify.example      127.0.0.9      serves as well, so that reaching it is detected
//   ten.verify.example        10.1.2.3
//   metadata.verify.example   169.254.169.254
//   mixed.verify.example      93.184.216.34 and 127.0.0.9, in one response
//   flip.verify.example       127.0.0.1 for the first query, 127.0.0.9 afterwards
//
// Loopback addresses are always blocked; a check that needs one lists its host in network.private_hosts.
#pragma once

#include "verify/check.h"

namespace caisson::verify {

/// Runs the check in a separate process beside the servers. Skipped, with the reason, if this host denies such a
/// namespace.
Verdict withFakeInternet(Context& context, Verdict (*perform)(Context& context));

}  // namespace caisson::verify
