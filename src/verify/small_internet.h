// A small internet for one check: a network namespace of its own with a name server and a web server on its loopback,
// in which the sandbox's egress then runs. No packet leaves it, and it vanishes with the check.
//
//   site.verify.example       127.0.0.1      serves "/" and the redirects "/to-metadata" and "/to-elsewhere"
//   inner.verify.example      127.0.0.9      serves as well, so that who gets there shows
//   ten.verify.example        10.1.2.3
//   metadata.verify.example   169.254.169.254
//   mixed.verify.example      93.184.216.34 and 127.0.0.9, in one answer
//   flip.verify.example       127.0.0.1 when it is asked for the first time, 127.0.0.9 from then on
//
// Loopback addresses are blocked for everybody; a check that wants to get somewhere names its host in
// network.private_hosts.
#pragma once

#include "verify/check.h"

namespace caisson::verify {

/// Performs the check in a process of its own beside the servers. Skipped, with the reason, where this host gives no
/// such namespace.
Verdict inSmallInternet(Context& context, Verdict (*perform)(Context& context));

}  // namespace caisson::verify
