// `caisson session network`: which hosts a live session may reach.
#include "cli/output.h"
#include "cli/session_verbs.h"

namespace caisson::cli {
namespace {

int network(const Arguments& arguments) {
  auto session = sessionOf(arguments, "session network", 3, 3);
  if (!session) return complain(session.error());
  const std::string_view word = arguments.operands[1];
  if (word != "allow" && word != "deny") {
    return complain(usageError(word, "expected allow or deny", "caisson session network --help"));
  }
  if (auto done = session->network(word == "allow", arguments.operands[2]); !done) return complain(done.error());
  return 0;
}

}  // namespace

constinit const Verb kSessionNetwork{
    .path = "session network",
    .summary = "Allow or deny a host in a live session",
    .description =
        "For sessions made with --net proxy. HOST is a name, *.name, .name, an address or *, with or without :PORT. It "
        "takes effect at once and stays with the session; connections that no longer fit are cut.",
    .examples = "caisson session network fix-login allow *.example.org",
    .topic = Topic::session,
    .syntax = {.operands = "ID allow|deny HOST[:PORT]"},
    .perform = network,
};

}  // namespace caisson::cli
