// Where caisson's own configuration and state are on this host: it executes programs that they name, so nothing of a
// sandbox may arrive there.
#pragma once

#include <string>
#include <vector>

namespace caisson::host {

struct OwnPlaces {
  /// Canonical, whether they exist or not, by each name: the configuration, CAISSON_HOME, the default of both for this
  /// environment and for the home of the user database, layers in memory, other mounts of these, and links that lead
  /// to them.
  std::vector<std::string> paths;
  std::vector<std::string> states;  ///< of these, the state directories, in which caisson makes workspaces
};

OwnPlaces findOwnPlaces();

}  // namespace caisson::host
