// `caisson approvals list|grant|revoke`.
#include <ctime>

#include "approval/store.h"
#include "approval/what.h"
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
  if (!store) return complain(store.error());
  const auto approvals = store->list(now());
  if (!approvals) return complain(approvals.error());
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
    return complain(
        usageError("approvals grant", "expected one thing to approve", "caisson approvals grant level:none"));
  }
  approval::Approval wish{.what = std::string(arguments.operands[0]), .by = "terminal"};
  if (auto checked = approval::checkWhat(wish.what); !checked) return complain(checked.error());
  if (arguments.has(kFor) && arguments.has(kSession)) {
    return complain(usageError("--session", "given together with --for; an approval has one scope"));
  }
  if (const auto text = arguments.value(kFor)) {
    const auto seconds = policy::parseSeconds(*text);
    if (!seconds || *seconds < 1 || *seconds > static_cast<double>(approval::kLongest)) {
      return complain(usageError("--for " + safeLine(*text), "expected a time of up to a year, such as 8h"));
    }
    wish.scope = approval::Scope::timed;
    wish.expires = now() + static_cast<std::int64_t>(*seconds);
  } else if (const auto session = arguments.value(kSession)) {
    wish.scope = approval::Scope::session;
    wish.session = *session;
  }
  const std::string scope = wish.scope == approval::Scope::timed     ? "until " + utcText(wish.expires)
                            : wish.scope == approval::Scope::session ? "in session " + safeLine(wish.session)
                                                                     : "for one use";
  if (!askOwner("caisson: approve " + wish.what + " " + scope + "?\n  " + approval::meaning(wish.what) + ". [y/N] ")) {
    return complain(usageError("approvals grant", "needs an owner's answer on a terminal, which was not given"));
  }
  auto store = approval::Store::open();
  if (!store) return complain(store.error());
  const auto granted = store->grant(std::move(wish), now());
  if (!granted) return complain(granted.error());
  return print(granted->id + "\n");
}

/// Closes hosts whose approval was revoked in live sessions at once, not only at their next command.
int closeWhatIsApprovedNoMore() {
  auto sessions = openSessions();
  if (!sessions) return complain(sessions.error());
  const auto infos = sessions->list();
  if (!infos) return complain(infos.error());
  int status = 0;
  for (const SessionInfo& info : *infos) {
    if (info.network != "proxy") continue;
    auto session = sessions->find(info.id);
    if (!session) continue;  // the session ended meanwhile
    if (auto reviewed = session->reviewHosts(); !reviewed) status = complain(reviewed.error());
  }
  return status;
}

int revoke(const Arguments& arguments) {
  if (arguments.operands.empty()) {
    return complain(usageError("approvals revoke", "no approval named", "caisson approvals list shows their ids"));
  }
  auto store = approval::Store::open();
  if (!store) return complain(store.error());
  for (const std::string_view id : arguments.operands) {
    const auto revoked = store->revoke(id, now());
    if (!revoked) return complain(revoked.error());
    if (!*revoked) {
      return complain(
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

constexpr Verb kGrant{
    .path = "approvals grant",
    .summary = "Approve one thing ahead, on a terminal",
    .description =
        "Asks on the terminal and keeps the answer, so that a later `--approve WHAT` can redeem it where there is no "
        "terminal, and so that `caisson mcp` does not ask again. WHAT is level:none, net:host, net:proxy, "
        "user:root, image:REF, host:NAME[:PORT], path:/PATH, commit:/PATH, tool:NAME or policy:WORD; it approves "
        "exactly that.",
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
