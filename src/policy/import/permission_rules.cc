#include "policy/import/permission_rules.h"

#include <algorithm>
#include <array>

#include "policy/decode/syntax.h"

namespace caisson::policy {

namespace {

using RuleNote = ImportNote::Kind;

/// "Edit(src)": a tool and what it may be used for.
struct PermissionRule {
  std::string text, tool, argument;
  bool complete = false;  ///< every parenthesis is closed
};

PermissionRule parseRule(const std::string& text) {
  PermissionRule rule{.text = text, .tool = text, .argument = "", .complete = true};
  const std::size_t open = text.find('(');
  if (open == std::string::npos) return rule;
  rule.tool.resize(open);
  rule.complete = text.ends_with(')');
  if (rule.complete) rule.argument = text.substr(open + 1, text.size() - open - 2);
  return rule;
}

bool editsFiles(const PermissionRule& rule) {
  constexpr std::array kTools = {"MultiEdit", "NotebookEdit"};
  if (rule.tool == "Edit" || rule.tool == "Write") return true;
  return !rule.argument.empty() && std::ranges::find(kTools, rule.tool) != kTools.end();
}

bool readsFiles(const PermissionRule& rule, bool denied) {
  constexpr std::array kTools = {"Glob", "Grep", "LS", "NotebookRead"};
  if (rule.tool == "Read") return true;
  return denied && !rule.argument.empty() && std::ranges::find(kTools, rule.tool) != kTools.end();
}

/// A name without a directory matches at every depth, as in a .gitignore.
std::string atEveryDepth(const std::string& pattern) {
  const std::size_t slash = pattern.find('/');
  const bool whole = pattern == "." || pattern == ".." || pattern.find_first_not_of("*/") == std::string::npos;
  const bool name = slash == std::string::npos || slash + 1 == pattern.size();
  return (name && !whole ? "**/" : "") + pattern;
}

/// Converts the path of a rule: "//x" is of the host, "/x" of the project, "~/x" of the home, "x" of the current
/// directory. Project and current directory are the workspace. None if the rule has none that can be converted.
ImportBuilder::Texts convertPath(ImportBuilder& in, std::string_view key, const PermissionRule& rule, bool denied) {
  if (!rule.complete || rule.argument.starts_with('!')) return {};
  std::string path = denied ? rule.argument : withoutAllBelow(rule.argument);
  if (rule.argument.empty() || rule.argument == "*" || rule.argument == "**")
    return denied ? ImportBuilder::Texts{"."} : ImportBuilder::Texts{};
  if (rule.argument.starts_with("//")) return {path.starts_with("//") ? path.substr(1) : "/"};
  if (path == "~" || path.starts_with("~/")) return {path};
  if (path.starts_with('/')) {
    in.note(RuleNote::lossy, key, rule.text + " is for a path of the workspace; \"//\" begins one of the host");
    const std::string below = path.substr(std::min(path.find_first_not_of('/'), path.size()));
    ImportBuilder::Texts paths{below.empty() ? "." : "./" + below};
    // Whoever writes the workspace's own path after a single slash means that path: both stay denied.
    const std::string host = normalPath(path);
    const bool names_workspace = !in.workspace().empty() && isWithin(host, in.workspace());
    if (denied && (names_workspace || isWithin(host, "/workspace"))) paths.push_back(path);
    return paths;
  }
  while (path.starts_with("./")) path.erase(0, 2);
  if (path.empty()) path = ".";
  return {denied ? atEveryDepth(path) : path};
}

}  // namespace

PermissionRules takePermissionRules(ImportBuilder& in, std::string_view key, bool denied) {
  PermissionRules rules;
  for (const std::string& text : in.reader().texts(key)) {
    const PermissionRule rule = parseRule(text);
    const bool edits = editsFiles(rule);
    const ImportBuilder::Texts paths =
        edits || readsFiles(rule, denied) ? convertPath(in, key, rule, denied) : ImportBuilder::Texts{};
    if (rule.tool == "WebFetch" && rule.argument.starts_with("domain:")) {
      rules.domains.push_back(rule.argument.substr(7));
    } else if (rule.tool == "WebFetch" && rule.complete && rule.argument.empty() && denied) {
      rules.domains.emplace_back("*");
    } else if (paths.empty()) {
      in.note(RuleNote::lossy, key, text + " has no counterpart here");
    } else {
      ImportBuilder::Texts& list = edits ? rules.writes : rules.reads;
      list.insert(list.end(), paths.begin(), paths.end());
    }
  }
  return rules;
}

}  // namespace caisson::policy
