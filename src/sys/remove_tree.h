// Removes a tree that a payload filled, safe against planted links and mounts. Use it through RootDir::removeTree.
//
// Attack: a teardown that follows a planted `x -> /proc/self/root` deletes the host. This code resolves one name at a
// time, relative to an open directory, without following links, and never uses `..`.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace caisson::sys {

/// Removes `name` in the directory `parent`; an empty `name` empties `parent` itself. Not an error if missing. `shown`
/// is the name of the tree in messages.
Result<void> removeTreeAt(int parent, const std::string& name, std::string_view shown, Stage stage);

/// Adds the owner's permissions to a directory, known by an O_PATH descriptor and its current `mode`. Ignores errors.
/// chmod by name would be a race: it follows links, and the name may have become one.
void unlockDirectory(int handle, unsigned mode);

/// A file name that an attacker cannot predict: ".caisson-" and 128 random bits. nullopt with errno if getrandom fails.
std::optional<std::string> unpredictableName();

}  // namespace caisson::sys
