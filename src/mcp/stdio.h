// The stdio transport: one message per line on standard input and output.
#pragma once

#include "base/error.h"
#include "mcp/server.h"
#include "sys/fd.h"

namespace caisson::mcp {

/// Takes standard output away from everything else: the protocol has a descriptor of its own from here on, and what
/// some library or child writes to 1 goes to standard error instead of between the messages.
Result<sys::Fd> takeStandardOutput();

/// Serves one client until its input ends or `until` becomes readable, then ends what it had asked for.
void serveStdio(Server& server, int input, int output, int until);

}  // namespace caisson::mcp
