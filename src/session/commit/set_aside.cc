#include "session/commit/set_aside.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>

#include "session/commit/journal.h"
#include "session/commit/kept_commits.h"
#include "session/layers/steps.h"

namespace caisson::session {
namespace {

using sys::RootDir;

constexpr const char* kWorkspace = "workspace";

Result<void> moveTo(const RootDir& to, const RootDir& from, const char* name) {
  if (::renameat(from.descriptor(), name, to.descriptor(), name) == 0 || errno == ENOENT) return {};
  return fail(sysError(Stage::state, "rename", from.knownAs() + "/" + name, errno,
                       "it may hold the only copy of what a commit replaced"));
}

Result<KeptCommit> placeFor(const SessionPaths& paths, const std::string& session, const std::string& kept) {
  if (!kept.empty()) {
    if (auto opened = KeptCommit::open(paths, kept)) return opened;
  }
  if (auto begun = KeptCommit::openUnfinished(paths, session)) return begun;
  return KeptCommit::create(paths, session, 0);
}

}  // namespace

Result<std::string> setAside(const SessionPaths& paths, const InterruptedCommit& commit, const std::string& kept,
                             JournalState journal) {
  const auto place = placeFor(paths, commit.session, kept);
  if (!place) return fail(place.error());
  const RootDir& to = place->directory();
  if (auto written = to.writeFileAtomic(kWorkspace, commit.workspace, 0600); !written) return fail(written.error());
  step("commit: setting aside");
  // kStagingName is last: while it is in the session's directory, this is repeated.
  for (const char* name : {kStagingDirectory, kPlaced, kJournal, kStagingName}) {
    if (name == kJournal && journal == JournalState::damaged) continue;  // its user renames it
    if (auto moved = moveTo(to, commit.directory, name); !moved) return fail(moved.error());
    step("commit: set aside");
  }
  (void)to.makeDurable(kStagingName);
  return to.knownAs();
}

bool isSetAside(const RootDir& directory) { return directory.stat(kWorkspace).has_value(); }

Result<std::string> workspaceOfSetAside(const RootDir& directory) { return directory.readFile(kWorkspace, PATH_MAX); }

Result<void> forgetSetAside(const RootDir& directory) { return directory.remove(kWorkspace); }

std::string objectsOfSetAside(const RootDir& directory) {
  const auto staging = directory.readFile(kStagingName, 256);
  const auto workspace = workspaceOfSetAside(directory);
  // Else in the workspace, wherever that is now.
  if (!staging || staging->empty() || !workspace) return directory.knownAs() + "/" + kStagingDirectory;
  return *workspace + "/" + *staging;
}

}  // namespace caisson::session
