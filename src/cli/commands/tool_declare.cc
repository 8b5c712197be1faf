// `caisson tool add|remove`: declares tools, and obtains the owner's approval where one is needed.
#include <ctime>
#include <string>
#include <vector>

#include "caisson/policy.h"
#include "cli/approval.h"
#include "cli/output.h"
#include "cli/policy_flags.h"
#include "cli/policy_options.h"
#include "cli/safe_text.h"
#include "cli/verb.h"
#include "policy/decode/validate.h"
#include "tool/command_template.h"
#include "tool/consent.h"
#include "tool/registry.h"

namespace caisson::cli {
namespace {

constexpr Option kDescription{.name = "description", .value = "TEXT", .help = "What the tool is for."};
constexpr Option kOwnOptions[] = {kDescription};
constexpr OptionGroup kOwnGroups[] = {{"Options", kOwnOptions}};
constexpr auto kGroups = withPolicyGroups(kOwnGroups);

std::int64_t now() { return static_cast<std::int64_t>(::time(nullptr)); }

/// Obtains the owner's approval for what the tool needs, and stores it for its runs.
Result<void> obtainConsent(const Arguments& arguments, const tool::Tool& tool) {
  const std::vector<std::string> reasons = tool::needsConsent(tool);
  if (reasons.empty()) return {};
  std::string question = "caisson: the tool " + tool.name + " asks for more than tools get by themselves:\n";
  for (const std::string& reason : reasons) question += "  - " + safeLine(reason) + "\n";
  question += "  Declare it so? [y/N] ";
  const auto by = obtainApproval(arguments, tool::consentFor(tool), question);
  if (!by) return fail(by.error());
  return tool::keepConsent(tool, *by, now());
}

Result<tool::Tool> toolFrom(const Arguments& arguments) {
  if (arguments.operands.size() != 1 || arguments.command.empty()) {
    return fail(usageError("tool add", "expected a name, and the command after `--`",
                           "caisson tool add search --profile files -- grep -rn -- {pattern} ."));
  }
  auto policy = policyFrom(arguments);
  if (!policy) return fail(policy.error());
  tool::Tool tool{.name = std::string(arguments.operands[0]),
                  .description = std::string(arguments.value(kDescription).value_or("")),
                  .command = {arguments.command.begin(), arguments.command.end()},
                  .policy = policy->model()};
  if (auto checked = tool::checkName(tool.name); !checked) return fail(checked.error());
  if (auto checked = tool::checkTemplate(tool.command); !checked) return fail(checked.error());
  return tool;
}

int add(const Arguments& arguments) {
  const auto tool = toolFrom(arguments);
  if (!tool) return printError(tool.error());
  const auto registry = tool::Registry::open();
  if (!registry) return printError(registry.error());
  const auto taken = registry->find(tool->name);
  if (!taken || *taken) {
    return printError(usageError("tool add " + tool->name, "there is a tool of this name already",
                                 "caisson tool remove " + tool->name + ", or another name"));
  }
  if (auto consent = obtainConsent(arguments, *tool); !consent) return printError(consent.error());
  if (auto added = registry->add(*tool); !added) {
    (void)tool::dropConsent(tool->name, now());
    return printError(added.error());
  }
  return print(tool->name + " is declared.\n");
}

int remove(const Arguments& arguments) {
  if (arguments.operands.size() != 1)
    return printError(usageError("tool remove", "expected one tool's name", "caisson tool list"));
  const std::string name(arguments.operands[0]);
  const auto registry = tool::Registry::open();
  if (!registry) return printError(registry.error());
  if (auto checked = tool::checkName(name); !checked) return printError(checked.error());
  // Drop the approval first: after a crash in between, the tool exists without one and must ask again.
  if (auto dropped = tool::dropConsent(name, now()); !dropped) return printError(dropped.error());
  const auto removed = registry->remove(name);
  if (!removed) return printError(removed.error());
  if (!*removed) return printError(usageError("tool remove " + name, "there is no such tool", "caisson tool list"));
  return 0;
}

}  // namespace

constinit const Verb kToolAdd{
    .path = "tool add",
    .summary = "Declare a tool: a name, a command with places for values, a policy",
    .description =
        "The policy flags are those of `run`, and are stored with the tool. In the command, {name} is replaced by a "
        "value given to `tool run`: always one argument, never parsed by a shell. {...} is replaced by the arguments "
        "after `--`. Write {{ for a literal brace.\n\n"
        "A tool that can run a shell below level full, or that has network, needs the owner's approval: a prompt on "
        "the terminal, or --approve tool:NAME. It is valid for a year and can be revoked.",
    .examples =
        "caisson tool add search --profile files -- grep -rn -- {pattern} .\n"
        "caisson tool add sh-tool -- bash -c {command}",
    .topic = Topic::policy,
    .syntax = {.groups = kGroups, .operands = "NAME", .command = "-- CMD [ARG]..."},
    .perform = add,
};

constinit const Verb kToolRemove{
    .path = "tool remove",
    .summary = "Forget a declared tool, and what was approved for it",
    .topic = Topic::policy,
    .syntax = {.operands = "NAME"},
    .perform = remove,
};

}  // namespace caisson::cli
