// `caisson mcp`: serves features over a transport until a signal arrives or, over stdio, the client disconnects.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "mcp/sandbox/operator_bounds.h"

namespace caisson::mcp {

class Features;

struct TransportOptions {
  std::string http;            ///< listen on this address; empty: stdio
  bool without_token = false;  ///< HTTP without a bearer token
};

/// Serves until SIGINT, SIGTERM or SIGHUP arrives or, over stdio, the client disconnects; an error if it could not
/// start. Reserves standard output for the protocol.
Result<void> serveFeatures(Features& features, const TransportOptions& options);

/// One `--workspace DIR[:MODE]`.
struct ServedDirectory {
  std::string path;
  std::string mode;  ///< empty or overlay; ro: never committed; none: no directory at all
};

struct ServeOptions {
  TransportOptions transport;
  bool allow_commit = false;                ///< changes may be written to the real workspace without approval
  std::vector<ServedDirectory> workspaces;  ///< that sandboxes may show, the first by default; empty: the project
  std::vector<std::string> tools;           ///< offered ones, by name; empty: all
  OperatorBounds bounds;                    ///< without directories and tools, which serve() fills in
  std::string version;                      ///< of caisson
  std::string program;                      ///< the path of the caisson program; empty: the installed one
};

/// serveFeatures() with the features of sandboxes; at the end kills their commands and destroys those that are not
/// kept.
Result<void> serve(const ServeOptions& options);

}  // namespace caisson::mcp
