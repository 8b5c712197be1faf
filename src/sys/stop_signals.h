// The signals that end a server.
#pragma once

#include "base/error.h"
#include "sys/fd.h"

namespace caisson::sys {

/// A descriptor that is readable once the process got SIGINT, SIGTERM or SIGHUP. Blocks them for all later threads, so
/// that no handler runs, and ignores SIGPIPE.
Result<Fd> stopSignals();

}  // namespace caisson::sys
