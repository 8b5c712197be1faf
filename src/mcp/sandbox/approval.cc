#include "mcp/sandbox/approval.h"

#include <algorithm>
#include <ctime>

#include "approval/what.h"
#include "base/shell_quote.h"

namespace caisson::mcp {
namespace {

using approval::Approval;
using approval::Scope;

constexpr std::string_view kQuestion = "approval";
constexpr std::string_view kBy = "elicitation";
constexpr std::string_view kDeny = "deny";
constexpr std::string_view kAllow = "allow";
constexpr std::string_view kForSandbox = "allow for this sandbox";
constexpr std::string_view kForLong = "allow for 30 days";
constexpr std::string_view kNextPage = "show the next page";
constexpr std::int64_t kLong = 30L * 24 * 3600;

std::int64_t wallSeconds() { return static_cast<std::int64_t>(::time(nullptr)); }

/// Paths with blanks or non-ASCII letters can't be stored: stored approvals must be unambiguous.
bool canBeKept(const ApprovalRequest& wanted) { return wanted.keep && approval::checkWhat(wanted.what).has_value(); }

std::vector<std::string_view> choicesOf(const ApprovalRequest& wanted) {
  std::vector<std::string_view> choices{kDeny};
  const bool kept = canBeKept(wanted);
  if (wanted.once) choices.push_back(kAllow);
  if (kept && !wanted.sandbox.empty()) choices.push_back(kForSandbox);
  if (kept) choices.push_back(kForLong);
  if (wanted.pages > 1) choices.push_back(kNextPage);
  return choices;
}

std::string keyOf(std::size_t index) {
  return index == 0 ? std::string(kQuestion) : std::string(kQuestion) + "-" + std::to_string(index + 1);
}

InputRequest questionFor(const ApprovalRequest& wanted, std::size_t page) {
  const auto choices = choicesOf(wanted);
  std::string description = wanted.once ? "Allow this once, or deny it" : "Allow this, or deny it";
  if (choices.size() > 2) description += ". What is allowed for longer: caisson approvals list, revoke";
  return {"elicitation/create",
          {{"mode", "form"},
           {"message", wanted.pages > 1 ? wanted.page_text(page) : wanted.message},
           {"requestedSchema",
            {{"type", "object"},
             {"properties",
              {{"decision",
                {{"type", "string"},
                 {"title", "Decision"},
                 {"description", std::move(description)},
                 {"enum", choices},
                 {"default", kDeny}}}}},
             {"required", Json::array({"decision"})}}}}};
}

Error refusal(const ApprovalRequest& wanted, std::string reason, std::string hint) {
  return {.stage = Stage::usage,
          .call = "approval",
          .object = wanted.what.substr(0, 300),
          .reason = std::move(reason),
          .hint = std::move(hint)};
}

/// The exact command that would allow it.
std::string remedyFor(const ApprovalRequest& wanted) {
  std::string text;
  if (canBeKept(wanted)) {
    const std::string grant = "`caisson approvals grant " + shellQuoted(wanted.what);
    text = "the user can run " + grant + " --for 1h`";
    if (!wanted.sandbox.empty()) text += ", or " + grant + " --session " + wanted.sandbox + "` for this sandbox only,";
    text += " in a terminal; then try again";
  }
  if (wanted.remedy.empty()) return text;
  return text.empty() ? wanted.remedy : text + ". Or " + wanted.remedy;
}

/// The user's choice; a value that was not offered is a denial.
std::string_view decisionIn(const Json& answer, const ApprovalRequest& wanted) {
  const Json* content = findObject(answer, "content");
  if (textAt(answer, "action") != "accept" || content == nullptr) return kDeny;
  const std::string decision = textAt(*content, "decision").value_or("");
  for (const std::string_view choice : choicesOf(wanted))
    if (choice == decision) return choice;
  return kDeny;
}

/// Names the request among the denied ones.
std::string denialName(const ApprovalRequest& wanted) {
  return wanted.what + "\n" + wanted.sandbox + "\n" + wanted.exactly;
}

/// The error for a request that the user denied a short time ago; nothing if they may be asked.
std::optional<Error> findDenial(const ApprovalRequest& wanted, DeniedRequests& denied) {
  const auto left = denied.left(denialName(wanted));
  if (!left) return std::nullopt;
  const std::string remedy = remedyFor(wanted);
  return refusal(
      wanted, "the user denied this a short time ago, so they were not asked again",
      "it can be asked about again in " + std::to_string(left->count()) + " s" + (remedy.empty() ? "" : "; " + remedy));
}

/// Records or stores the user's decision and returns the approval; an error for a denial, or if it cannot be recorded.
ApprovalOutcome keepAnswer(const ApprovalRequest& wanted, std::string_view decision, DeniedRequests& denied) {
  if (decision == kDeny) denied.add(denialName(wanted));
  if (decision == kDeny || decision == kAllow) {
    const bool yes = decision == kAllow;
    if (auto recorded = approval::recordAnswer(wanted.what, kBy, yes, wanted.sandbox); !recorded)
      return recorded.error();
    if (!yes)
      return refusal(
          wanted, "the user did not allow it",
          "they are not asked about the same again for " + std::to_string(DeniedRequests::kKept.count()) + " s");
    return Approval{.what = wanted.what, .by = std::string(kBy)};
  }
  auto store = approval::Store::open();
  if (!store) return store.error();
  Approval given{.what = wanted.what, .by = std::string(kBy)};
  if (decision == kForSandbox) {
    given.scope = Scope::session;
    given.session = wanted.sandbox;
  } else {
    given.scope = Scope::timed;
    given.expires = wallSeconds() + kLong;
  }
  auto granted = store->grant(std::move(given), wallSeconds());
  if (!granted) return granted.error();
  return *std::move(granted);
}

bool isOnRecord(const std::vector<Approval>& approvals, const ApprovalRequest& request) {
  return canBeKept(request) && std::ranges::any_of(approvals, [&](const Approval& one) {
           return one.what == request.what && (one.scope != Scope::session || one.session == request.sandbox);
         });
}

/// `asked` has one letter for each request: 'q' if the question was put, 's' if an approval was on record.
std::string stateOfAll(const std::vector<ApprovalRequest>& requests, std::string_view asked) {
  std::string state = "all " + std::string(asked);
  for (const ApprovalRequest& request : requests) state += "\n" + request.what + "\n" + request.exactly;
  return state;
}

/// The letters of the round before, if the state is one of obtainAll() for exactly these requests, and every question
/// has an answer.
std::string askedBefore(const Call& call, const std::vector<ApprovalRequest>& requests) {
  constexpr std::size_t kPrefix = 4;  // "all "
  if (!call.state || call.state->size() < kPrefix + requests.size()) return {};
  std::string asked = call.state->substr(kPrefix, requests.size());
  if (*call.state != stateOfAll(requests, asked)) return {};
  for (std::size_t i = 0; i < requests.size(); ++i)
    if (asked[i] == 'q' && call.input(keyOf(i)) == nullptr) return {};
  return asked;
}

/// Adds the questions about requests without an approval on record to `needs`.
Result<void> addQuestions(const Call& call, const std::vector<ApprovalRequest>& requests, std::string_view asked,
                          DeniedRequests& denied, NeedsInput& needs) {
  for (std::size_t i = 0; i < requests.size(); ++i)
    if (auto denial = asked[i] == 'q' ? findDenial(requests[i], denied) : std::nullopt)
      return std::unexpected(*std::move(denial));
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (asked[i] != 'q') continue;
    if (!canAsk(call))
      return std::unexpected(
          refusal(requests[i], "the user has to allow this, and this client can't ask them", remedyFor(requests[i])));
    if (auto recorded = approval::recordQuestion(requests[i].what, kBy, requests[i].sandbox); !recorded)
      return recorded;
    needs.requests.emplace(keyOf(i), questionFor(requests[i], 0));
    needs.state = stateOfAll(requests, asked);
  }
  return {};
}

/// Takes the answers, and then, if none was a denial, uses the approvals on record.
AllApproved takeAll(const Call& call, const std::vector<ApprovalRequest>& requests, std::string_view asked,
                    DeniedRequests& denied, approval::Store& store) {
  std::vector<Approval> given(requests.size());
  std::vector<approval::Claim> claims;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (asked[i] == 's') {
      claims.push_back({requests[i].what, requests[i].sandbox});
      places.push_back(i);
      continue;
    }
    ApprovalOutcome approved = keepAnswer(requests[i], decisionIn(*call.input(keyOf(i)), requests[i]), denied);
    if (auto* error = std::get_if<Error>(&approved)) return std::move(*error);
    given[i] = std::get<Approval>(std::move(approved));
  }
  if (claims.empty()) return given;
  auto used = store.useAll(claims, wallSeconds());
  if (!used) return used.error();
  if (!*used)
    return refusal(requests[places.front()], "an approval was revoked or used up", remedyFor(requests[places.front()]));
  for (std::size_t at = 0; at < places.size(); ++at) given[places[at]] = std::move((**used)[at]);
  return given;
}

}  // namespace

// Before elicitation had modes, an empty capability meant forms.
bool canAsk(const Call& call) {
  const Json* declared = findObject(call.capabilities, "elicitation");
  return declared != nullptr && (declared->empty() || declared->contains("form"));
}

AllApproved obtainAll(const Call& call, const std::vector<ApprovalRequest>& requests, DeniedRequests& denied,
                      NeedsInput pending) {
  const auto waits = [&] { return !pending.requests.empty(); };
  if (requests.empty()) return waits() ? AllApproved(std::move(pending)) : AllApproved();
  auto store = approval::Store::open();
  if (!store) return store.error();
  std::string asked = askedBefore(call, requests);
  if (asked.empty()) {
    const auto approvals = store->list(wallSeconds());
    if (!approvals) return approvals.error();
    for (const ApprovalRequest& request : requests) asked += isOnRecord(*approvals, request) ? 's' : 'q';
    if (auto added = addQuestions(call, requests, asked, denied, pending); !added) return added.error();
  }
  return waits() ? AllApproved(std::move(pending)) : takeAll(call, requests, asked, denied, *store);
}

ApprovalOutcome obtainApproval(const Call& call, const ApprovalRequest& request, DeniedRequests& denied) {
  const auto stateOf = [&](std::size_t page) {
    return request.what + "\n" + request.exactly + "\n" + std::to_string(page);
  };
  const auto show = [&](std::size_t page) {
    return NeedsInput{{{std::string(kQuestion), questionFor(request, page)}}, stateOf(page)};
  };
  // An answer is valid only for the question of this server: the state is signed and returned with it.
  for (std::size_t page = 0; page < request.pages; ++page) {
    const Json* answer = call.state == stateOf(page) ? call.input(kQuestion) : nullptr;
    if (answer == nullptr) continue;
    const std::string_view decision = decisionIn(*answer, request);
    if (decision == kNextPage) return show((page + 1) % request.pages);
    return keepAnswer(request, decision, denied);
  }
  if (canBeKept(request)) {
    auto store = approval::Store::open();
    if (!store) return store.error();
    auto used = store->use(request.what, request.sandbox, wallSeconds());
    if (!used) return used.error();
    if (*used) return **std::move(used);
  }
  if (auto denial = findDenial(request, denied)) return *std::move(denial);
  if (!canAsk(call))
    return refusal(request, "the user has to allow this, and this client can't ask them", remedyFor(request));
  if (auto recorded = approval::recordQuestion(request.what, kBy, request.sandbox); !recorded) return recorded.error();
  return show(0);
}

}  // namespace caisson::mcp
