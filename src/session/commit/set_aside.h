// Interrupted commits that cannot be finished where they are: their session is destroyed or rebound, the journal is
// damaged, or the workspace is another directory.
//
// Their staging directory may hold the only copies of what the workspace had. So they are moved to the directory of
// what the commit kept (kept_commits.h), with `commit.*` and
//
//   workspace   the path of the directory that the commit changes
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "session/store/session_paths.h"
#include "sys/root_dir.h"

namespace caisson::session {

/// An interrupted commit that is still in its session's directory.
struct InterruptedCommit {
  const sys::RootDir& directory;
  std::string session;    ///< the id
  std::string workspace;  ///< the path of the directory that it changes; empty: not known
};

enum class JournalState : std::uint8_t { usable, damaged };

/// Moves everything but a damaged journal. `kept`: Transaction::kept, empty if that is not known. Repeatable. Returns
/// the directory that it was moved to.
Result<std::string> setAside(const SessionPaths& paths, const InterruptedCommit& commit, const std::string& kept,
                             JournalState journal);

/// Whether `directory`, of what a commit kept, holds a commit that was set aside.
bool isSetAside(const sys::RootDir& directory);
/// The path of its workspace.
Result<std::string> workspaceOfSetAside(const sys::RootDir& directory);
/// After it was finished.
Result<void> forgetSetAside(const sys::RootDir& directory);
/// Where the objects lie that it moved out of the workspace.
std::string objectsOfSetAside(const sys::RootDir& directory);

}  // namespace caisson::session
