// Stores that no session refers to, as those of sessions that were destroyed while another one was unreadable.
#pragma once

#include <string_view>

#include "session/store/metadata_cache.h"
#include "session/store/session_paths.h"

namespace caisson::session {

/// Moves the layers of each family that no session belongs to to the trash: renames them to `trash` and their name.
/// Takes the lock of all sessions if there is such a family. Does nothing if the family of any session is unknown.
void dropUnusedStores(const SessionPaths& paths, MetadataCache& cache, std::string_view trash);

}  // namespace caisson::session
