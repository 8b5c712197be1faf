// `caisson tool`: the verb group, and `list`.
#include <algorithm>
#include <string>

#include "audit/quarantine.h"
#include "base/json_writer.h"
#include "cli/output.h"
#include "cli/safe_text.h"
#include "cli/verb.h"
#include "tool/registry.h"

namespace caisson::cli {
namespace {

constexpr Option kJson{.name = "json", .help = "Print the list as JSON."};
constexpr Option kListOptions[] = {kJson};
constexpr OptionGroup kListGroups[] = {{"Output", kListOptions}};

struct Entries {
  tool::Registry::Listing declared;
  std::vector<audit::Quarantined> held;  ///< what is in quarantine, declared tools included

  [[nodiscard]] const audit::Quarantined* quarantine(std::string_view key) const {
    const auto found = std::ranges::find(held, key, &audit::Quarantined::key);
    return found == held.end() ? nullptr : &*found;
  }
  [[nodiscard]] bool isDeclared(std::string_view key) const {
    return std::ranges::find(declared.tools, key, &tool::Tool::name) != declared.tools.end();
  }
};

std::string asJson(const Entries& all) {
  JsonWriter json;
  json.beginArray();
  const auto state = [&](const audit::Quarantined* held) {
    json.key("state").string(held != nullptr ? "quarantined" : "declared");
    if (held == nullptr) return;
    json.key("reason").string(held->reason).key("since").string(held->since);
    json.key("sandbox").string(held->sandbox).key("preview").string(held->preview);
  };
  for (const tool::Tool& tool : all.declared.tools) {
    json.beginObject().key("key").string(tool.name).key("description").string(tool.description);
    json.key("policy").string(tool.policy.name);
    state(all.quarantine(tool.name));
    json.end();
  }
  for (const audit::Quarantined& what : all.held) {
    if (all.isDeclared(what.key)) continue;
    json.beginObject().key("key").string(what.key);
    state(&what);
    json.end();
  }
  json.end();
  return json.text() + "\n";
}

std::string quarantineText(const audit::Quarantined& what) {
  std::string text = "    in quarantine";
  if (!what.since.empty()) text += " since " + safeLine(what.since);
  text += ": " + safeLine(what.reason) + "\n";
  if (!what.preview.empty()) text += "    " + safeLine(what.preview) + "\n";
  return text;
}

std::string asText(const Entries& all) {
  std::string text;
  for (const tool::Tool& tool : all.declared.tools) {
    text += safeLine(tool.name) + (tool.description.empty() ? "" : "  " + safeLine(tool.description)) + "\n";
    if (const auto* held = all.quarantine(tool.name)) text += quarantineText(*held);
  }
  for (const audit::Quarantined& what : all.held) {
    if (!all.isDeclared(what.key)) text += safeLine(what.key) + "\n" + quarantineText(what);
  }
  return text.empty() ? "No tool is declared, and nothing is in quarantine.\n" : text;
}

int list(const Arguments& arguments) {
  const auto registry = tool::Registry::open();
  if (!registry) return printError(registry.error());
  auto declared = registry->list();
  if (!declared) return printError(declared.error());
  auto held = audit::quarantined();
  if (!held) return printError(held.error());
  const Entries all{*std::move(declared), *std::move(held)};
  for (const Error& error : all.declared.damaged) printError(error);
  return print(arguments.has(kJson) ? asJson(all) : asText(all));
}

constinit const Verb kList{
    .path = "tool list",
    .summary = "List declared tools, and what is in quarantine, since when and why",
    .topic = Topic::policy,
    .syntax = {.groups = kListGroups},
    .perform = list,
};

constexpr const Verb* kVerbs[] = {&kToolAdd,    &kList,           &kToolShow,   &kToolRun,
                                  &kToolRemove, &kToolQuarantine, &kToolRelease};

}  // namespace

constinit const Verb kTool{
    .path = "tool",
    .summary = "Declared tools, and what is refused until an owner releases it",
    .topic = Topic::policy,
    .verbs = kVerbs,
};

}  // namespace caisson::cli
