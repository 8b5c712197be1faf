// The process that brings the log to the disk, so that no launch has to wait for a disk.
#pragma once

namespace caisson::audit {

/// Starts a process that waits a moment, syncs the log in `directory`, and ends as soon as everything written is on the
/// disk. It inherits `sync_lock`, the locked open file that says it is at work, and nothing else; it is no child of
/// the caller's. False if it could not be started. Safe in a threaded program.
bool startSyncer(int directory, int sync_lock);

}  // namespace caisson::audit
