// `caisson tool`: the group of its verbs, and the list.
#include <string>

#include "audit/quarantine.h"
#include "cli/json_writer.h"
#include "cli/output.h"
#include "cli/safe_text.h"
#include "cli/verb.h"

namespace caisson::cli {
namespace {

constexpr Option kJson{.name = "json", .help = "Print the list as JSON."};
constexpr Option kListOptions[] = {kJson};
constexpr OptionGroup kListGroups[] = {{"Output", kListOptions}};

std::string asJson(const std::vector<audit::Quarantined>& all) {
  JsonWriter json;
  json.beginArray();
  for (const audit::Quarantined& what : all) {
    json.beginObject().key("key").string(what.key).key("state").string("quarantined");
    json.key("reason").string(what.reason).key("since").string(what.since);
    json.key("sandbox").string(what.sandbox).key("preview").string(what.preview).end();
  }
  json.end();
  return json.text() + "\n";
}

std::string asText(const std::vector<audit::Quarantined>& all) {
  if (all.empty()) return "Nothing is in quarantine.\n";
  std::string text;
  for (const audit::Quarantined& what : all) {
    text += safeLine(what.key) + "\n    in quarantine";
    if (!what.since.empty()) text += " since " + safeLine(what.since);
    text += ": " + safeLine(what.reason) + "\n";
    if (!what.preview.empty()) text += "    " + safeLine(what.preview) + "\n";
  }
  return text;
}

int list(const Arguments& arguments) {
  const auto all = audit::quarantined();
  if (!all) return complain(all.error());
  return print(arguments.has(kJson) ? asJson(*all) : asText(*all));
}

constinit const Verb kList{
    .path = "tool list",
    .summary = "List what is in quarantine, since when and why",
    .topic = Topic::policy,
    .syntax = {.groups = kListGroups},
    .perform = list,
};

constexpr const Verb* kVerbs[] = {&kList, &kToolQuarantine, &kToolRelease};

}  // namespace

constinit const Verb kTool{
    .path = "tool",
    .summary = "Tools and commands that are refused until an owner releases them",
    .topic = Topic::policy,
    .verbs = kVerbs,
};

}  // namespace caisson::cli
