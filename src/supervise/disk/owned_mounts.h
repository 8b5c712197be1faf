// For root callers: idmapped mounts of host trees, in which the owner's files belong to the sandbox user.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "isolation/block.h"
#include "plan/plan.h"
#include "sys/fd.h"

namespace caisson::supervise {

/// A detached copy of the mount at `path`, in which no component may be a link. ESTALE if it is not `expected`.
Result<sys::Fd> detachedMount(const char* path, const isolation::ExpectedFile& expected = {});

/// The same, with the files of its owner shown as the sandbox user's. With `unmapped`, a file system that has no such
/// mounts, as the root of a container, is accepted: its files keep their owner, and the path is added to the list.
Result<sys::Fd> ownedMount(const char* source, const plan::Identity& identity,
                           std::vector<std::string>* unmapped = nullptr, const isolation::ExpectedFile& expected = {});

/// Prepares a detached mount for every step marked `owned` and puts its descriptor into the block; `owned` keeps the
/// descriptors open. The payload's host
/// id owns no files, so otherwise it could neither enter a private directory nor own what it writes. `unmapped`: see
/// above.
Result<void> prepareOwnedMounts(const plan::Plan& plan, isolation::Block& block, std::vector<sys::Fd>& owned,
                                std::vector<std::string>& unmapped);

}  // namespace caisson::supervise
