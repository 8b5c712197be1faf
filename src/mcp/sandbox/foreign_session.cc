#include "mcp/sandbox/foreign_session.h"

#include <algorithm>
#include <filesystem>

#include "approval/owner.h"
#include "approval/what.h"
#include "base/shell_quote.h"
#include "image/lookup.h"
#include "policy/decode/decode.h"
#include "policy/decode/syntax.h"
#include "policy/decode/widening.h"

namespace caisson::mcp {
namespace {

/// Keys in which no approval lets a session give more than a sandbox of this server. A variable that is passed on comes
/// from this server's environment, which has the keys of the agent host.
constexpr std::string_view kNeverWider[] = {
    "filesystem.read_write",
    "filesystem.workspace.show_secrets",
    "filesystem.workspace.show_files",
    "network.credentials",
    "network.host_ports",
    "network.private_hosts",
    "environment.mode",
    "environment.pass",
};

Excess foreignExcess(const std::string& reason, const std::string& remedy = "make one with sandbox_create") {
  return {"sandbox_id", "it was not made by this server, and " + reason, remedy};
}

bool isCompared(const OperatorBounds& bounds, std::string_view key) {
  if (key == "filesystem.workspace.path" || key == "filesystem.workspace.mode") return false;
  // Paths of the host that a sandbox shows beside its workspace.
  if (key == "filesystem.read_only" || key == "filesystem.read_write")
    if (bounds.workspaces || bounds.no_workspace) return true;
  if (std::ranges::find(bounds.keys, key) != bounds.keys.end()) return true;
  // Of these the user may have approved more for one sandbox.
  if (key.starts_with("network.")) return bounds.fixesNetwork();
  if (key == kFixedImage || key == kFixedUser) return bounds.whole;
  return bounds.whole || bounds.profile;
}

/// A session has the digest of its image, the operator may have named it otherwise.
void resolveImage(std::string& root) {
  if (root == "host" || root.starts_with('/')) return;
  if (const auto image = image::lookup(root)) root = image->manifest.text();
}

/// What commands of a sandbox can write to on the host; empty: nothing.
std::string writtenOnHost(const policy::Policy& policy, const std::string& workspace) {
  if (!workspace.empty() && policy.filesystem.workspace.mode == policy::WorkspaceMode::rw) return workspace;
  return policy.filesystem.read_write.empty() ? "" : policy.filesystem.read_write.front();
}

struct ComparedPolicies {
  policy::Policy expected;  ///< of a new sandbox of this server
  policy::Policy own;       ///< of the session
  /// Of a new sandbox with the built-in profile of the session's name, if a model can choose it.
  std::optional<policy::Policy> profile;
};

std::expected<ComparedPolicies, Excess> readPolicies(const OperatorBounds& bounds, const std::string& policy) {
  const auto unknown = foreignExcess("its policy can't be compared with the operator's");
  const auto base = bounds.policy("");
  auto expected = base ? approval::underOwner(base->model()) : fail(base.error());
  auto document = policy::readText(policy, policy::Format::json, "sandbox");
  if (!expected || !document) return std::unexpected(unknown);
  resolveImage(expected->filesystem.root);
  const policy::Ceilings none = approval::noCeilings();
  policy::Origin origin;
  origin.ceilings = &none;
  auto own = policy::decode(*document, origin);
  if (!own) return std::unexpected(unknown);
  ComparedPolicies policies{*std::move(expected), *std::move(own), std::nullopt};
  const auto named = bounds.policy(policies.own.name);
  if (!named || bounds.fixes(kFixedProfile)) return policies;
  if (auto profile = approval::underOwner(named->model())) policies.profile = *std::move(profile);
  return policies;
}

/// The path without links, as the sandbox shows it.
std::string shownPath(const std::string& path) {
  std::error_code problem;
  const auto real = std::filesystem::canonical(path, problem);
  return problem ? policy::normalPath(path) : real.string();
}

/// What the session does that no sandbox of this server does, whatever the user approves; empty: nothing.
std::string findNeverAllowed(const ComparedPolicies& policies) {
  const auto& [expected, own, profile] = policies;
  if (own.filesystem.workspace.mode == policy::WorkspaceMode::rw) return "its commands write to the real directory";
  if (own.isolation.level == policy::Level::none && expected.isolation.level != policy::Level::none)
    return "it has no isolation";
  if (own.network.mode == policy::NetworkMode::host && expected.network.mode != policy::NetworkMode::host)
    return "its commands use the network of this computer";
  for (const std::string_view key : kNeverWider) {
    const policy::Field* field = policy::findField(key);
    if (field != nullptr && !policy::isWider(*field, expected, own)) continue;
    if (field != nullptr && profile && !policy::isWider(*field, *profile, own)) continue;
    return "its " + std::string(key) + " allows more than this server's sandboxes have";
  }
  return {};
}

}  // namespace

std::optional<Excess> findForeignExcess(const OperatorBounds& bounds, const std::string& policy,
                                        const std::string& workspace) {
  if (!workspace.empty() && (bounds.no_workspace || (bounds.workspaces && !isShown(bounds, workspace))))
    return foreignExcess("shows a directory that the operator did not open");
  const bool decided = bounds.whole || bounds.profile || bounds.workspaces || !bounds.keys.empty();
  if (!decided && !bounds.read_only) return std::nullopt;
  auto policies = readPolicies(bounds, policy);
  if (!policies) return policies.error();
  if (denyAround(bounds, {}, workspace, policies->expected))
    return foreignExcess("shows a directory that the operator's policy hides");
  const auto& [expected, own, profile] = *policies;
  const std::string written = writtenOnHost(own, workspace);
  if (bounds.read_only && !written.empty()) return foreignExcess("its commands write to " + written);
  if (own.filesystem.workspace.mode == policy::WorkspaceMode::rw)
    return foreignExcess("its commands write to the real directory");
  for (const policy::Field& field : policy::fields())
    if (isCompared(bounds, field.key) && policy::isWider(field, expected, own))
      return foreignExcess("its " + std::string(field.key) + " allows more than the operator's policy");
  return std::nullopt;
}

std::expected<std::vector<std::string>, Excess> findForeignNeeds(const OperatorBounds& bounds,
                                                                 const std::string& policy,
                                                                 const std::string& session) {
  const auto policies = readPolicies(bounds, policy);
  if (!policies) return std::unexpected(policies.error());
  const auto& [expected, own, profile] = *policies;
  if (const std::string reason = findNeverAllowed(*policies); !reason.empty())
    return std::unexpected(
        foreignExcess(reason,
                      "make one with sandbox_create. The user can run commands in this one with `caisson "
                      "session exec " +
                          session + " -- COMMAND`"));
  std::vector<std::string> needs;
  const auto& usual = expected.filesystem.read_only;
  for (const std::string& path : own.filesystem.read_only)
    if (std::ranges::find(usual, path) == usual.end()) needs.push_back("path:" + shownPath(path));
  if (const std::string& root = own.filesystem.root; root.starts_with('/') && root != expected.filesystem.root)
    needs.push_back("path:" + shownPath(root));
  std::vector<std::string> accepted = approval::loweredProtection(expected);
  // A session for which the host refused namespaces is stored as one of that tier.
  if (std::ranges::find(accepted, "weaker:landlock") != accepted.end()) accepted.emplace_back("tier:landlock");
  for (std::string& lowered : approval::loweredProtection(own))
    if (std::ranges::find(accepted, lowered) == accepted.end()) needs.push_back(std::move(lowered));
  return needs;
}

Excess missingApproval(const std::string& what, const std::string& session) {
  return foreignExcess("gives more than this server's sandboxes do: " + approval::meaning(what),
                       "make one with sandbox_create, or the user can run `caisson approvals grant " +
                           shellQuoted(what) + " --session " + session + "` in a terminal; then try again");
}

}  // namespace caisson::mcp
