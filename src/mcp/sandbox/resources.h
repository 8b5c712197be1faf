// What of sandboxes can be fetched by address, and the completion of addresses and arguments.
//
//   caisson://sandboxes                        all of them, as JSON
//   caisson://{sandbox_id}/info                one of them
//   caisson://{sandbox_id}/exec/{exec_id}/stdout   the whole output that is kept (or stderr)
#pragma once

#include "mcp/features.h"
#include "mcp/sandbox/sandboxes.h"

namespace caisson::mcp {

Json listResources(Sandboxes& sandboxes);
Json listTemplates();
Outcome readResource(Sandboxes& sandboxes, const Call& call);
Outcome completeArgument(Sandboxes& sandboxes, const Call& call);

}  // namespace caisson::mcp
