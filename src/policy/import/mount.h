// Mounts of container engines: the values of --mount and -v, and the objects of devcontainer.json.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "policy/document/document.h"

namespace caisson::policy {

struct ContainerMount {
  std::string type, source, target;
  bool read_only = false;
  std::vector<std::string> ignored;  ///< options that are known and have no counterpart
};

/// The error is a sentence about the first option that no engine knows.
using ParsedMount = std::expected<ContainerMount, std::string>;

/// Parses "source=...,target=...,type=bind,readonly". Docker compares these names without case.
ParsedMount parseMountOptions(const std::string& text);

/// Parses "SOURCE:TARGET[:ro]". A path alone is a volume without a name, as in Docker.
ParsedMount parseVolume(const std::string& text);

/// Parses an entry of `mounts`: an object, or text in either of the two forms.
ParsedMount parseMountEntry(const Node& entry);

}  // namespace caisson::policy
