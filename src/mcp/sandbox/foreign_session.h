// Sessions that another process created, such as `caisson session create`: whether a model may use one by its id.
//
// A person at a terminal chose the policy of such a session. A model must not get more by it than a sandbox of
// this server can give, with or without flags of the operator.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "mcp/sandbox/operator_bounds.h"

namespace caisson::mcp {

/// Whether the session is within the operator's bounds; if not, the reason. `policy` is its policy as JSON.
std::optional<Excess> findForeignExcess(const OperatorBounds& bounds, const std::string& policy,
                                        const std::string& workspace);

/// The approvals without which no sandbox of this server gives what the session gives, as approval/what.h names them:
/// `path:/srv/data` for each path that it shows beside its workspace, `level:process` ... The error is for what no
/// approval allows: writing to real files, the host's network or its local ports, secrets.
std::expected<std::vector<std::string>, Excess> findForeignNeeds(const OperatorBounds& bounds,
                                                                 const std::string& policy, const std::string& session);

/// The refusal for a session that needs this approval.
Excess missingApproval(const std::string& what, const std::string& session);

}  // namespace caisson::mcp
