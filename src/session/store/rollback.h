// What a session discards: its upper layer after an attack, and the scratch directories of its commands.
#pragma once

#include "session/store/metadata.h"
#include "session/store/session_paths.h"

namespace caisson::session {

/// Requests a rollback that could not be done because the session was locked: the next user of the session does it
/// first (carryOutRollback). `upper`: the layer to discard.
Result<void> requestRollback(const sys::RootDir& session, const std::string& upper);
/// Does a requested rollback, if there is one and its layer is still the upper one; the caller holds the session's
/// lock. Returns the name of the checkpoint that keeps the discarded changes; empty: nothing was discarded.
Result<std::string> carryOutRollback(const sys::RootDir& session, Metadata& metadata);
/// Starts an empty upper layer, keeps the old one as a checkpoint, whose name is returned, and discards scratch
/// directories; the caller holds the lock.
Result<std::string> discardUpper(const sys::RootDir& session, Metadata& metadata);

/// Discards what commands left in the session's /tmp and home, as far as that is on disk; the caller holds the lock.
Result<void> discardScratch(const sys::RootDir& session);

/// Removes discarded scratch directories, which takes time.
void removeDiscarded(const sys::RootDir& session);

/// A random name for a new layer.
std::string newLayerName();

}  // namespace caisson::session
