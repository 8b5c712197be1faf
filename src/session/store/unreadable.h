// What is known of a session whose metadata cannot be read: damaged ones, and those of another version.
#pragma once

#include <optional>
#include <string>

#include "session/store/metadata_cache.h"
#include "session/store/session_paths.h"

namespace caisson::session {

/// Stores the family in a separate small file, so that an unreadable session keeps only the layers of its family.
/// Does not wait for the disk: without the file, familyOf() reads the metadata.
void writeFamily(const sys::RootDir& session, const std::string& family);
/// The session's family: from its file, from the metadata, or from metadata that this version cannot use. Nothing if
/// all of these fail.
std::optional<std::string> familyOf(const sys::RootDir& session, MetadataCache& cache);

/// Whether an error of reading the metadata means that no version of caisson can use them. Not for errors of the
/// machine, such as too many open files.
bool isDamage(const Error& error);
/// Seconds since a file of the session's directory was last created, replaced or removed; 0 if that is unknown.
double secondsUnchanged(const sys::RootDir& session);

/// The names in `names`, a directory of SessionPaths::sessions(), by id.
std::map<std::string, std::string> namesById(const SessionPaths& paths, const char* names);

}  // namespace caisson::session
