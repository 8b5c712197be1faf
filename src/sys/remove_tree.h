// Link-proof, mount-proof removal of a tree that a payload filled. Use it through RootDir::removeTree.
//
// The attack it is built against: a teardown that follows a planted `x -> /proc/self/root` deletes the host
// (PEERS lesson 13). Nothing here resolves more than one name at a time, relative to an open directory, without
// following, and never `..`.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace caisson::sys {

/// Removes `name` in the directory `parent`; an empty `name` empties `parent` itself. Missing is fine.
/// `shown` is what messages call the tree.
Result<void> removeTreeAt(int parent, const std::string& name, std::string_view shown, Stage stage);

/// Gives the owner access to a directory known only by an O_PATH descriptor. By name would be a race: the name may be a
/// link by now, and chmod follows links.
void unlockDirectory(int handle, unsigned mode);

/// A file name nobody can have planted: ".caisson-" and 128 random bits. Nothing (and errno) when getrandom fails.
std::optional<std::string> unpredictableName();

}  // namespace caisson::sys
