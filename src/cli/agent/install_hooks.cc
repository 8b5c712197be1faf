#include "cli/agent/install_hooks.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/path_text.h"
#include "base/shell_quote.h"
#include "cli/agent/hook.h"
#include "cli/agent/verbs.h"
#include "cli/approval.h"
#include "cli/companion.h"
#include "cli/output.h"
#include "cli/policy_flags.h"
#include "cli/safe_text.h"
#include "mcp/hook_install.h"
#include "policy/document/document.h"
#include "sys/root_dir.h"

namespace caisson::cli {
namespace {

constexpr std::uint64_t kLargestFile = std::uint64_t{4} << 20U;

struct HookFile {
  sys::RootDir base;
  std::string path;   ///< below the base
  std::string shown;  ///< for messages
  std::string text;   ///< empty if there is no file
};

Result<HookFile> openFile(const mcp::HookHost& host) {
  const char* home = std::getenv("HOME");
  if (host.below_home && (home == nullptr || *home != '/'))
    return fail(usageError("agent install", "HOME is not set", "set it to your home directory"));
  auto base = sys::RootDir::open(host.below_home ? home : ".");
  if (!base) return fail(base.error());
  HookFile file{.base = std::move(*base), .path = std::string(host.directory) + "/" + std::string(host.file)};
  file.shown = (host.below_home ? displayedPath(home) + "/" : "./") + file.path;
  const auto info = file.base.stat(file.path);
  if (!info && (info.error().sys_errno == ENOENT || info.error().sys_errno == ENOTDIR)) return file;
  if (!info) return fail(info.error());
  if (info->type == sys::FileType::link)
    return fail(
        usageError(file.shown, "it is a link; writing would replace it", "change the file it points to by hand"));
  auto text = file.base.readFile(file.path, kLargestFile);
  if (!text) return fail(text.error());
  file.text = *std::move(text);
  return file;
}

/// Refuses where Claude Code would not run the hook. It reads these files, and one of them is enough.
Result<void> checkHooksEnabled(const mcp::HookHost& host) {
  if (host.hook != "claude-code") return {};
  const char* home = std::getenv("HOME");
  std::vector<std::string> files;
  if (home != nullptr) files.push_back(std::string(home) + "/.claude/settings.json");
  files.insert(files.end(), {"./.claude/settings.json", "./.claude/settings.local.json"});
  for (const std::string& file : files) {
    const auto text = policy::readRegularFile(file);
    if (text && mcp::disablesHooks(*text))
      return fail(usageError(file, "`disableAllHooks` in it switches the hook off", "remove it from the file first"));
  }
  return {};
}

/// The lines of `one` that `other` does not have, with a mark before each.
std::string linesOnlyIn(std::string_view one, std::string_view other, std::string_view mark) {
  std::string shown;
  while (!one.empty()) {
    const std::size_t end = std::min(one.find('\n'), one.size());
    const std::string line(one.substr(0, end));
    one.remove_prefix(std::min(end + 1, one.size()));
    if (other.find(line) == std::string_view::npos) shown += std::string(mark) + safeLine(line) + "\n";
  }
  return shown;
}

/// The mode of a new file: --env may have put a secret into it. A project's file is as the umask says, for others use
/// it.
unsigned modeOfNew(const mcp::HookHost& host) {
  if (host.below_home) return 0600;
  const mode_t mask = ::umask(077);
  ::umask(mask);
  return 0666U & ~mask;
}

int writeFile(std::string_view verb, const mcp::HookHost& host, const HookFile& file, const std::string& after,
              bool without_asking) {
  const std::string change = linesOnlyIn(file.text, after, "  - ") + linesOnlyIn(after, file.text, "  + ");
  const std::string list = std::string(host.title) + ": " + file.shown + "\n" + change;
  if (without_asking || ::isatty(STDIN_FILENO) != 1 || ::isatty(STDOUT_FILENO) != 1) {
    if (const int failed = print(list); failed != 0) return failed;
  }
  if (!without_asking && ::isatty(STDIN_FILENO) != 1)
    return printError(usageError("agent " + std::string(verb),
                                 "cannot ask for confirmation: standard input is not a terminal",
                                 "add --yes to write it without asking"));
  if (!without_asking && !askOwnerAbout(list, "caisson: write it? [y/N] "))
    return printError(usageError("agent " + std::string(verb),
                                 "needs an owner's yes on a terminal, which was not given", "nothing was changed"));
  if (auto made = file.base.makeDirs(host.directory, host.below_home ? 0700 : 0755); !made)
    return printError(made.error());
  // The agent may have written its file while the question was open.
  const auto meanwhile = openFile(host);
  if (!meanwhile) return printError(meanwhile.error());
  if (meanwhile->text != file.text)
    return printError(usageError(file.shown, "it changed meanwhile, so nothing was written", "run the command again"));
  const auto info = file.base.stat(file.path);
  if (auto written = file.base.writeFileAtomic(file.path, after, info ? info->mode & 0777U : modeOfNew(host)); !written)
    return printError(written.error());
  return 0;
}

/// The command line of the hook. A project's file is shared with other machines, so it has no path of this one.
std::string callOf(const mcp::HookHost& host, std::string_view program, const Arguments& arguments) {
  std::string call = host.below_home ? shellQuoted(program) : "caisson";
  call += " agent hook " + std::string(host.hook);
  for (const Given& given : arguments.given) {
    if (given.option->name == kAgentYes.name) continue;
    std::string flag = "--" + std::string(given.option->name);
    if (!given.option->value.empty()) flag += "=" + std::string(given.value);
    call += " " + shellQuoted(flag);
  }
  return call;
}

int install(const mcp::HookHost& host, std::string_view program, const Arguments& arguments) {
  // A mistake would block the agent.
  const auto policy = policyFrom(arguments);
  if (!policy) return printError(policy.error());
  if (auto checked = checkForSession(arguments, policy->model()); !checked) return printError(checked.error());
  if (auto lasting = checkNotInCache(program); !lasting && host.below_home) return printError(lasting.error());
  if (auto enabled = checkHooksEnabled(host); !enabled) return printError(enabled.error());
  const auto file = openFile(host);
  if (!file) return printError(file.error());
  const auto after = mcp::withHooks(host, file->text, callOf(host, program, arguments));
  if (!after) return printError(after.error());
  if (*after == file->text) return print(file->shown + " has the hooks already\n");
  const int failed = writeFile("install", host, *file, *after, arguments.has(kAgentYes));
  if (failed != 0) return failed;
  if (!host.remark.empty()) printNotice(host.remark);
  if (!host.below_home) printNotice("the file names `caisson` without a path: it must be in the agent's PATH");
  return print("written; start the agent again to load it\n");
}

int uninstall(const mcp::HookHost& host, const Arguments& arguments) {
  const auto file = openFile(host);
  if (!file) return printError(file.error());
  const auto after = mcp::withoutHooks(host, file->text);
  if (!after) return printError(after.error());
  if (*after == file->text) return print(file->shown + " has no hooks of caisson\n");
  const int failed = writeFile("uninstall", host, *file, *after, arguments.has(kAgentYes));
  return failed != 0 ? failed : print("removed; start the agent again\n");
}

}  // namespace

int installHooks(std::span<char* const> line) {
  const bool installs = std::string_view(line[2]) == "install";
  const auto arguments = parse((installs ? kAgentInstall : kAgentUninstall).syntax, line.subspan(3));
  if (!arguments) return printError(arguments.error());
  const std::string_view name = arguments->operands.empty() ? "" : arguments->operands[0];
  const mcp::HookHost* host = mcp::findHookHost(name);
  if (host == nullptr) {
    std::string names;
    for (const mcp::HookHost& known : mcp::kHookHosts) names += (names.empty() ? "" : ", ") + std::string(known.name);
    return printError(usageError(name, "unknown agent; there are " + names, "caisson agent install claude-code"));
  }
  return installs ? install(*host, line[0], *arguments) : uninstall(*host, *arguments);
}

}  // namespace caisson::cli
