// `caisson mcp`: serves features over a transport until a signal arrives or, over stdio, the client disconnects.
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

/// Serves until SIGINT, SIGTERM or SIGHUP arrives or, over stdio, the client disconnects; an error if it could not
/// start. Reserves standard output for the protocol.
Result<void> serveFeatures(Features& features, const TransportOptions& options);

struct ServeOptions {
  TransportOptions transport;
  bool allow_commit = false;            ///< changes may be written to the real workspace without approval
  std::vector<std::string> workspaces;  ///< that sandboxes may show, the first by default; empty: the project
  std::string version;                  ///< of caisson
  std::vector<std::string> rungs;       ///< weaker ones that sandboxes may take (isolation.may_be_missing)
  std::string program;                  ///< the path of the caisson program; empty: the installed one
};

/// serveFeatures() with the features of sandboxes; at the end kills their commands and destroys those that are not
/// kept.
Result<void> serve(const ServeOptions& options);

}  // namespace caisson::mcp
