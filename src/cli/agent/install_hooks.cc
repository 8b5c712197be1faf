#include "cli/agent/install_hooks.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>

#include "cli/agent/hook.h"
#include "cli/agent/verbs.h"
#include "cli/approval.h"
#include "cli/companion.h"
#include "cli/output.h"
#include "cli/policy_flags.h"
#include "cli/safe_text.h"
#include "mcp/hook_install.h"
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
  file.shown = (host.below_home ? std::string(home) + "/" : "./") + file.path;
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

int writeFile(const mcp::HookHost& host, const HookFile& file, const std::string& after, bool without_asking) {
  const std::string change = linesOnlyIn(file.text, after, "  - ") + linesOnlyIn(after, file.text, "  + ");
  if (const int failed = print(std::string(host.title) + ": " + file.shown + "\n" + change); failed != 0) return failed;
  if (!without_asking && ::isatty(STDIN_FILENO) != 1)
    return complain(usageError("agent install", "cannot ask for confirmation: standard input is not a terminal",
                               "add --yes to write it without asking"));
  if (!without_asking && !askOwner("caisson: write it? [y/N] ")) return print("nothing was changed\n");
  if (auto made = file.base.makeDirs(host.directory, 0755); !made) return complain(made.error());
  const auto info = file.base.stat(file.path);
  if (auto written = file.base.writeFileAtomic(file.path, after, info ? info->mode & 0777U : 0644); !written)
    return complain(written.error());
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
  if (auto policy = policyFrom(arguments); !policy) return complain(policy.error());  // a mistake would block the agent
  if (auto lasting = checkNotInCache(program); !lasting && host.below_home) return complain(lasting.error());
  const auto file = openFile(host);
  if (!file) return complain(file.error());
  const auto after = mcp::withHooks(host, file->text, callOf(host, program, arguments));
  if (!after) return complain(after.error());
  if (*after == file->text) return print(file->shown + " has the hooks already\n");
  const int failed = writeFile(host, *file, *after, arguments.has(kAgentYes));
  if (failed != 0) return failed;
  if (!host.remark.empty()) tell(host.remark);
  if (!host.below_home) tell("the file names `caisson` without a path: it must be in the agent's PATH");
  return print("written; start the agent again to load it\n");
}

int uninstall(const mcp::HookHost& host, const Arguments& arguments) {
  const auto file = openFile(host);
  if (!file) return complain(file.error());
  const auto after = mcp::withoutHooks(host, file->text);
  if (!after) return complain(after.error());
  if (*after == file->text) return print(file->shown + " has no hooks of caisson\n");
  const int failed = writeFile(host, *file, *after, arguments.has(kAgentYes));
  return failed != 0 ? failed : print("removed; start the agent again\n");
}

}  // namespace

int installHooks(std::span<char* const> line) {
  const bool installs = std::string_view(line[2]) == "install";
  const auto arguments = parse((installs ? kAgentInstall : kAgentUninstall).syntax, line.subspan(3));
  if (!arguments) return complain(arguments.error());
  const std::string_view name = arguments->operands.empty() ? "" : arguments->operands[0];
  const mcp::HookHost* host = mcp::findHookHost(name);
  if (host == nullptr) {
    std::string names;
    for (const mcp::HookHost& known : mcp::kHookHosts) names += (names.empty() ? "" : ", ") + std::string(known.name);
    return complain(usageError(name, "unknown agent; there are " + names, "caisson agent install claude-code"));
  }
  return installs ? install(*host, line[0], *arguments) : uninstall(*host, *arguments);
}

}  // namespace caisson::cli
