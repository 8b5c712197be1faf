// `caisson mcp`: serves features over a transport until the client disconnects or a signal arrives.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace caisson::mcp {

class Features;

struct TransportOptions {
  std::string http;            ///< listen on this address; empty: stdio
  bool without_token = false;  ///< HTTP without a bearer token
};

/// Serves until the client disconnects or a signal arrives; an error if it could not start. Reserves standard output
/// for the protocol.
Result<void> serveFeatures(Features& features, const TransportOptions& options);

struct ServeOptions {
  TransportOptions transport;
  bool allow_commit = false;            ///< changes may be written to the real workspace without approval
  std::vector<std::string> workspaces;  ///< directories that sandboxes may show; the first is the default
  std::string version;                  ///< of caisson
  std::string program;                  ///< the path of the caisson program; empty: the installed one
};

/// serveFeatures() with the features of sandboxes.
Result<void> serve(const ServeOptions& options);

}  // namespace caisson::mcp
