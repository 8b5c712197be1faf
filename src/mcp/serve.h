// `caisson mcp` itself: which features are served over which transport, until the client goes or a signal says so.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace caisson::mcp {

struct ServeOptions {
  bool allow_commit = false;            ///< changes may be brought to the real workspace without asking
  std::string http;                     ///< listen here instead of serving stdio; empty: stdio
  bool without_token = false;           ///< HTTP without a bearer token
  bool conformance = false;             ///< the fixtures of the official suite instead of sandboxes; no token
  std::vector<std::string> workspaces;  ///< directories that sandboxes may show; the first is the default
  std::string version;                  ///< of caisson
};

/// Serves until it is over; an error if it could not begin. Takes standard output for the protocol.
Result<void> serve(const ServeOptions& options);

}  // namespace caisson::mcp
