// Configuration in a cache: files there that make a tool run commands, load code or send credentials. They are not
// kept: a program would otherwise configure the tools of the next sandbox that uses the cache.
#pragma once

#include "base/error.h"

namespace caisson::supervise {

/// Removes configuration from the cache in the directory `data`, which a payload wrote: known names at its top and in
/// the directories there, links at its top, and of git repositories in the places of known tools the hooks, or the
/// whole repository if its configuration has more than addresses and formats. Follows no link. An error if something
/// cannot be examined or removed: the cache must not be used then.
Result<void> removeConfiguration(int data);

}  // namespace caisson::supervise
