// For root callers: idmapped mounts of host trees, in which the owner's files belong to the sandbox user.
#pragma once

#include <vector>

#include "base/error.h"
#include "isolation/block.h"
#include "plan/plan.h"
#include "sys/fd.h"

namespace caisson::supervise {

/// A detached copy of the mount at `path`, in which no component may be a link.
Result<sys::Fd> detachedMount(const char* path);

/// The same, with the files of its owner shown as the sandbox user's.
Result<sys::Fd> ownedMount(const char* source, const plan::Identity& identity);

/// Prepares a detached mount for every step marked `owned` and puts its descriptor into the block; `owned` keeps the
/// descriptors open. The payload's host id owns no files, so otherwise it could neither enter a private directory nor
/// own what it writes.
Result<void> prepareOwnedMounts(const plan::Plan& plan, isolation::Block& block, std::vector<sys::Fd>& owned);

}  // namespace caisson::supervise
