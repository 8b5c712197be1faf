#include "cli/commands/mcp_install.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>

#include "cli/options.h"
#include "cli/output.h"
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

bool saysYes() {
  tell("write it? [y/N]");
  char answer = 0;
  return ::read(STDIN_FILENO, &answer, 1) == 1 && (answer == 'y' || answer == 'Y');
}

Result<sys::RootDir> baseOf(const mcp::AgentHost& host) {
  const char* home = std::getenv("HOME");
  if (host.below_home && (home == nullptr || *home != '/'))
    return fail(usageError("mcp install", "HOME is not set", "set it to your home directory"));
  return sys::RootDir::open(host.below_home ? home : ".", {.known_as = host.below_home ? home : ""});
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

int installInHost(std::string_view name, bool without_asking, const std::string& program) {
  const mcp::AgentHost* host = mcp::findAgentHost(name);
  if (host == nullptr)
    return complain(usageError(name, "unknown host; there are " + hostNames(), "caisson mcp install claude-code"));
  const auto base = baseOf(*host);
  if (!base) return complain(base.error());
  const std::string directory(host->directory);
  const std::string path = (directory.empty() ? "" : directory + "/") + std::string(host->file);
  const auto before = currentText(*base, path);
  if (!before) return complain(before.error());
  const auto after = mcp::withEntry(*host, *before, program);
  if (!after) return complain(after.error());
  const std::string shown_path = (host->below_home ? std::string(std::getenv("HOME")) + "/" : "./") + path;
  if (*after == *before) return print(shown_path + " has the entry already\n");
  if (const int failed = print(std::string(host->title) + ": " + shown_path + "\n" + addedLines(*before, *after));
      failed != 0)
    return failed;
  if (!without_asking) {
    if (::isatty(STDIN_FILENO) != 1)
      return complain(
          usageError("mcp install", "there is no terminal to ask on", "add --yes to write it without asking"));
    if (!saysYes()) return print("nothing was changed\n");
  }
  if (!directory.empty()) {
    if (auto made = base->makeDirs(directory, 0700); !made) return complain(made.error());
  }
  const auto info = base->stat(path);
  if (auto written = base->writeFileAtomic(path, *after, info ? info->mode & 0777U : 0600); !written)
    return complain(written.error());
  return print("written; start the host again to load it\n");
}

}  // namespace caisson::cli
