#include "cli/agent/review.h"

#include <unistd.h>

#include "cli/approval.h"
#include "cli/output.h"
#include "cli/safe_text.h"
#include "cli/session/verbs.h"

namespace caisson::cli {
namespace {

void tellCommands(const std::string& name, const std::string& workspace) {
  printNotice("the changes are kept in session " + name + ", apart from " + workspace);
  printNotice("  caisson session diff -p " + name);
  printNotice("  caisson session commit " + name);
  printNotice("  caisson session destroy " + name);
}

/// What the agent's own output cannot imitate: it is on a fresh screen, with the question.
std::string reviewList(const std::string& changes, const CommitReport& planned) {
  std::string text = "caisson: changes that the agent made\n" + changes;
  for (const std::string& line : commitLists(planned, false)) text += "caisson: " + safeLine(line) + "\n";
  return text;
}

std::string questionAbout(const CommitReport& planned, const std::string& workspace) {
  const std::size_t count = planned.applied.size();
  return "caisson: write " + (count == 1 ? std::string("this change") : "these " + std::to_string(count) + " changes") +
         " to " + safeLine(workspace) + "? [y/N] ";
}

bool isTerminal() { return ::isatty(STDIN_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1; }

}  // namespace

Result<void> reviewChanges(Session& session, bool may_ask) {
  // What the agent left running could change files between the review and the commit.
  if (auto stopped = session.stopLeftBehind(); !stopped) printNotice(describe(stopped.error()));
  const auto info = session.info();
  if (!info) return fail(info.error());
  const std::string name = info->name.empty() ? info->id : info->name;
  const auto planned = session.commit({.dry_run = true});
  if (!planned) return fail(planned.error());
  if (planned->applied.empty() && planned->complete()) return session.destroy();
  const auto changes = statOf(session, {});
  if (!changes) {
    tellCommands(name, info->workspace);
    return fail(changes.error());
  }
  const bool ask = may_ask && isTerminal() && !planned->applied.empty();
  if (!ask || ::isatty(STDOUT_FILENO) != 1) (void)print(*changes);
  if (!ask) printCommitLists(*planned, false);
  if (!ask || !askOwnerAbout(reviewList(*changes, *planned), questionAbout(*planned, info->workspace))) {
    tellCommands(name, info->workspace);
    return {};
  }
  const auto committed = session.commit({.expect = planned->digest, .stop = true});
  if (!committed) {
    tellCommands(name, info->workspace);
    return fail(committed.error());
  }
  printNotice(std::to_string(committed->applied.size()) + " changes written to " + info->workspace);
  if (committed->complete()) return session.destroy();
  tellCommands(name, info->workspace);
  return {};
}

}  // namespace caisson::cli
