// `caisson tool run|show`: runs a declared tool under its policy, or prints its declaration.
#include <ctime>
#include <map>
#include <string>
#include <vector>

#include "audit/quarantine.h"
#include "base/json_writer.h"
#include "caisson/run.h"
#include "cli/approval.h"
#include "cli/output.h"
#include "cli/policy_options.h"
#include "cli/result/report.h"
#include "cli/safe_text.h"
#include "cli/verb.h"
#include "policy/describe/explain.h"
#include "policy/describe/json.h"
#include "tool/command_template.h"
#include "tool/consent.h"
#include "tool/registry.h"

namespace caisson::cli {
namespace {

constexpr Option kApprovalOptions[] = {kApprove};
constexpr OptionGroup kRunGroups[] = {{"Policy", kApprovalOptions}, {"Output", kResultOptions}};
constexpr Option kJson{.name = "json", .help = "Print one JSON object."};
constexpr Option kShowOptions[] = {kJson};
constexpr OptionGroup kShowGroups[] = {{"Output", kShowOptions}};

Result<tool::Tool> declared(const Arguments& arguments, std::string_view verb) {
  if (arguments.operands.empty())
    return fail(usageError(verb, "expected a tool's name", "caisson tool list prints them"));
  const std::string name(arguments.operands[0]);
  const auto registry = tool::Registry::open();
  if (!registry) return fail(registry.error());
  auto tool = registry->find(name);
  if (!tool) return fail(tool.error());
  if (!*tool) return fail(usageError(std::string(verb) + " " + name, "there is no such tool", "caisson tool list"));
  return **std::move(tool);
}

Result<std::map<std::string, std::string, std::less<>>> valuesFrom(const Arguments& arguments) {
  std::map<std::string, std::string, std::less<>> values;
  for (std::size_t at = 1; at < arguments.operands.size(); ++at) {
    const std::string_view word = arguments.operands[at];
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos || equals == 0)
      return fail(usageError(safeLine(word), "expected KEY=VALUE", "caisson tool show prints the values it takes"));
    const std::string_view value = word.substr(equals + 1);
    if (!values.emplace(word.substr(0, equals), value).second)
      return fail(usageError(safeLine(word), "this value is given twice"));
  }
  return values;
}

Result<Request> requestFrom(const Arguments& arguments) {
  auto tool = declared(arguments, "tool run");
  if (!tool) return fail(tool.error());
  const auto values = valuesFrom(arguments);
  if (!values) return fail(values.error());
  const std::vector<std::string> more(arguments.command.begin(), arguments.command.end());
  auto command = tool::fillTemplate(tool->command, *values, more);
  if (!command) return fail(command.error());
  if (auto consent = tool::checkConsent(*tool, static_cast<std::int64_t>(::time(nullptr))); !consent)
    return fail(consent.error());
  auto approvals = obtainApprovals(arguments, tool->policy);
  if (!approvals) return fail(approvals.error());
  Request request = requestOnThisTerminal(arguments, Policy(std::move(tool->policy)));
  request.command = *std::move(command);
  request.approvals = *std::move(approvals);
  request.tool = tool->name;
  return request;
}

int runTool(const Arguments& arguments) { return runAndReport(arguments, requestFrom); }

std::string shownCommand(const tool::Tool& tool) {
  std::string text;
  for (const std::string& word : tool.command) {
    const bool plain = !word.empty() && word.find_first_of(" \t\n\"'\\$`|&;<>()*?") == std::string::npos;
    text += (text.empty() ? "" : " ") + (plain ? word : jsonString(word));
  }
  return safeLine(text);
}

std::string asJson(const tool::Tool& tool, const std::optional<audit::Quarantined>& held) {
  JsonWriter json;
  json.beginObject().key("name").string(tool.name).key("description").string(tool.description);
  json.key("command").beginArray();
  for (const std::string& word : tool.command) json.string(word);
  json.end().key("values").beginArray();
  for (const std::string& name : tool::parameters(tool.command)) json.string(name);
  json.end().key("takes_more").boolean(tool::takesMore(tool.command));
  json.key("state").string(held ? "quarantined" : "declared");
  if (held) json.key("reason").string(held->reason);
  json.key("needs_approval").beginArray();
  for (const std::string& reason : tool::needsConsent(tool)) json.string(reason);
  json.end().key("policy").raw(policy::toJson(tool.policy)).end();
  return json.text() + "\n";
}

std::string asText(const tool::Tool& tool, const std::optional<audit::Quarantined>& held) {
  std::string text = tool.name + (tool.description.empty() ? "" : ": " + safeLine(tool.description)) + "\n";
  text += "  command: " + shownCommand(tool) + "\n";
  for (const std::string& name : tool::parameters(tool.command)) text += "  value:   " + name + "=...\n";
  if (tool::takesMore(tool.command)) text += "  extra arguments after `--`\n";
  if (held) text += "  in quarantine: " + safeLine(held->reason) + "\n";
  for (const std::string& reason : tool::needsConsent(tool)) text += "  approved: " + safeLine(reason) + "\n";
  return text + "\n" + safeLines(policy::explain(tool.policy));
}

int show(const Arguments& arguments) {
  if (arguments.operands.size() > 1) return printError(usageError("tool show", "expected one tool's name"));
  const auto tool = declared(arguments, "tool show");
  if (!tool) return printError(tool.error());
  const auto held = audit::findQuarantined(tool->name);
  if (!held) return printError(held.error());
  return print(arguments.has(kJson) ? asJson(*tool, *held) : asText(*tool, *held));
}

}  // namespace

constinit const Verb kToolRun{
    .path = "tool run",
    .summary = "Run a declared tool under its policy",
    .description =
        "Takes every value of the tool as KEY=VALUE, and extra arguments after `--` if its command has {...}. Exit "
        "status and output are those of `caisson run`. A tool in quarantine is refused.",
    .examples = "caisson tool run search pattern='TODO|FIXME'",
    .topic = Topic::policy,
    .syntax = {.groups = kRunGroups, .operands = "NAME [KEY=VALUE]...", .command = "[-- ARG...]"},
    .perform = runTool,
};

constinit const Verb kToolShow{
    .path = "tool show",
    .summary = "Show a declared tool: command, values, policy, what needed approval",
    .topic = Topic::policy,
    .syntax = {.groups = kShowGroups, .operands = "NAME"},
    .perform = show,
};

}  // namespace caisson::cli
