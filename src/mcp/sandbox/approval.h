// An owner's approval of a model's request: from the approvals store, which `caisson approvals` manages,
// or by elicitation. If the client cannot ask, the request is denied and the error names the command that would approve
// it.
//
//   const ApprovalOutcome approved = obtainApproval(call, {.what = "path:/srv/data", .message = "Show /srv/data?"},
//                                                  sandboxes.deniedRequests());
//   if (auto* needs = std::get_if<NeedsInput>(&approved)) ...
//
// The store is read each time, so a revocation takes effect at once.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "approval/store.h"
#include "mcp/sandbox/denied_requests.h"
#include "mcp/server/features.h"

namespace caisson::mcp {

struct ApprovalRequest {
  std::string what;     ///< approval/what.h
  std::string sandbox;  ///< its id, if it exists already: then it can be allowed for this sandbox
  std::string message;  ///< for the user: the parts chosen by a model or payload are isReadable()
  std::size_t pages = 1;
  /// With more than one page: builds the text of one, from 0 on, instead of `message`. Only the page that is shown is
  /// built.
  std::function<std::string(std::size_t page)> page_text;
  std::string exactly;  ///< digest of the object, if it can change between question and answer
  bool keep = true;     ///< a stored approval counts, and the answer may be stored
  bool once = true;     ///< may be allowed for this one call; otherwise an answer is always stored
  std::string remedy;   ///< other ways to allow it
};

/// Whether the client can ask the user (elicitation by form).
bool canAsk(const Call& call);

/// The owner's approval, whose id is empty if it was for this call only; a question to the user; or an error, also for
/// a denial.
using ApprovalOutcome = std::variant<approval::Approval, NeedsInput, Error>;
/// Obtains an approval: the user's answer to the question of an earlier round, else a stored approval, else asks. A
/// stored approval for one use is used up by this. A request that is in `denied` is refused instead of asked about; a
/// denial is added there.
ApprovalOutcome obtainApproval(const Call& call, const ApprovalRequest& request, DeniedRequests& denied);

/// The approvals, in the order of the requests: every one is approved.
using AllApproved = std::variant<std::vector<approval::Approval>, NeedsInput, Error>;
/// obtainApproval() for any number of requests, asked about in one round together with `pending`, the other questions
/// of the call. Stored approvals for one use are used up, all together, only when nothing is left to ask and nothing
/// was denied. Each has one page.
AllApproved obtainAll(const Call& call, const std::vector<ApprovalRequest>& requests, DeniedRequests& denied,
                      NeedsInput pending = {});

}  // namespace caisson::mcp
