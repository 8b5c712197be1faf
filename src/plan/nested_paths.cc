#include "plan/nested_paths.h"

#include <algorithm>

#include "plan/workspace.h"

namespace caisson::plan {

std::vector<PathRule> pathRules(const HostFacts& host) {
  std::vector<PathRule> rules;
  for (const auto* list : {&host.read_only, &host.read_write}) {
    for (const HostPath& path : *list) {
      const auto same = [&](const PathRule& rule) { return rule.path->path == path.path; };
      if (path.sys_errno == 0 && std::ranges::none_of(rules, same)) rules.push_back({&path, list == &host.read_write});
    }
  }
  std::ranges::sort(rules, {}, [](const PathRule& rule) -> const std::string& { return rule.path->path; });
  return rules;
}

const PathRule* deepestRule(const std::vector<PathRule>& rules, std::string_view path) {
  const PathRule* deepest = nullptr;  // sorted: a later one that contains the path lies deeper
  for (const PathRule& rule : rules) {
    if (below(path, rule.path->path)) deepest = &rule;
  }
  return deepest;
}

std::string ShownTree::inside(std::string_view relative) const {
  if (relative.empty()) return target_;
  return (target_ == "/" ? "" : target_) + "/" + std::string(relative);
}

TreeAccess ShownTree::accessAt(std::string_view relative) const {
  TreeAccess access = access_;
  for (const NestedRule& rule : rules_) {
    if (rule.relative.empty() || below(relative, rule.relative)) access = rule.access;
  }
  return access;
}

bool ShownTree::isDirect(std::string_view relative) const {
  return std::ranges::any_of(rules_,
                             [&](const NestedRule& rule) { return rule.direct && below(relative, rule.relative); });
}

bool ShownTree::isInProtected(std::string_view relative) const {
  return std::ranges::any_of(protected_, [&](const std::string& directory) {
    const auto opens = [&](const NestedRule& rule) {
      return rule.direct && below(rule.relative, directory) && below(relative, rule.relative);
    };
    return below(relative, directory) && std::ranges::none_of(rules_, opens);
  });
}

Bind ShownTree::itself(const std::string& relative, bool writable) const {
  return {.source = inside(relative),
          .target = inside(relative),
          .writable = writable,
          .executable = executable_,
          .inside = true,
          .canonical = true};
}

void ShownTree::mount(const std::string& relative, const Bind& bind, Plan& plan) {
  plan.steps.push_back(bind);
  mounted_.insert(relative);
}

void ShownTree::pinAbove(std::string_view relative, Plan& plan) {
  for (std::size_t slash = relative.find('/'); slash != std::string_view::npos; slash = relative.find('/', slash + 1)) {
    const std::string directory(relative.substr(0, slash));
    const std::size_t above = directory.rfind('/');
    const auto parent = std::string_view(directory).substr(0, above == std::string::npos ? 0 : above);
    if (accessAt(parent) == TreeAccess::ro || isInProtected(parent) || mounted_.contains(directory)) continue;
    mount(directory, itself(directory, true), plan);
  }
}

void ShownTree::protect(const std::string& relative, Plan& plan) {
  if (accessAt(relative) != TreeAccess::rw || isInProtected(relative)) return;
  const auto is_itself = [&](const NestedRule& rule) { return rule.relative == relative; };
  if (std::ranges::any_of(rules_, is_itself)) return;
  pinAbove(relative, plan);
  mount(relative, itself(relative, false), plan);
  protected_.insert(relative);
  // What is mounted in it is read-only now, too.
  std::erase_if(mounted_, [&](const std::string& one) { return one != relative && below(one, relative); });
  for (const NestedRule& rule : rules_) {
    if (!below(rule.relative, relative)) continue;
    pinAbove(rule.relative, plan);
    mount(rule.relative, rule.bind, plan);
  }
}

void ShownTree::add(const PathRule& rule, Plan& plan) {
  const std::string& path = rule.path->path;
  const std::string relative = path.size() > source_.size() ? path.substr(source_ == "/" ? 1 : source_.size() + 1) : "";
  const TreeAccess before = accessAt(relative);
  const TreeAccess wanted = rule.writable ? TreeAccess::rw : TreeAccess::ro;
  // The tree and a rule for the same path: the stricter one.
  if (before == wanted || (relative.empty() && wanted > before)) return;
  pinAbove(relative, plan);
  Bind bind = itself(relative, false);
  if (wanted == TreeAccess::rw) {
    bind = {.source = path,
            .target = inside(relative),
            .writable = true,
            .executable = executable_,
            .canonical = true,
            .type = rule.path->directory ? SourceType::directory : SourceType::file,
            .opened = rule.path->opened,
            .owned = plan.identity.maps_files};
    if (rule.path->directory) plan.written.push_back({path, rule.path->opened});
  }
  mount(relative, bind, plan);
  rules_.push_back({relative, wanted, std::move(bind), wanted == TreeAccess::rw});
}

Result<void> checkNestingForLandlock(const HostFacts& host, const std::string& workspace,
                                     std::optional<bool> workspace_writable) {
  const auto refuse = [](const std::string& read_only, const std::string& writable) {
    return fail(plainError(Stage::plan, "plan", read_only,
                           "it is read-only and lies in " + writable +
                               ", which is writable: Landlock cannot take a right away below a path that has it",
                           "show only the directories of " + writable + " that may be written, or use level full"));
  };
  for (const PathRule& writable : pathRules(host)) {
    if (!writable.writable) continue;
    const std::string& tree = writable.path->path;
    for (const PathRule& rule : pathRules(host)) {
      if (!rule.writable && below(rule.path->path, tree)) return refuse(rule.path->path, tree);
    }
    if (workspace_writable == false && below(workspace, tree) && workspace != tree) return refuse(workspace, tree);
  }
  if (workspace_writable != true) return {};
  for (const PathRule& rule : pathRules(host)) {
    if (!rule.writable && below(rule.path->path, workspace)) return refuse(rule.path->path, workspace);
  }
  return {};
}

}  // namespace caisson::plan
