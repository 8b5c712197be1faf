// Deep histories made shallow: the layers of a session become one that shows the same.
//
// Each checkpoint with changes adds a layer, and each layer costs every look-up a little. From kSquashAt layers on a
// checkpoint starts a process that merges them; checkpoint, restore and fork themselves never wait for that,
// until kMaxDepth is reached. A checkpoint that has all the merged layers gets the new one instead; others keep theirs.
#pragma once

#include <memory>
#include <string>

#include "session/store/store.h"

namespace caisson::session {

inline constexpr std::size_t kSquashAt = 16;
/// The maximum number of frozen layers: before Linux 6.7 the names of all layers must fit into one mount option.
inline constexpr std::size_t kMaxDepth = 32;

struct SquashOptions {
  std::size_t least = kSquashAt;  ///< with fewer layers there is nothing to do
  bool wait = false;              ///< for another process that merges layers of this session; otherwise return at once
};

/// Merges the layers of a session, in this process, which has to be single-threaded. No error if there is nothing to do
/// or another process does it. A crash at any instant leaves the session as it was, or with the new layer.
Result<void> squash(const std::shared_ptr<Store>& store, const std::string& id, const SquashOptions& options = {});

/// Why the last attempt failed, or empty.
std::string whyNotSquashed(const sys::RootDir& session);

}  // namespace caisson::session
