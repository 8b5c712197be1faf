#include "session/store/session_info.h"

#include <algorithm>
#include <sstream>

#include "plan/filesystem.h"
#include "session/commit/journal.h"
#include "session/network/network.h"
#include "session/sandbox.h"
#include "session/tier/tier_files.h"
#include "sys/descriptor_path.h"

namespace caisson::session {
namespace {

using sys::RootDir;

constexpr const char* kWarningsFile = "warnings";
constexpr std::size_t kMaxWarnings = 64 * 1024;

/// The workspace as commands see it; empty if it is gone.
std::string directoryInside(const SessionPaths& paths, const Metadata& metadata) {
  if (inLandlockTier(metadata.policy)) {
    const auto workspace = openTierWorkspace(paths, metadata);
    const auto path = workspace ? sys::canonicalPath(workspace->descriptor()) : fail(workspace.error());
    return path ? *path : std::string();
  }
  const bool same_path = metadata.policy.filesystem.workspace.same_path && !metadata.workspace.empty();
  return same_path ? metadata.workspace : std::string(plan::kWorkspace);
}

}  // namespace

SessionInfo infoOf(const SessionPaths& paths, const RootDir& directory, const Metadata& metadata) {
  SessionInfo info;
  info.id = metadata.id;
  info.name = metadata.name;
  info.workspace = metadata.workspace;
  info.created = metadata.began.wall_ns / 1'000'000'000;
  const Moment now = Moment::now();
  info.ttl_seconds = metadata.ttl_seconds;
  info.expires_in = metadata.secondsLeft(now);
  if (info.expires_in <= 0) info.removed_in = std::max(0.0, kSessionGraceSeconds - metadata.secondsSinceEnd(now));
  info.live = inLandlockTier(metadata.policy) ? isInUse(directory) : isAlive(directory);
  info.network = networkName(metadata.policy.network.mode);
  info.allowed_hosts = metadata.policy.network.allowed_hosts;
  info.directory = directoryInside(paths, metadata);
  std::istringstream lines(directory.readFile(kWarningsFile, kMaxWarnings).value_or(""));
  for (std::string line; std::getline(lines, line);) info.warnings.push_back(std::move(line));
  if (const std::string invalid = std::string(kJournal) + ".invalid"; directory.stat(invalid)) {
    info.warnings.push_back(
        "an interrupted commit was not finished: its journal is damaged or not caisson's own, and is kept as " +
        directory.knownAs() + "/" + invalid);
  }
  return info;
}

SessionInfo infoOf(const std::string& id, const Error& problem) {
  SessionInfo info;
  info.id = id;
  info.problem = problem.message();
  return info;
}

void keepWarnings(const RootDir& directory, const std::vector<std::string>& warnings) {
  std::string text;
  for (const std::string& warning : warnings) {
    if (!warning.contains('\n')) text += warning + "\n";
  }
  (void)directory.replaceFile(kWarningsFile, text, 0600);
}

}  // namespace caisson::session
