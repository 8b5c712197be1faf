// Changes that a session's commands made to a writable root: layers, as those of the workspace.
//
// They are in CAISSON_HOME/stores/FAMILY.roots/NAME/upper. Only a checkpoint, fork or restore begins a new one, since
// the sandbox must end for that: nothing can replace the root of a running one.
#pragma once

#include <string>

#include "base/error.h"
#include "plan/plan.h"
#include "session/store/metadata.h"
#include "session/store/session_paths.h"
#include "supervise/disk/disk_directories.h"

namespace caisson::session {

/// More layers are an error: the kernel limits the names of all layers of a root to 256 bytes.
inline constexpr std::size_t kMaxRootLayers = 20;

/// The name in SessionPaths::stores() of the directory that holds the root layers of a family.
std::string rootsOf(const std::string& family);

/// Whether the sandbox keeps changes of its root on disk, where they can become layers.
bool keepsRoot(const plan::Plan& plan);

/// Makes the upper root layer a frozen one in `metadata`, unless nothing was written to it. The caller writes the
/// metadata. `call`: for errors.
Result<void> freezeRoot(const SessionPaths& paths, std::string_view call, Metadata& metadata);

/// Puts the frozen root layers into the plan of a sandbox.
Result<void> useRootLayers(const SessionPaths& paths, const Metadata& metadata, plan::Plan& plan);

/// Opens the directory of a family's root layers, and creates a missing one.
struct OpenedRoots {
  sys::RootDir store;
  std::string path;  ///< canonical
};
Result<OpenedRoots> openRoots(const SessionPaths& paths, const Metadata& metadata);

/// Creates the size-limited directories on disk. They live as long as the session, so that `/tmp` and the home survive
/// a checkpoint and a restart of the sandbox. `session`: its directory.
Result<supervise::DiskDirectories> prepareDiskDirectories(const SessionPaths& paths, const sys::RootDir& session,
                                                          const Metadata& metadata, const plan::Plan& plan);

}  // namespace caisson::session
