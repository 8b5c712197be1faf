#include "session/commit/commit_filter.h"

#include <algorithm>
#include <vector>

namespace caisson::session {
namespace {

struct Rule {
  std::string_view name;  ///< a part of the path; a trailing `/` means a directory with all below
  std::string_view why;
};

constexpr std::string_view kShell = "shells read it when they start";
constexpr std::string_view kEditor = "editors run tasks from it";
constexpr std::string_view kAgent = "agents and their tool servers are configured by it";
constexpr std::string_view kCi = "build servers run it";
constexpr std::string_view kGit = "git runs programs that it names";
constexpr std::string_view kPackages = "package managers run programs that it names";
constexpr std::string_view kTools = "tools run commands from it when they start";

constexpr Rule kRules[] = {
    {".gitconfig", kGit},
    {".gitmodules", kGit},
    {".gitattributes", kGit},
    {".husky/", kGit},
    {".githooks/", kGit},
    {".pre-commit-config.yaml", kGit},
    {"lefthook.yml", kGit},
    {".lefthook.yml", kGit},
    {".hg/", "its version control runs hooks from it"},
    {".svn/", "its version control runs hooks from it"},
    {".vscode/", kEditor},
    {".idea/", kEditor},
    {".fleet/", kEditor},
    {".zed/", kEditor},
    {".devcontainer/", kEditor},
    {".devcontainer.json", kEditor},
    {".vimrc", kEditor},
    {".nvimrc", kEditor},
    {".nvim.lua", kEditor},
    {".exrc", kEditor},
    {".dir-locals.el", kEditor},
    {".emacs", kEditor},
    {".emacs.d/", kEditor},
    {".ideavimrc", kEditor},
    {".bashrc", kShell},
    {".bash_profile", kShell},
    {".bash_login", kShell},
    {".bash_logout", kShell},
    {".profile", kShell},
    {".zshrc", kShell},
    {".zshenv", kShell},
    {".zprofile", kShell},
    {".zlogin", kShell},
    {".kshrc", kShell},
    {".cshrc", kShell},
    {".tcshrc", kShell},
    {".envrc", kShell},
    {".direnv/", kShell},
    {".inputrc", kShell},
    {".tmux.conf", kTools},
    {".screenrc", kTools},
    {".gdbinit", kTools},
    {".lldbinit", kTools},
    {".pythonrc", kTools},
    {".pythonstartup", kTools},
    {"sitecustomize.py", kTools},
    {"usercustomize.py", kTools},
    {".irbrc", kTools},
    {".pryrc", kTools},
    {".mise.toml", kTools},
    {"mise.toml", kTools},
    {".tool-versions", kTools},
    {".claude/", kAgent},
    {".claude.json", kAgent},
    {"claude.md", kAgent},
    {"agents.md", kAgent},
    {".cursor/", kAgent},
    {".cursorrules", kAgent},
    {".codex/", kAgent},
    {".gemini/", kAgent},
    {"gemini.md", kAgent},
    {".windsurf/", kAgent},
    {".windsurfrules", kAgent},
    {".aider.conf.yml", kAgent},
    {".continue/", kAgent},
    {".roo/", kAgent},
    {".kiro/", kAgent},
    {".mcp.json", kAgent},
    {"mcp.json", kAgent},
    {".opencode/", kAgent},
    {"opencode.json", kAgent},
    {".github/", kCi},
    {".gitlab-ci.yml", kCi},
    {".gitlab/", kCi},
    {".circleci/", kCi},
    {".travis.yml", kCi},
    {".drone.yml", kCi},
    {".woodpecker/", kCi},
    {".woodpecker.yml", kCi},
    {".buildkite/", kCi},
    {".forgejo/", kCi},
    {".gitea/", kCi},
    {"jenkinsfile", kCi},
    {"azure-pipelines.yml", kCi},
    {"bitbucket-pipelines.yml", kCi},
    {"appveyor.yml", kCi},
    {".cirrus.yml", kCi},
    {".npmrc", kPackages},
    {".yarnrc", kPackages},
    {".yarnrc.yml", kPackages},
    {".yarn/", kPackages},
    {".pnpmfile.cjs", kPackages},
    {".pnp.cjs", kPackages},
    {".cargo/", kPackages},
    {".bundle/", kPackages},
    {"pip.conf", kPackages},
    {".pypirc", kPackages},
};

/// Of a git directory only this may change without a word: objects and references name no program.
constexpr std::string_view kPlainGit[] = {"objects",        "refs",       "logs",       "head",
                                          "index",          "orig_head",  "fetch_head", "packed-refs",
                                          "commit_editmsg", "merge_head", "shallow"};

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return result;
}

std::vector<std::string_view> partsOf(std::string_view path) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    if (end > begin) parts.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace

std::string_view whyHeld(std::string_view path) {
  const std::string folded = lower(path);
  const std::vector<std::string_view> parts = partsOf(folded);
  for (std::size_t at = 0; at < parts.size(); ++at) {
    const std::string_view part = parts[at];
    const bool last = at + 1 == parts.size();
    if (part == ".git") {
      const bool plain =
          !last && std::find(std::begin(kPlainGit), std::end(kPlainGit), parts[at + 1]) != std::end(kPlainGit);
      if (!plain) return kGit;
      continue;
    }
    for (const Rule& rule : kRules) {
      const bool directory = rule.name.ends_with('/');
      const std::string_view name = directory ? rule.name.substr(0, rule.name.size() - 1) : rule.name;
      if (part == name && (directory || last)) return rule.why;
    }
    if (last && part.ends_with(".code-workspace")) return kEditor;
  }
  return {};
}

bool leadsOut(std::string_view path, std::string_view target) {
  if (target.starts_with('/')) return true;
  long depth = static_cast<long>(partsOf(path).size()) - 1;
  for (const std::string_view part : partsOf(target)) {
    if (part == ".") continue;
    depth += part == ".." ? -1 : 1;
    if (depth < 0) return true;
  }
  return false;
}

}  // namespace caisson::session
