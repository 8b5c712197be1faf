// What inotify reports to the secret watch.
#pragma once

#include <sys/inotify.h>

#include <cstdint>

namespace caisson::supervise {

/// Of directories around the workspace: a link there can make a file of the workspace secret.
inline constexpr std::uint32_t kAroundEvents =
    IN_CREATE | IN_MOVED_FROM | IN_MOVED_TO | IN_CLOSE_WRITE | IN_ONLYDIR | IN_EXCL_UNLINK;
inline constexpr std::uint32_t kWatchedEvents = kAroundEvents | IN_DELETE | IN_MODIFY;

}  // namespace caisson::supervise
