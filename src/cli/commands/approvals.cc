// `caisson approvals list|grant|revoke`.
#include <ctime>

#include "approval/store.h"
#include "approval/what.h"
#include "base/concatenate.h"
#include "base/json_writer.h"
#include "base/time_text.h"
#include "caisson/session.h"
#include "cli/approval.h"
#include "cli/output.h"
#include "cli/own_program.h"
#include "cli/safe_text.h"
#include "cli/verb.h"
#include "policy/units.h"

namespace caisson::cli {
namespace {

constexpr Option kJson{.name = "json", .help = "Print a JSON array."};
constexpr Option kListOptions[] = {kJson};
constexpr OptionGroup kListGroups[] = {{"Options", kListOptions}};

constexpr Option kFor{.name = "for", .value = "DUR", .help = "It holds for this long: 30m, 8h. Without: for one use."};
constexpr Option kSession{.name = "session", .value = "ID", .help = "It holds in this session, for a day at most."};
constexpr Option kGrantOptions[] = {kFor, kSession};
constexpr OptionGroup kGrantGroups[] = {{"Options", kGrantOptions}};

std::int64_t now() { return static_cast<std::int64_t>(::time(nullptr)); }

int list(const Arguments& arguments) {
  auto store = approval::Store::open();
  if (!store) return printError(store.error());
  const auto approvals = store->list(now());
  if (!approvals) return printError(approvals.error());
  if (arguments.has(kJson)) {
    JsonWriter json;
    json.beginArray();
    for (const approval::Approval& one : *approvals) {
      json.beginObject().key("id").string(one.id).key("what").string(one.what).key("scope").string(name(one.scope));
      json.key("session").string(one.session).key("given").number(one.given).key("expires").number(one.expires);
      json.key("by").string(one.by).end();
    }
    json.end();
    return print(json.text() + "\n");
  }
  std::string text;
  for (const approval::Approval& one : *approvals) {
    text += one.id + "  " + safeLine(one.what) + "  " + std::string(name(one.scope));
    if (!one.session.empty()) text += " " + safeLine(one.session);
    text += "  until " + utcText(one.expires) + "  (" + safeLine(one.by) + ")\n";
  }
  return print(text.empty() ? "nothing is approved\n" : text);
}

int grant(const Arguments& arguments) {
  if (arguments.operands.size() != 1) {
    return printError(
        usageError("approvals grant", "expected one thing to approve", "caisson approvals grant level:none"));
  }
  approval::Approval wanted{.what = std::string(arguments.operands[0]), .by = "terminal"};
  if (auto checked = approval::checkWhat(wanted.what); !checked) return printError(checked.error());
  if (arguments.has(kFor) && arguments.has(kSession)) {
    return printError(usageError("--session", "given together with --for; an approval has one scope"));
  }
  if (const auto text = arguments.value(kFor)) {
    const auto seconds = policy::parseSeconds(*text);
    if (!seconds || *seconds < 1 || *seconds > static_cast<double>(approval::kMaxValidSeconds)) {
      return printError(usageError("--for " + safeLine(*text), "expected a time of up to a year, such as 8h"));
    }
    wanted.scope = approval::Scope::timed;
    wanted.expires = now() + static_cast<std::int64_t>(*seconds);
  } else if (const auto session = arguments.value(kSession)) {
    wanted.scope = approval::Scope::session;
    wanted.session = *session;
  }
  const std::string scope = wanted.scope == approval::Scope::timed     ? "until " + utcText(wanted.expires)
                            : wanted.scope == approval::Scope::session ? "in session " + safeLine(wanted.session)
                                                                       : "for one use";
  if (!askOwner("caisson: approve " + wanted.what + " " + scope + "?\n  " + approval::meaning(wanted.what) +
                ". [y/N] ")) {
    return printError(usageError("approvals grant", "needs an owner's answer on a terminal, which was not given"));
  }
  auto store = approval::Store::open();
  if (!store) return printError(store.error());
  const auto granted = store->grant(std::move(wanted), now());
  if (!granted) return printError(granted.error());
  return print(granted->id + "\n");
}

/// Closes hosts whose approval was revoked in live sessions at once, not only at their next command.
int closeWhatIsApprovedNoMore() {
  auto sessions = openSessions();
  if (!sessions) return printError(sessions.error());
  const auto infos = sessions->list();
  if (!infos) return printError(infos.error());
  int status = 0;
  for (const SessionInfo& info : *infos) {
    if (info.network != "proxy") continue;
    auto session = sessions->find(info.id);
    if (!session) continue;  // the session ended meanwhile
    if (auto reviewed = session->reviewHosts(); !reviewed) status = printError(reviewed.error());
  }
  return status;
}

int revoke(const Arguments& arguments) {
  if (arguments.operands.empty()) {
    return printError(usageError("approvals revoke", "no approval named", "caisson approvals list shows their ids"));
  }
  auto store = approval::Store::open();
  if (!store) return printError(store.error());
  for (const std::string_view id : arguments.operands) {
    const auto revoked = store->revoke(id, now());
    if (!revoked) return printError(revoked.error());
    if (!*revoked) {
      return printError(
          usageError("approvals revoke " + safeLine(id), "nothing with this id is approved", "caisson approvals list"));
    }
  }
  return closeWhatIsApprovedNoMore();
}

constexpr Verb kList{
    .path = "approvals list",
    .summary = "Show what is approved, for how long, and how it was approved",
    .topic = Topic::policy,
    .syntax = {.groups = kListGroups},
    .perform = list,
};

constexpr std::string_view kGrantBegin =
    "Asks on the terminal and stores the approval, so that a later `--approve WHAT` can use it where there is no "
    "terminal, and so that `caisson mcp` does not ask again. WHAT is ";
constexpr std::string_view kGrantEnd = "; it approves exactly that.";

constexpr Verb kGrant{
    .path = "approvals grant",
    .summary = "Approve one thing ahead, on a terminal",
    .description = kConcatenated<kGrantBegin, approval::kApprovable, kGrantEnd>,
    .examples = "caisson approvals grant level:none --for 10m",
    .topic = Topic::policy,
    .syntax = {.groups = kGrantGroups, .operands = "WHAT"},
    .perform = grant,
};

constexpr Verb kRevoke{
    .path = "approvals revoke",
    .summary = "Take approvals back",
    .examples = "caisson approvals revoke 0123456789abcdef",
    .topic = Topic::policy,
    .syntax = {.operands = "ID..."},
    .perform = revoke,
};

constexpr const Verb* kBelow[] = {&kList, &kGrant, &kRevoke};

}  // namespace

constinit const Verb kApprovals{
    .path = "approvals",
    .summary = "What an owner has approved",
    .topic = Topic::policy,
    .verbs = kBelow,
};

}  // namespace caisson::cli
