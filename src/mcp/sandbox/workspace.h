// Which directory of the host a new sandbox shows. The sandbox gets it as an overlay, so nothing there is changed; but
// it can be read, and so be told to whoever listens. A directory outside of what the person opened to this server is
// therefore shown only with their consent.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "mcp/features.h"
#include "mcp/sandbox/sandboxes.h"

namespace caisson::mcp {

/// A canonical path (empty: an empty workspace), a question to the client, or a refusal in words.
using WorkspaceChoice = std::variant<std::string, NeedsInput, Error>;

/// `asked` is what the model named; empty: nothing.
WorkspaceChoice chooseWorkspace(const Call& call, const std::string& asked, const SandboxSettings& settings);

/// The path of a `file://` address on this machine; empty if it is none.
std::string pathOfFileUri(std::string_view uri);

/// Whether `path` is `directory` or below it; both canonical.
bool isWithin(std::string_view path, std::string_view directory);

}  // namespace caisson::mcp
