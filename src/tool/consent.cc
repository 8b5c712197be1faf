#include "tool/consent.h"

#include <sys/stat.h>

#include <algorithm>

#include "approval/store.h"
#include "base/text.h"
#include "policy/rules/shells.h"
#include "sys/program_file.h"

namespace caisson::tool {
namespace {

constexpr std::string_view kProgramPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
constexpr int kMaxInterpreters = 4;

/// Whether this file is a shell, or a script that a shell runs, regardless of its name.
bool isShell(std::string_view program) {
  std::string name(program);
  for (int depth = 0; depth < kMaxInterpreters && !name.empty(); ++depth) {
    if (policy::isShellName(name)) return true;
    const std::string file = sys::locateProgram(name, kProgramPath);
    if (file.empty()) return false;
    if (policy::isShellName(file)) return true;
    for (const std::string_view shell : policy::shellNames()) {
      const std::string known = sys::locateProgram(shell, kProgramPath);
      if (!known.empty() && sys::sameProgram(file, known)) return true;
    }
    name = sys::scriptInterpreter(file);
  }
  return !name.empty();  // too deeply nested scripts: assume a shell
}

/// Whether an entry of an allowlist is a directory: every program below it may be started, now or later a shell.
bool isDirectory(const std::string& entry) {
  struct stat status;
  return entry.starts_with('/') && ::stat(entry.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

bool canBeShell(const Tool& tool) {
  if (isShell(tool.command.front()) || policy::canStartShell(tool.policy)) return true;
  const auto& allowed = tool.policy.process.allowed_executables;
  if (!tool.policy.process.allow_exec || !allowed) return false;
  return std::ranges::any_of(*allowed, [](const std::string& entry) { return isShell(entry) || isDirectory(entry); });
}

std::string listOf(const std::vector<std::string>& hosts) { return hosts.empty() ? "no host by name" : joined(hosts); }

std::string_view levelName(policy::Level level) {
  switch (level) {
    case policy::Level::none: return "none";
    case policy::Level::process: return "process";
    case policy::Level::full: return "full";
  }
  return "";
}

}  // namespace

std::vector<std::string> needsConsent(const Tool& tool) {
  std::vector<std::string> reasons;
  const policy::Isolation& isolation = tool.policy.isolation;
  const bool may_lack_namespaces = isolation.tier == policy::Tier::landlock ||
                                   std::ranges::count(isolation.may_be_missing, policy::OptionalLayer::landlock) > 0;
  const bool below_full = isolation.level != policy::Level::full || may_lack_namespaces;
  if (below_full && canBeShell(tool)) {
    reasons.push_back("it can run a shell below level full (level " + std::string(levelName(isolation.level)) +
                      (may_lack_namespaces ? ", without namespaces)" : ")"));
  }
  const policy::Network& network = tool.policy.network;
  if (network.mode == policy::NetworkMode::host) reasons.emplace_back("it has the host's own network");
  if (network.mode == policy::NetworkMode::proxy)
    reasons.push_back("it reaches the network through the egress filter: " + listOf(network.allowed_hosts));
  if (network.mode != policy::NetworkMode::none && !network.private_hosts.empty())
    reasons.push_back("it reaches hosts inside your network: " + listOf(network.private_hosts));
  if (!network.host_ports.empty())
    reasons.push_back("it reaches services of this machine: ports " + listOf(network.host_ports));
  if (!network.published_ports.empty())
    reasons.push_back("it opens ports on this machine: " + listOf(network.published_ports));
  return reasons;
}

std::string consentFor(const Tool& tool) { return "tool:" + tool.name; }

Result<void> checkConsent(const Tool& tool, std::int64_t now) {
  const std::vector<std::string> reasons = needsConsent(tool);
  if (reasons.empty()) return {};
  auto store = approval::Store::open();
  if (!store) return fail(store.error());
  const std::string what = consentFor(tool);
  const auto given = store->redeem(what, "", now);
  if (!given) return fail(given.error());
  if (*given) return {};
  return fail(plainError(Stage::policy, "tool", tool.name,
                         "needs an owner's approval, which was not given or was taken back: " + reasons.front(),
                         "on a terminal: caisson approvals grant " + what + " --for 8h"));
}

Result<void> keepConsent(const Tool& tool, std::string by, std::int64_t now) {
  auto store = approval::Store::open();
  if (!store) return fail(store.error());
  const auto granted = store->grant({.what = consentFor(tool),
                                     .scope = approval::Scope::timed,
                                     .expires = now + approval::kMaxValidSeconds,
                                     .by = std::move(by)},
                                    now);
  if (!granted) return fail(granted.error());
  return {};
}

Result<void> dropConsent(std::string_view name, std::int64_t now) {
  auto store = approval::Store::open();
  if (!store) return fail(store.error());
  const auto approvals = store->list(now);
  if (!approvals) return fail(approvals.error());
  const std::string what = "tool:" + std::string(name);
  for (const approval::Approval& one : *approvals) {
    if (one.what != what) continue;
    if (auto revoked = store->revoke(one.id, now); !revoked) return fail(revoked.error());
  }
  return {};
}

}  // namespace caisson::tool
