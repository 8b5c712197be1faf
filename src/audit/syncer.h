// The process that syncs the log to disk, so that a launch never waits for the disk.
#pragma once

namespace caisson::audit {

/// Starts a process that waits briefly, syncs the log in `directory`, and exits once everything written is on disk. It
/// keeps copies of these two descriptors only (`sync_lock` is the lock that marks it as running) and is not a child of
/// the caller. Returns false if it could not be started. Safe in a threaded program.
bool startSyncer(int directory, int sync_lock);

}  // namespace caisson::audit
