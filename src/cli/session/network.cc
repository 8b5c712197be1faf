// `caisson session network`: which hosts a live session may reach.
#include "cli/output.h"
#include "cli/session/verbs.h"

namespace caisson::cli {
namespace {

constexpr Option kStop{.name = "stop", .help = "If the sandbox must start anew, kill its running processes first."};
constexpr Option kOptions[] = {kStop};
constexpr OptionGroup kGroups[] = {{"Options", kOptions}};

/// A session without network gets an egress, which starts together with the sandbox.
int openFirstHost(Session& session, const Arguments& arguments) {
  const WhenBusy when_busy = arguments.has(kStop) ? WhenBusy::stop : WhenBusy::refuse;
  const auto opened = session.openHost(arguments.operands[2], HostTerm::session, when_busy);
  if (!opened) return printError(opened.error());
  printNotice("the session had no network: its sandbox starts anew with the next command, with an empty /tmp and home");
  return 0;
}

int network(const Arguments& arguments) {
  auto session = sessionOf(arguments, "session network", 3, 3);
  if (!session) return printError(session.error());
  const std::string_view word = arguments.operands[1];
  if (word != "allow" && word != "deny") {
    return printError(usageError(word, "expected allow or deny", "caisson session network --help"));
  }
  const auto info = session->info();
  if (!info) return printError(info.error());
  if (word == "allow" && info->network == "none") return openFirstHost(*session, arguments);
  if (auto done = session->network(word == "allow", arguments.operands[2]); !done) return printError(done.error());
  return 0;
}

}  // namespace

constinit const Verb kSessionNetwork{
    .path = "session network",
    .summary = "Allow or deny a host in a live session",
    .description =
        "HOST is a name, *.name, .name, an address or *, with or without :PORT. It takes effect at once and stays with "
        "the session; connections that no longer fit are cut. The first host of a session made without --net proxy "
        "starts its sandbox anew.",
    .examples = "caisson session network fix-login allow *.example.org",
    .topic = Topic::session,
    .syntax = {.groups = kGroups, .operands = "ID allow|deny HOST[:PORT]"},
    .perform = network,
};

}  // namespace caisson::cli
