// Chooses the host directory that a new sandbox shows. It is an overlay, so nothing there changes; but its content can
// be read, and so be sent elsewhere. A directory that the user did not open to this server therefore needs consent.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "mcp/sandbox/approval.h"
#include "mcp/sandbox/sandboxes.h"
#include "mcp/server/features.h"

namespace caisson::mcp {

/// A canonical path (empty: an empty workspace), a question to the client, or an error.
using WorkspaceChoice = std::variant<std::string, NeedsInput, Error>;

/// `asked` is the directory that the model named; empty: the operator's default, else the client's first root that
/// holds no home directory, else an empty workspace. Requests that the user must approve first are appended to
/// `needed`. Where the operator named the directories, neither a root of the client nor an approval adds one.
WorkspaceChoice chooseWorkspace(const Call& call, const std::string& asked, const OperatorBounds& bounds,
                                std::vector<ApprovalRequest>& needed);

/// The client's roots that its response to a question for them lists (canonical), without a home directory and those
/// above it: an editor that was started there opens everything of the user. These need an approval like any other
/// directory.
std::vector<std::string> rootsOf(const Call& call);
/// The question for the client's roots; nothing if it cannot be asked, or was asked in this call.
std::optional<NeedsInput> askForRoots(const Call& call);

/// The path of a local `file://` address; empty if it is not one.
std::string pathOfFileUri(std::string_view uri);

/// Whether `path` is `directory` or below it; both canonical.
bool isWithin(std::string_view path, std::string_view directory);

}  // namespace caisson::mcp
