#include "mcp/sandbox/approval.h"

#include <algorithm>
#include <ctime>

#include "approval/what.h"

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
bool canBeKept(const ApprovalRequest& wish) { return wish.keep && approval::checkWhat(wish.what).has_value(); }

std::vector<std::string_view> choicesOf(const ApprovalRequest& wish) {
  std::vector<std::string_view> choices{kDeny};
  const bool kept = canBeKept(wish);
  if (wish.once) choices.push_back(kAllow);
  if (kept && !wish.sandbox.empty()) choices.push_back(kForSandbox);
  if (kept) choices.push_back(kForLong);
  if (!wish.more_pages.empty()) choices.push_back(kNextPage);
  return choices;
}

std::string keyOf(std::size_t index) {
  return index == 0 ? std::string(kQuestion) : std::string(kQuestion) + "-" + std::to_string(index + 1);
}

InputRequest questionFor(const ApprovalRequest& wish, std::size_t page) {
  const auto choices = choicesOf(wish);
  std::string description = wish.once ? "Allow this once, or deny it" : "Allow this, or deny it";
  if (choices.size() > 2) description += ". What is allowed for longer: caisson approvals list, revoke";
  return {"elicitation/create",
          {{"mode", "form"},
           {"message", page == 0 ? wish.message : wish.more_pages[page - 1]},
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

Error refusal(const ApprovalRequest& wish, std::string reason, std::string hint) {
  return {.stage = Stage::usage,
          .call = "approval",
          .object = wish.what.substr(0, 300),
          .reason = std::move(reason),
          .hint = std::move(hint)};
}

/// The exact command that would allow it.
std::string remedyFor(const ApprovalRequest& wish) {
  std::string text;
  if (canBeKept(wish)) {
    const std::string grant = "`caisson approvals grant " + shellWord(wish.what);
    text = "the user can run " + grant + " --for 1h`";
    if (!wish.sandbox.empty()) text += ", or " + grant + " --session " + wish.sandbox + "` for this sandbox only,";
    text += " in a terminal; then try again";
  }
  if (wish.remedy.empty()) return text;
  return text.empty() ? wish.remedy : text + ". Or " + wish.remedy;
}

/// The user's choice; a value that was not offered is a denial.
std::string_view decisionIn(const Json& answer, const ApprovalRequest& wish) {
  const Json* content = findObject(answer, "content");
  if (textAt(answer, "action") != "accept" || content == nullptr) return kDeny;
  const std::string decision = textAt(*content, "decision").value_or("");
  for (const std::string_view choice : choicesOf(wish))
    if (choice == decision) return choice;
  return kDeny;
}

/// Records or stores the user's decision and returns the approval; an error for a denial, or if it cannot be recorded.
Word keepAnswer(const ApprovalRequest& wish, std::string_view decision) {
  if (decision == kDeny || decision == kAllow) {
    const bool yes = decision == kAllow;
    if (auto recorded = approval::recordAnswer(wish.what, kBy, yes, wish.sandbox); !recorded) return recorded.error();
    if (!yes) return refusal(wish, "the user did not allow it", "");
    return Approval{.what = wish.what, .by = std::string(kBy)};
  }
  auto store = approval::Store::open();
  if (!store) return store.error();
  Approval given{.what = wish.what, .by = std::string(kBy)};
  if (decision == kForSandbox) {
    given.scope = Scope::session;
    given.session = wish.sandbox;
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
                          NeedsInput& needs) {
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
                    approval::Store& store) {
  std::vector<Approval> given(requests.size());
  std::vector<approval::Claim> claims;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (asked[i] == 's') {
      claims.push_back({requests[i].what, requests[i].sandbox});
      places.push_back(i);
      continue;
    }
    Word word = keepAnswer(requests[i], decisionIn(*call.input(keyOf(i)), requests[i]));
    if (auto* error = std::get_if<Error>(&word)) return std::move(*error);
    given[i] = std::get<Approval>(std::move(word));
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

AllApproved obtainAll(const Call& call, const std::vector<ApprovalRequest>& requests, NeedsInput pending) {
  const auto waits = [&] { return !pending.requests.empty(); };
  if (requests.empty()) return waits() ? AllApproved(std::move(pending)) : AllApproved();
  auto store = approval::Store::open();
  if (!store) return store.error();
  std::string asked = askedBefore(call, requests);
  if (asked.empty()) {
    const auto approvals = store->list(wallSeconds());
    if (!approvals) return approvals.error();
    for (const ApprovalRequest& request : requests) asked += isOnRecord(*approvals, request) ? 's' : 'q';
    if (auto added = addQuestions(call, requests, asked, pending); !added) return added.error();
  }
  return waits() ? AllApproved(std::move(pending)) : takeAll(call, requests, asked, *store);
}

Word ownersWord(const Call& call, const ApprovalRequest& request) {
  const auto stateOf = [&](std::size_t page) {
    return request.what + "\n" + request.exactly + "\n" + std::to_string(page);
  };
  const auto show = [&](std::size_t page) {
    return NeedsInput{{{std::string(kQuestion), questionFor(request, page)}}, stateOf(page)};
  };
  // An answer is valid only for the question of this server: the state is signed and returned with it.
  for (std::size_t page = 0; page <= request.more_pages.size(); ++page) {
    const Json* answer = call.state == stateOf(page) ? call.input(kQuestion) : nullptr;
    if (answer == nullptr) continue;
    const std::string_view decision = decisionIn(*answer, request);
    if (decision == kNextPage) return show((page + 1) % (request.more_pages.size() + 1));
    return keepAnswer(request, decision);
  }
  if (canBeKept(request)) {
    auto store = approval::Store::open();
    if (!store) return store.error();
    auto used = store->use(request.what, request.sandbox, wallSeconds());
    if (!used) return used.error();
    if (*used) return **std::move(used);
  }
  if (!canAsk(call))
    return refusal(request, "the user has to allow this, and this client can't ask them", remedyFor(request));
  if (auto recorded = approval::recordQuestion(request.what, kBy, request.sandbox); !recorded) return recorded.error();
  return show(0);
}

std::string shellWord(std::string_view text) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@%+=,";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string_view::npos) return std::string(text);
  std::string quoted = "'";
  for (const char letter : text) quoted += letter == '\'' ? "'\\''" : std::string(1, letter);
  return quoted + "'";
}

}  // namespace caisson::mcp
