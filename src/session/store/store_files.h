// Names of files in the directories of sessions and stores, shared by the sources of the Store.
#pragma once

#include <string_view>

#include "base/error.h"

namespace caisson::session {

inline constexpr const char* kNames = ".names";        // a file per name of a session, with its id
inline constexpr std::string_view kNew = ".new-";      // being created: the lock of all sessions is held
inline constexpr std::string_view kGone = ".gone-";    // being removed
inline constexpr std::string_view kTrash = ".trash-";  // unused layers and stores, in the directory of stores

/// Stage::usage: callers tell it apart from faults of the machine, which have Stage::state.
Error noSuchSession(std::string_view call, std::string_view id_or_name);

}  // namespace caisson::session
