// The real directory of a session, opened again: the stored path is only a hint.
//
// Whoever can write above the directory, such as another sandbox, can rename it and put a link or another directory in
// its place. So it is opened without following links and compared with what it was when the session began.
#pragma once

#include "base/error.h"
#include "plan/plan.h"
#include "session/store/metadata.h"
#include "session/store/session_paths.h"
#include "sys/root_dir.h"

namespace caisson::session {

/// An error if the sandbox would show the sockets and layers of sessions, which are below CAISSON_HOME. `workspace`:
/// also as a part of the workspace.
Result<void> checkStateHidden(const SessionPaths& paths, const plan::HostFacts& facts, bool workspace);

/// Makes the workspace of `facts` the real directory; an error if it cannot be one.
Result<void> setRealDirectory(const plan::HostFacts& facts, Metadata& metadata);

/// Opens the real directory. An error (ErrorCode::directory_replaced) if something else has its path. `metadata` must
/// have a workspace.
Result<sys::RootDir> openRealDirectory(const Metadata& metadata);

/// Stores the identity of the directory of a session that an older caisson made, if its path contains no link. True: it
/// was missing. Whatever was done to that session before cannot be noticed.
bool addMissingIdentity(Metadata& metadata);

}  // namespace caisson::session
