// The stdio transport: one message per line on standard input and output.
#pragma once

#include "base/error.h"
#include "mcp/server/server.h"
#include "sys/fd.h"

namespace caisson::mcp {

/// Reserves standard output: the protocol gets a separate descriptor, and output that a library or child writes to 1
/// goes to standard error instead of between the messages.
Result<sys::Fd> takeStandardOutput();

/// Serves one client until its input ends, its output is closed or `until` becomes readable, then cancels its calls.
/// After the end of input these have two more seconds.
void serveStdio(Server& server, int input, int output, int until);

}  // namespace caisson::mcp
