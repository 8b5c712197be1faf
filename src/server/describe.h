// JSON of what the routes return.
#pragma once

#include "server/route.h"
#include "service/inbox.h"
#include "service/sandboxes.h"

namespace caisson::policy {
struct Policy;
}

namespace caisson::server {

Json describeSandbox(const service::Sandbox& sandbox, const SessionInfo& info);
Json describeCommand(const ExecInfo& info);
/// The same for a list: with the first 4 KiB of the arguments, and `args_truncated` if there are more.
Json describeListedCommand(ExecInfo info);
Json describeFile(const FileEntry& entry);
/// `with_changes`: also the list of a commit's changes, which is too long for an event.
Json describeApproval(const service::PendingApproval& approval, bool with_changes = true);
/// What a commit would write, for the owner who approves it (service::ExactContent): a bounded list of changes, those
/// that the host may execute first, and a count of the others. Names are escaped.
Json describeForApproval(const CommitReport& report, const std::string& workspace);

/// The members "data" and "encoding" ("utf-8" or "base64") of output.
void addBytes(Json& value, std::string_view bytes);

/// "c12" to 12 and back; nothing for other texts.
std::optional<std::uint32_t> commandNumber(std::string_view id);
std::string commandId(std::uint32_t number);

/// The memory limit in bytes, also where the policy has a share of the host's.
std::uint64_t describeMemory(const policy::Policy& policy);

/// What is wrong with the field "name" of a new sandbox; empty if nothing.
std::string findNameFlaw(const Call& call);

/// 403 that names what waits for the owner, and an event for the owner.
http::Response approvalNeeded(Call& call, const std::vector<service::PendingApproval>& missing);

}  // namespace caisson::server
