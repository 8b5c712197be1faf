// `caisson policy check|explain|schema|import`; policy_author.cc has init and reference, policy_trial.cc has test.
#include "caisson/policy.h"

#include <filesystem>
#include <optional>

#include "approval/owner.h"
#include "base/json_writer.h"
#include "base/path_text.h"
#include "caisson/run.h"
#include "cli/commands/policy_author.h"
#include "cli/output.h"
#include "cli/policy_options.h"
#include "cli/project.h"
#include "cli/result/schema.h"
#include "cli/safe_text.h"
#include "cli/verb.h"
#include "policy/describe/explain.h"
#include "policy/describe/json.h"
#include "policy/import/import.h"
#include "policy/profiles/profiles.h"
#include "policy/rules/command.h"

namespace caisson::cli {
namespace {

constexpr Option kJson{.name = "json", .help = "Print the policy and its widenings as JSON."};
constexpr Option kCommand{.name = "command",
                          .value = "COMMAND",
                          .help = "Say instead whether the policy's rules let this command run, and by which rule."};
constexpr Option kExplainOptions[] = {kProfile, kCommand, kJson};
constexpr Option kImportJson{.name = "json", .help = "Print the policy and the report as one JSON object."};
constexpr Option kImportOptions[] = {kImportJson};
constexpr OptionGroup kImportGroups[] = {{"Options", kImportOptions}};
constexpr Option kOfResult{.name = "result", .help = "Print the schema of a run's result instead."};
constexpr Option kSchemaOptions[] = {kOfResult};
constexpr OptionGroup kSchemaGroups[] = {{"Options", kSchemaOptions}};
constexpr OptionGroup kExplainGroups[] = {{"Options", kExplainOptions}};

/// Why a run with this policy would be refused on this machine, for example since a directory is missing.
std::optional<Error> refusalHere(const Policy& policy) {
  Request request{.policy = policy};
  request.command = {"true"};
  request.policy.model().commands = {};  // this command is not the user's
  const auto plan = describePlan(request, false);
  const bool host = !plan && (plan.error().stage == Stage::host || plan.error().stage == Stage::plan);
  return host ? std::optional(plan.error()) : std::nullopt;
}

int check(const Arguments& arguments) {
  if (arguments.operands.empty())
    return printError(usageError("policy check", "no file given", "caisson policy check caisson.toml"));
  int status = 0;
  std::string good;
  for (const std::string_view file : arguments.operands) {
    const auto policy = Policy::load(std::string(file));
    if (policy) {
      good += safeLine(file) + ": ok\n";
      if (const auto refusal = refusalHere(*policy)) {
        printNotice(std::string(file) + ": `caisson run` refuses it on this machine:");
        printError(*refusal);
      }
    } else {
      printError(policy.error());
      status = 1;
    }
  }
  const int failed = print(good);
  return failed != 0 ? failed : status;
}

std::string explainedAsJson(const policy::Policy& policy) {
  JsonWriter json;
  json.beginObject().key("policy").raw(policy::toJson(policy)).key("widenings").beginArray();
  for (const policy::Widening& widening : policy.widenings) {
    json.beginObject().key("key").string(widening.key);
    json.key("from").string(widening.from).key("to").string(widening.to).end();
  }
  json.end().end();
  return json.text() + "\n";
}

/// Applies the command rules to one command. Exit status 1 if they deny it.
int explainCommand(const policy::CommandRules& rules, std::string_view command, bool json) {
  const auto refusal = policy::refuseCommand(rules, command);
  const auto network = policy::networkUse(command);
  if (json) {
    JsonWriter out;
    out.beginObject().key("command").string(command).key("allowed").boolean(!refusal);
    out.key("rule").string(refusal ? refusal->rule : "").key("reason").string(refusal ? refusal->reason : "");
    out.key("network_use").string(network.value_or("")).end();
    const int failed = print(out.text() + "\n");
    return failed != 0 ? failed : refusal ? 1 : 0;
  }
  std::string text = "command   " + safeLine(command) + "\n";
  text += "length    " + std::to_string(command.size()) + " bytes, at most " + std::to_string(rules.max_length) + "\n";
  text += "patterns  " + std::to_string(rules.blocked_patterns.size()) + " blocked, " +
          (rules.allowed_patterns ? std::to_string(rules.allowed_patterns->size()) + " allowed" : "any allowed") + "\n";
  text += "network   " +
          (network ? "`" + safeLine(*network) + "` looks like network use (a guess, not a rule)"
                   : std::string("no sign of network use")) +
          "\n";
  text += "decision  " +
          (refusal ? "refused by " + refusal->rule + ": " + safeLine(refusal->reason)
                   : std::string("allowed; what it can do is decided by the sandbox")) +
          "\n";
  const int failed = print(text);
  return failed != 0 ? failed : refusal ? 1 : 0;
}

int explain(const Arguments& arguments) {
  const auto profile = arguments.value(kProfile);
  if (arguments.operands.size() + (profile ? 1 : 0) > 1)
    return printError(usageError("policy explain", "expected one file or one --profile, not more",
                                 "caisson policy explain caisson.toml"));
  const auto policy = arguments.operands.empty() ? Policy::profile(profile.value_or(policy::kDefaultProfile))
                                                 : Policy::load(std::string(arguments.operands[0]));
  if (!policy) return printError(policy.error());
  if (const auto command = arguments.value(kCommand))
    return explainCommand(policy->model().commands, *command, arguments.has(kJson));
  if (arguments.has(kJson)) return print(explainedAsJson(policy->model()));
  const auto owner = approval::loadOwner();
  if (!owner) return printError(owner.error());
  std::string text = policy::explain(policy->model(), owner->ceilingsFor(policy->model()));
  text += "\nowner\n";
  if (owner->empty()) text += "  no configuration\n";
  for (const std::string& file : owner->files)
    text += "  configuration                   " + displayedPath(file) + "\n";
  if (owner->profile) text += "  default profile                 " + safeLine(*owner->profile) + "\n";
  for (const std::string& path : owner->always_denied)
    text += "  always denied                   " + displayedPath(path) + "\n";
  for (const std::string& host : owner->private_hosts)
    text += "  private host                    " + safeLine(host) + "\n";
  return print(safeLines(text));
}

int import(const Arguments& arguments) {
  if (arguments.operands.size() != 1)
    return printError(usageError("policy import", "expected one file", "caisson policy import sandbox.yaml"));
  const std::string file(arguments.operands[0]);
  const auto format = policy::formatOf(file);
  if (!format) return printError(format.error());
  const auto text = policy::readRegularFile(file);
  if (!text) return printError(text.error());
  const std::string plain = *format == policy::Format::json ? policy::withoutComments(*text) : *text;
  const auto document = policy::readText(plain, *format, file);
  if (!document) return printError(document.error());
  std::error_code problem;  // without a directory, absolute paths of it stay those of the host
  const auto imported = policy::importPolicy(*document, std::filesystem::current_path(problem).string());
  if (!imported) return printError(imported.error());
  if (!arguments.has(kImportJson)) {
    for (const policy::ImportNote& note : imported->notes)
      printNotice(std::string(name(note.kind)) + ": " + note.key + ": " + note.text);
    for (const std::string& ceiling : imported->extra_ceilings)
      printNotice("for the owner's configuration, under [ceilings]: " + ceiling);
    return print(policy::toJson(imported->policy) + "\n");
  }
  JsonWriter json;
  json.beginObject().key("shape").string(imported->shape).key("policy").raw(policy::toJson(imported->policy));
  json.key("notes").beginArray();
  for (const policy::ImportNote& note : imported->notes) {
    json.beginObject().key("kind").string(name(note.kind)).key("key").string(note.key);
    json.key("text").string(note.text).end();
  }
  json.end().key("ceilings").beginArray();
  for (const std::string& ceiling : imported->extra_ceilings) json.string(ceiling);
  json.end().end();
  return print(json.text() + "\n");
}

int schema(const Arguments& arguments) {
  if (arguments.has(kOfResult)) return print(resultSchema());
  const std::string text = Policy::schema();
  return print(text.ends_with('\n') ? text : text + "\n");
}

constexpr Verb kCheck{
    .path = "policy check",
    .summary = "Check policy files",
    .description =
        "Loads each file as a run would, and prints every error with its place and what was expected. The "
        "exit status is 0 if all files are good, 1 if one is not.",
    .examples = "caisson policy check caisson.toml",
    .topic = Topic::policy,
    .syntax = {.operands = "FILE..."},
    .perform = check,
};

constexpr Verb kExplain{
    .path = "policy explain",
    .summary = "Say what a policy allows, and what it widens",
    .description =
        "Prints every setting of a policy file or a built-in profile (default: dev), which of them are "
        "defaults, their ceilings, and each key that is wider than in what the policy extends.\n\n"
        "With --command it says which command rule lets that command line run or refuses it (exit status 1), and "
        "whether it looks as if it used the network.",
    .examples =
        "caisson policy explain caisson.toml\n"
        "caisson policy explain --profile strict\n"
        "caisson policy explain caisson.toml --command 'cargo build --release'",
    .topic = Topic::policy,
    .syntax = {.groups = kExplainGroups, .operands = "[FILE]"},
    .perform = explain,
};

constexpr Verb kImport{
    .path = "policy import",
    .summary = "Turn another sandbox's configuration into a policy",
    .description =
        "Reads one of the shapes that docs/profiles.md describes (among them srt settings, devcontainer.json and "
        "compose files) and prints a policy file in JSON. On standard error it says, key by key, what could not be "
        "taken over, what was refused as unsafe, and what is wider than the "
        "profile it starts from. A key that the shape does not have is an error.\n\n"
        "Run it in the directory that becomes the workspace: absolute paths of it are then those of the workspace.",
    .examples =
        "caisson policy import sandbox.yaml > policy.json\n"
        "caisson policy import .devcontainer/devcontainer.json > policy.json",
    .topic = Topic::policy,
    .syntax = {.groups = kImportGroups, .operands = "FILE"},
    .perform = import,
};

constexpr Verb kSchema{
    .path = "policy schema",
    .summary = "Print the JSON Schema of policy files or of results",
    .description =
        "For editors, which can then complete and check policy files as they are written; with --result, for programs "
        "that read the results of `run --json` and `session exec --json`.",
    .examples = "caisson policy schema --result > result.schema.json",
    .topic = Topic::policy,
    .syntax = {.groups = kSchemaGroups},
    .perform = schema,
};

constexpr const Verb* kBelow[] = {&kPolicyInit,      &kCheck,  &kExplain,     &kPolicyTest,
                                  &kPolicyReference, &kSchema, &kPolicyTrust, &kImport};

}  // namespace

constinit const Verb kPolicy{
    .path = "policy",
    .summary = "Check, explain and describe policies",
    .topic = Topic::policy,
    .verbs = kBelow,
};

}  // namespace caisson::cli
