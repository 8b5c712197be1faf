#include "cli/commands/mcp_install.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/path_text.h"
#include "cli/approval.h"
#include "cli/commands/mcp_options.h"
#include "cli/companion.h"
#include "cli/output.h"
#include "cli/policy_flags.h"
#include "cli/safe_text.h"
#include "mcp/install.h"
#include "sys/root_dir.h"

namespace caisson::cli {
namespace {

constexpr std::uint64_t kLargestConfiguration = std::uint64_t{4} << 20U;

std::string hostNames() {
  std::string names;
  for (const mcp::AgentHost& host : mcp::agentHosts()) names += (names.empty() ? "" : ", ") + std::string(host.name);
  return names;
}

/// Returns the marked lines that `after` has and `before` has not. Only these are shown: the configuration may be long.
std::string addedLines(std::string_view before, std::string_view after) {
  std::string shown;
  while (!after.empty()) {
    const std::size_t end = std::min(after.find('\n'), after.size());
    const std::string line(after.substr(0, end));
    after.remove_prefix(std::min(end + 1, after.size()));
    if (before.find(line + "\n") == std::string_view::npos) shown += "  + " + safeLine(line) + "\n";
  }
  return shown;
}

/// Where the entry goes.
struct Target {
  const mcp::AgentHost* host = nullptr;
  mcp::HostFile file;
  bool project = false;
};

Result<Target> targetOf(const Arguments& arguments) {
  const std::string_view name = arguments.operands[1];
  const mcp::AgentHost* host = mcp::findAgentHost(name);
  if (host == nullptr)
    return fail(usageError(name, "unknown host; there are " + hostNames(), "caisson mcp install claude-code"));
  const auto scope = arguments.value(kMcpScope);
  const bool project = scope ? *scope == "project" : host->project_first;
  const mcp::HostFile file = project ? host->project : host->user;
  if (file.file.empty())
    return fail(usageError("--scope " + std::string(*scope), std::string(host->title) + " has no such configuration",
                           "leave out --scope"));
  return Target{host, file, project};
}

Result<sys::RootDir> baseOf(const Target& target) {
  const char* home = std::getenv("HOME");
  if (!target.project && (home == nullptr || *home != '/'))
    return fail(usageError("mcp install", "HOME is not set", "set it to your home directory"));
  return sys::RootDir::open(target.project ? "." : home, {.known_as = target.project ? "" : home});
}

/// A path as the host needs it: absolute in the user's file; in a project's file relative to the project, or behind the
/// variable that the host replaces.
Result<std::string> pathFor(const Target& target, std::string_view path) {
  std::error_code problem;
  const std::filesystem::path absolute = std::filesystem::weakly_canonical(path, problem);
  if (problem) return fail(sysError(Stage::usage, "mcp install", path, problem.value()));
  if (!target.project) return absolute.string();
  const auto here = std::filesystem::current_path(problem);
  const std::string relative = problem ? ".." : absolute.lexically_relative(here).string();
  if (relative == ".." || relative.starts_with("../"))
    return fail(usageError(path, "it is outside of this project, whose file names no path of this machine",
                           "use a path inside the project, or --scope user"));
  if (target.host->folder.empty()) return relative;
  return std::string(target.host->folder) + (relative == "." ? "" : "/" + relative);
}

/// A flag's value with its path changed to what the host needs.
Result<std::string> valueFor(const Target& target, const Given& given) {
  const std::string_view name = given.option->name;
  if (name == "workspace") {
    const auto parts = splitWorkspace(given.value);
    if (!parts) return fail(parts.error());
    if (parts->mode == "none") return std::string(given.value);
    auto path = pathFor(target, parts->directory.empty() ? "." : parts->directory);
    if (!path) return path;
    return *path + (parts->mode.empty() ? "" : ":" + std::string(parts->mode));
  }
  const bool image = name == "image" && (given.value.starts_with('/') || given.value.starts_with('.'));
  if (name == "policy" || name == "ro" || name == "rw" || image) {
    auto path = pathFor(target, given.value);
    // A relative root begins with a dot; other texts are names of images.
    if (path && image && target.project && target.host->folder.empty()) return "./" + *path;
    return path;
  }
  return std::string(given.value);
}

/// The command line of the entry.
Result<std::vector<std::string>> lineFor(const Target& target, const Arguments& arguments, const std::string& program) {
  if (auto lasting = checkNotInCache(program); !lasting && !target.project) return fail(lasting.error());
  std::vector<std::string> line{target.project ? "caisson" : program, "mcp"};
  bool workspace = false;
  for (const Given& given : arguments.given) {
    const std::string_view name = given.option->name;
    if (name == kMcpYes.name || name == kMcpScope.name) continue;
    if (name == kMcpHttp.name || name == kMcpWithoutToken.name)
      return fail(usageError("--" + std::string(name), "the host starts the server on standard input and output",
                             "leave it out"));
    workspace = workspace || name == kMcpWorkspace.name;
    line.push_back("--" + std::string(name));
    if (given.option->value.empty()) continue;
    auto value = valueFor(target, given);
    if (!value) return fail(value.error());
    line.back() += "=" + *value;
  }
  // These hosts start servers in any directory.
  if (!workspace && target.project && !target.host->folder.empty())
    line.push_back("--workspace=" + std::string(target.host->folder));
  return line;
}

Result<std::string> currentText(const sys::RootDir& base, const std::string& path) {
  const auto info = base.stat(path);
  if (!info)
    return info.error().sys_errno == ENOENT || info.error().sys_errno == ENOTDIR ? Result<std::string>("")
                                                                                 : fail(info.error());
  if (info->type == sys::FileType::link)
    return fail(usageError(path, "it is a link; writing would replace it", "change the file it points to by hand"));
  return base.readFile(path, kLargestConfiguration);
}

}  // namespace

int installInHost(const Arguments& arguments, const std::string& program) {
  const auto target = targetOf(arguments);
  if (!target) return printError(target.error());
  const mcp::AgentHost& host = *target->host;
  const auto line = lineFor(*target, arguments, program);
  if (!line) return printError(line.error());
  const auto base = baseOf(*target);
  if (!base) return printError(base.error());
  const std::string directory(target->file.directory);
  const std::string path = (directory.empty() ? "" : directory + "/") + std::string(target->file.file);
  const auto before = currentText(*base, path);
  if (!before) return printError(before.error());
  const auto after = mcp::withEntry(host, *before, *line);
  if (!after) return printError(after.error());
  const std::string shown_path = (target->project ? "./" : displayedPath(std::getenv("HOME")) + "/") + path;
  if (*after == *before) return print(shown_path + " has the entry already\n");
  const std::string title = std::string(host.title) + (target->project ? " (this project)" : "");
  const std::string list = title + ": " + shown_path + "\n" + addedLines(*before, *after);
  if (arguments.has(kMcpYes) || ::isatty(STDIN_FILENO) != 1 || ::isatty(STDOUT_FILENO) != 1) {
    if (const int failed = print(list); failed != 0) return failed;
  }
  if (!arguments.has(kMcpYes)) {
    if (::isatty(STDIN_FILENO) != 1)
      return printError(
          usageError("mcp install", "there is no terminal to ask on", "add --yes to write it without asking"));
    if (!askOwnerAbout(list, "caisson: write it? [y/N] "))
      return printError(
          usageError("mcp install", "needs an owner's yes on a terminal, which was not given", "nothing was changed"));
  }
  if (!directory.empty()) {
    if (auto made = base->makeDirs(directory, 0700); !made) return printError(made.error());
  }
  // The host may have written its file while the question was open.
  const auto meanwhile = currentText(*base, path);
  if (!meanwhile) return printError(meanwhile.error());
  if (*meanwhile != *before)
    return printError(usageError(shown_path, "it changed meanwhile, so nothing was written", "run the command again"));
  const auto info = base->stat(path);
  if (auto written = base->writeFileAtomic(path, *after, info ? info->mode & 0777U : 0600); !written)
    return printError(written.error());
  return print("written; start the host again to load it\n");
}

}  // namespace caisson::cli
