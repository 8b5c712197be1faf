// `caisson session cp`: files and directories between the host and a session.
#include <algorithm>

#include "base/path_text.h"
#include "cli/output.h"
#include "cli/own_program.h"
#include "cli/session/verbs.h"

namespace caisson::cli {
namespace {

/// `ID:PATH`; a colon after a slash belongs to a path of the host.
struct SessionPath {
  std::string session, path;
};

std::optional<SessionPath> sessionPath(std::string_view operand) {
  const std::size_t colon = operand.find(':');
  if (colon == std::string_view::npos || colon == 0 || operand.find('/') < colon) return std::nullopt;
  return SessionPath{std::string(operand.substr(0, colon)), std::string(operand.substr(colon + 1))};
}

int copy(const Arguments& arguments) {
  if (auto counted = countOperands(arguments, "session cp", 2, 2); !counted) return printError(counted.error());
  const auto from = sessionPath(arguments.operands[0]);
  const auto to = sessionPath(arguments.operands[1]);
  if (from.has_value() == to.has_value()) {
    return printError(usageError("session cp", "expected one of the two as ID:PATH",
                                 "a path of the host that holds a colon is written with a slash before it: ./a:b"));
  }
  auto store = openSessions();
  if (!store) return printError(store.error());
  auto session = store->find(from ? from->session : to->session);
  if (!session) return printError(session.error());
  const auto report = from ? session->copyOut(from->path, std::string(arguments.operands[1]))
                           : session->copyIn(std::string(arguments.operands[0]), to->path);
  if (!report) return printError(report.error());
  for (const LeftOut& one : report->left_out) printNotice("not copied: " + displayedPath(one.path) + ": " + one.reason);
  return report->left_out.empty() ? 0 : 1;
}

}  // namespace

constinit const Verb kSessionCp{
    .path = "session cp",
    .summary = "Copy files and directories to or from a session",
    .description =
        "One of SRC and DST is ID:PATH, a path in the session's workspace; the other is a path of the host. A "
        "directory is copied with everything in it, into DST if that is a directory. Files are replaced whole. Pipes, "
        "sockets and devices are left out. On the way to the host, so are links that may lead out of the copied tree, "
        "and "
        "in a directory what the host would execute by itself (hooks, editor tasks, start-up files), which is copied "
        "if "
        "it is SRC. Each is named, and the exit status is 1 then.",
    .examples =
        "caisson session cp ~/data fix-login:fixtures\n"
        "caisson session cp fix-login:dist .",
    .topic = Topic::session,
    .syntax = {.operands = "SRC DST"},
    .perform = copy,
};

}  // namespace caisson::cli
