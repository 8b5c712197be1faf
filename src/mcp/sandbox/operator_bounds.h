// The operator's decisions: what `caisson mcp` got on its command line, or the project's trusted caisson.toml. A model
// chooses within them. No tool offers a fixed choice as a parameter; a client that sends it all the same with another
// value is refused, and the attempt is recorded in the audit log.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "caisson/policy.h"
#include "mcp/sandbox/tool.h"

namespace caisson::mcp {

struct OperatorBounds {
  /// The policy of a new sandbox with this built-in profile and the operator's flags; empty: the operator's own base.
  std::function<Result<Policy>(const std::string& profile)> policy;
  bool whole = false;             ///< a policy file or the project's file decides: every key is fixed
  bool profile = false;           ///< the base is fixed
  std::vector<std::string> keys;  ///< policy keys that flags set

  std::string project;  ///< the directory of the project's file, if that is the policy

  bool workspaces = false;                   ///< sandboxes show only `directories` and what is below them
  bool no_workspace = false;                 ///< every sandbox starts with an empty workspace
  std::vector<std::string> directories;      ///< canonical; the first is the default
  std::vector<std::string> never_committed;  ///< those of them with mode `ro`

  bool read_only = false;       ///< no tool that changes files of a workspace or writes to the real ones
  std::set<std::string> tools;  ///< offered ones; empty: all
  std::size_t max_sandboxes = 128;
  std::int64_t max_ttl_seconds = std::int64_t{7} * 24 * 3600;

  /// Whether the operator decided about this policy key, so that no model can.
  [[nodiscard]] bool fixes(std::string_view key) const;
  [[nodiscard]] bool fixesNetwork() const;
  [[nodiscard]] bool mayCommitTo(const std::string& workspace) const;
  /// Directories with mode `ro` below a workspace, relative to it: a commit writes nothing there.
  [[nodiscard]] std::vector<std::string> neverCommittedIn(const std::string& workspace) const;
  [[nodiscard]] bool offers(const Tool& tool) const;
  [[nodiscard]] bool offers(const Parameter& parameter) const;
  /// The longest time of one command that the operator set; a model may ask for less.
  [[nodiscard]] std::optional<double> maxCommandSeconds() const;
  /// The base and fixed choices in one or two sentences, for the model; empty if there are none.
  [[nodiscard]] std::string describe() const;
};

/// Adds to `tools` what its members need: a sandbox, and a way to wait for commands. An error for an unknown name.
Result<std::set<std::string>> toolsWithNeeds(const std::vector<std::string>& names);

/// Why a request is refused.
struct Excess {
  std::string parameter;  ///< or empty: the tool, or a sandbox
  std::string reason, remedy;
};

Excess notOffered(const Tool& tool);

/// A denied path that leads through a symbolic link of a directory: what it leads to would stay visible under its real
/// name.
struct DeniedThroughLink {
  std::string entry;  ///< of the policy
  std::string real;   ///< where it leads, on the host
};

/// The first of these entries that leads through a link of `top`, a canonical directory of the host.
std::optional<DeniedThroughLink> findDeniedThroughLink(const std::vector<std::string>& denied, const std::string& top);

/// Adds to the policy of a sandbox with this workspace what the operator denies in the directories around it or in it:
/// `--deny src` for the workspace P means P/src, also if a sandbox shows P/src/lib. `roots`: directories that the
/// client opened. An excess if the workspace itself is denied, or if a denied path leads through a link. Sets
/// Workspace::around to the uppermost of these directories around it.
std::optional<Excess> denyAround(const OperatorBounds& bounds, const std::vector<std::string>& roots,
                                 const std::string& workspace, policy::Policy& policy);

/// Whether `path` (canonical) is a directory that the operator opened, or below one.
bool isShown(const OperatorBounds& bounds, const std::string& path);

/// The first argument that exceeds what the operator allows. The arguments passed checkArguments().
std::optional<Excess> findExcess(const OperatorBounds& bounds, const Tool& tool, const Json& values);

/// Whether what is at this address exceeds what the operator allows: the tool that shows the same is not offered, or
/// the policy hides the file.
std::optional<Excess> findResourceExcess(const OperatorBounds& bounds, std::string_view uri);

/// The arguments without those that the operator decided; a directory below the only workspace stays.
Json withoutFixed(const OperatorBounds& bounds, const Tool& tool, Json values);

/// Records the attempt in the audit log. A failure is logged: nothing more is allowed because of it.
void recordExcess(std::string_view tool, const Excess& excess, const Json& arguments);

/// Records the attempt and returns the tool's result that explains it.
Json refuse(const Call& call, std::string_view tool, const Excess& excess, const Json& arguments);

}  // namespace caisson::mcp
