#include "tool/registry.h"

#include <algorithm>
#include <cerrno>

#include "approval/owner.h"
#include "audit/quarantine.h"
#include "base/json_value.h"
#include "base/json_writer.h"
#include "base/version.h"
#include "policy/decode/decode.h"
#include "policy/decode/validate.h"
#include "policy/describe/json.h"
#include "sys/state_home.h"
#include "tool/command_template.h"

namespace caisson::tool {
namespace {

constexpr const char* kDirectory = "tools";
constexpr std::string_view kEnding = ".json";
constexpr int kFormat = 1;
constexpr std::size_t kMaxName = 64;
constexpr std::size_t kMaxDescription = 4096;
constexpr std::uint64_t kMaxFile = 1024 * 1024;

std::string fileOf(std::string_view name) { return std::string(name) + std::string(kEnding); }

Error damaged(std::string_view name, std::string_view reason) {
  return plainError(Stage::state, "tool", name, reason,
                    "declare it again: caisson tool remove " + std::string(name) + ", then caisson tool add");
}

/// Decodes a tool's policy and applies the owner's configuration. Decodes without ceilings: the owner's depend on the
/// level, which is in the policy.
Result<policy::Policy> readPolicy(const std::string& text, std::string_view name) {
  auto document = policy::readText(text, policy::Format::json, "tool " + std::string(name));
  if (!document) return fail(document.error());
  const policy::Ceilings none = approval::noCeilings();
  policy::Origin origin;
  origin.ceilings = &none;
  auto policy = policy::decode(*document, origin);
  if (!policy) return policy;
  const auto owner = approval::loadOwner();
  if (!owner) return fail(owner.error());
  if (auto checked = owner->check(*policy); !checked) return fail(checked.error());
  if (!policy->network.credentials.empty()) {
    return fail(plainError(Stage::policy, "tool", name, "a tool's policy cannot name network.credentials",
                           "run the command with a policy of your own: caisson run --policy"));
  }
  return policy;
}

}  // namespace

Result<void> checkName(std::string_view name) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
  };
  if (name.empty() || name.size() > kMaxName || !std::ranges::all_of(name, plain) || name.front() == '.' ||
      name.front() == '-') {
    std::string shown;
    for (const char c : name.substr(0, kMaxName)) shown += plain(c) ? c : '?';
    return fail(plainError(Stage::usage, "tool", shown, "not a tool's name",
                           "up to 64 letters, digits, '-', '_' and '.', beginning with a letter or digit"));
  }
  if (audit::isInterpreterName(name)) {
    return fail(
        plainError(Stage::usage, "tool", name,
                   "the name of an interpreter cannot be a tool's: its quarantine would stop every tool that uses it",
                   "call it " + std::string(name) + "-tool"));
  }
  return {};
}

Result<Tool> readTool(std::string_view text, std::string_view name) {
  const auto object = JsonValue::parse(text);
  if (!object || !object->isObject()) return fail(damaged(name, "its entry is not JSON"));
  Tool tool;
  std::optional<JsonValue> policy;
  for (const auto& [key, value] : object->members()) {
    if (key == "format_version") {
      if (!value.integer()) return fail(damaged(name, "its format_version is not a number"));
      const FormatVersion format{.found = *value.integer(), .oldest = kFormat, .newest = kFormat};
      if (!format.isKnown())
        return fail(unknownFormat(name, format, "use the caisson that declared the tool, or declare it again"));
    } else if (key == "name" && value.text()) {
      tool.name = *value.text();
    } else if (key == "description" && value.text()) {
      tool.description = *value.text();
    } else if (key == "command" && value.isArray()) {
      for (const JsonValue& word : value.items()) {
        if (!word.text()) return fail(damaged(name, "its command is not a list of words"));
        tool.command.push_back(*word.text());
      }
    } else if (key == "policy" && value.isObject()) {
      policy = value;
    } else {
      return fail(damaged(name, "its entry has an unknown key or a value of the wrong type"));
    }
  }
  if (!object->find("format_version") || tool.name != name || !policy)
    return fail(damaged(name, "its entry lacks its format, its name or its policy"));
  if (auto checked = checkName(tool.name); !checked) return fail(checked.error());
  if (auto checked = checkTemplate(tool.command); !checked) return fail(checked.error());
  auto decoded = readPolicy(policy->written(), name);
  if (!decoded) return fail(decoded.error());
  tool.policy = std::move(*decoded);
  return tool;
}

std::string writeTool(const Tool& tool) {
  JsonWriter json;
  json.beginObject().key("format_version").number(kFormat).key("name").string(tool.name);
  json.key("description").string(tool.description).key("command").strings(tool.command);
  json.key("policy").raw(policy::toJson(tool.policy)).end();
  const auto object = JsonValue::parse(json.text());
  return (object ? object->indented() : json.text()) + "\n";
}

Result<Registry> Registry::open() {
  auto directory = sys::openStateDirectory(kDirectory);
  if (!directory) return fail(directory.error());
  auto root = sys::RootDir::adopt(std::move(*directory), {.known_as = sys::stateHome() + "/" + kDirectory});
  if (!root) return fail(root.error());
  return Registry(std::move(*root));
}

Result<void> Registry::add(const Tool& tool) const {
  if (auto checked = checkName(tool.name); !checked) return checked;
  if (auto checked = checkTemplate(tool.command); !checked) return checked;
  if (tool.description.size() > kMaxDescription)
    return fail(plainError(Stage::usage, "tool add", tool.name, "the description is too long", "4096 bytes at most"));
  const std::string text = writeTool(tool);
  if (text.size() > kMaxFile)
    return fail(plainError(Stage::usage, "tool add", tool.name, "the declaration is too long", "use a script"));
  // Read it back: bytes that JSON cannot represent or a policy above the ceilings must fail now, not later.
  auto again = readTool(text, tool.name);
  if (!again) return fail(again.error());
  if (again->command != tool.command || again->description != tool.description)
    return fail(plainError(Stage::usage, "tool add", tool.name, "the declaration holds bytes that are not UTF-8", ""));
  auto file = directory_.openFile(fileOf(tool.name), {.flags = O_WRONLY | O_CREAT | O_EXCL, .mode = 0600});
  if (!file) {
    if (file.error().sys_errno != EEXIST) return fail(file.error());
    return fail(plainError(Stage::usage, "tool add", tool.name, "there is a tool of this name already",
                           "caisson tool remove " + tool.name + ", or another name"));
  }
  if (auto written = directory_.writeFileAtomic(fileOf(tool.name), text, 0600); !written) {
    (void)directory_.remove(fileOf(tool.name));
    return written;
  }
  return {};
}

Result<std::optional<Tool>> Registry::find(std::string_view name) const {
  if (auto checked = checkName(name); !checked) return fail(checked.error());
  const auto text = directory_.readFile(fileOf(name), kMaxFile);
  if (!text) {
    if (text.error().sys_errno == ENOENT) return std::nullopt;
    return fail(text.error());
  }
  auto tool = readTool(*text, name);
  if (!tool) return fail(tool.error());
  return std::optional<Tool>(std::move(*tool));
}

Result<Registry::Listing> Registry::list() const {
  const auto entries = directory_.list("");
  if (!entries) return fail(entries.error());
  Listing listing;
  for (const auto& entry : *entries) {
    if (!entry.name.ends_with(kEnding)) continue;
    auto tool = find(std::string_view(entry.name).substr(0, entry.name.size() - kEnding.size()));
    if (!tool) {
      listing.damaged.push_back(tool.error());
    } else if (*tool) {
      listing.tools.push_back(**std::move(tool));
    }
  }
  return listing;
}

Result<bool> Registry::remove(std::string_view name) const {
  if (auto checked = checkName(name); !checked) return fail(checked.error());
  if (const auto there = directory_.stat(fileOf(name)); !there) {
    if (there.error().sys_errno == ENOENT) return false;
    return fail(there.error());
  }
  if (auto removed = directory_.remove(fileOf(name)); !removed) return fail(removed.error());
  return true;
}

}  // namespace caisson::tool
