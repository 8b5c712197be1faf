// Ports between a session and the host's loopback: one attendant for each, which relays and judges nothing.
//
// A socket belongs to the network namespace it was made in, whoever holds it. pid 1 makes sockets on request, so a
// process on the host connects to, or listens at, the sandbox's own loopback without entering anything.
#pragma once

#include <span>

#include "session/store.h"

namespace caisson::session {

/// The attendant's work: `words` are the session, the direction, both ports. Says "open PORT" or "failed REASON" to
/// `say`, then relays until the port is closed or the session is gone. The exit status.
int keepPortOpen(Store& store, std::span<char* const> words, int say);

}  // namespace caisson::session
