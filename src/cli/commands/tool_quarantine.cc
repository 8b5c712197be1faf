// `caisson tool quarantine|release`: blocks commands until an owner releases them.
#include <string>
#include <vector>

#include "audit/log.h"
#include "audit/quarantine.h"
#include "audit/redact.h"
#include "cli/approval.h"
#include "cli/output.h"
#include "cli/safe_text.h"
#include "cli/verb.h"

namespace caisson::cli {
namespace {

constexpr Option kReason{.name = "reason", .value = "TEXT", .help = "Why; shown to everyone who tries to run it."};
constexpr Option kOptions[] = {kReason};
constexpr OptionGroup kGroups[] = {{"Options", kOptions}};

/// The named tool, or the command after `--`.
Result<audit::Quarantined> subject(const Arguments& arguments, std::string_view verb) {
  audit::Quarantined what;
  if (!arguments.command.empty() && arguments.operands.empty()) {
    const std::vector<std::string> command(arguments.command.begin(), arguments.command.end());
    what.key = audit::commandKey(command);
    what.preview = audit::redactedPreview(command);
    if (!audit::keyForQuarantine(command)) {
      return fail(usageError(verb, "an interpreter without a program is nothing to judge: everybody uses it",
                             "name the whole command"));
    }
  } else if (arguments.operands.size() == 1 && arguments.command.empty()) {
    what.key = arguments.operands[0];
  } else {
    return fail(usageError(verb, "one tool's name is expected, or a command after `--`",
                           "caisson " + std::string(verb) + " NAME"));
  }
  return what;
}

Result<void> putOnRecord(audit::EventType type, const audit::Quarantined& what) {
  auto log = audit::Log::open();
  if (!log) return fail(log.error());
  audit::Fields fields;
  fields.text("tool", what.key).text("reason", what.reason).text("command_preview", what.preview);
  return log->append({type, audit::Severity::warn, what.sandbox, std::move(fields)});
}

int quarantine(const Arguments& arguments) {
  auto what = subject(arguments, "tool quarantine");
  if (!what) return printError(what.error());
  what->reason = arguments.value(kReason).value_or("put there by hand");
  if (const auto done = audit::quarantine(*what); !done) return printError(done.error());
  if (const auto written = putOnRecord(audit::EventType::tool_quarantined, *what); !written) {
    return printError(written.error());
  }
  return print(safeLine(what->key) + " is in quarantine.\n");
}

/// Only a person can release: the answer comes from the controlling terminal, which no sandbox has.
/// Recorded in the audit log first: if that fails, nothing is released.
int letGo(const Arguments& arguments) {
  const auto what = subject(arguments, "tool release");
  if (!what) return printError(what.error());
  const auto found = audit::findQuarantined(what->key);
  if (!found) return printError(found.error());
  if (!*found) return printError(usageError(safeLine(what->key), "it is not in quarantine", "caisson tool list"));
  const audit::Quarantined& held = **found;
  std::string question = "caisson: " + safeLine(held.key) + " is in quarantine";
  if (!held.since.empty()) question += " since " + safeLine(held.since);
  question += ":\n  " + safeLine(held.reason) + "\n";
  if (!held.preview.empty()) question += "  " + safeLine(held.preview) + "\n";
  if (!askOwner(question + "  Release it? [y/N] ")) {
    return printError(usageError(safeLine(what->key), "needs an owner's yes on a terminal, which was not given",
                                 "run it from a terminal and answer y"));
  }
  if (const auto written = putOnRecord(audit::EventType::tool_released, held); !written) {
    return printError(written.error());
  }
  if (const auto done = audit::release(what->key); !done) return printError(done.error());
  return print(safeLine(what->key) + " is released.\n");
}

}  // namespace

constinit const Verb kToolQuarantine{
    .path = "tool quarantine",
    .summary = "Refuse a tool or a command until it is released",
    .description =
        "The tool of this name, or exactly the command after `--`, is refused from now on, in every process of this "
        "user. Interpreters such as bash cannot be quarantined, because that would block everything that uses them.",
    .examples =
        "caisson tool quarantine web-scraper --reason 'odd traffic'\n"
        "caisson tool quarantine -- ./build.sh --fast",
    .topic = Topic::policy,
    .syntax = {.groups = kGroups, .operands = "NAME", .command = "| -- CMD [ARG]..."},
    .perform = quarantine,
};

constinit const Verb kToolRelease{
    .path = "tool release",
    .summary = "Release a tool or command from quarantine",
    .description = "Asks on the terminal; without one the answer is no. `caisson tool list` prints the names.",
    .topic = Topic::policy,
    .syntax = {.operands = "NAME", .command = "| -- CMD [ARG]..."},
    .perform = letGo,
};

}  // namespace caisson::cli
