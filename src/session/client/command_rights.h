// File access from outside a sandbox with exactly the rights of its commands.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "sys/fd.h"
#include "sys/root_dir.h"

namespace caisson::session {

/// For O_PATH descriptors.
inline constexpr sys::FileTypes kAnyType = {
    sys::FileType::unknown, sys::FileType::regular, sys::FileType::directory,        sys::FileType::link,
    sys::FileType::fifo,    sys::FileType::socket,  sys::FileType::character_device, sys::FileType::block_device};

/// The sandbox's files as its commands see them.
struct SandboxFiles {
  sys::RootDir root;      ///< the sandbox's root directory, known as "/"
  sys::Fd rules;          ///< the commands' Landlock rules; none: they have no domain
  std::string workspace;  ///< its path inside
};

/// Runs `work` in a new thread that has the rights of the sandbox's commands, and waits for it: their user, no
/// capabilities, their Landlock rules. So a path that is denied to a command is denied to `work`, although mounts alone
/// do not hide it. `payload_id`: the commands' user if the caller is root, else 0.
Result<void> runWithCommandRights(const sys::Fd& rules, uid_t payload_id, const std::function<Result<void>()>& work);

/// The absolute path inside for a client's path: a relative one is below the workspace. An error (path_escapes) if it
/// begins in the workspace and climbs out of it by `..`.
Result<std::string> pathInside(std::string_view path, const std::string& workspace);

/// Follows the links at the end of `path`, as a command's open would: inside the root. A path that does not exist is
/// returned, too.
Result<std::string> followLinks(const sys::RootDir& root, std::string path);

/// An error for files of /proc, /sys and the like: their content depends on who reads them, and a reader outside has
/// more power over the sandbox's processes than a command has. Judges the nearest existing parent of a missing path.
Result<void> checkFileSystem(const sys::RootDir& root, const std::string& path);

/// What is at an absolute path of the root, without following a final link, or its nearest parent that exists.
struct NearestObject {
  sys::Fd handle;  ///< O_PATH
  std::string path;
};
Result<NearestObject> openNearest(const sys::RootDir& root, const std::string& path);

/// Whether the path is the root of a mount. The kernel lets a process of another mount namespace rename over it, which
/// removes the mount: a mask over a secret, for example. A command can't do that.
bool isMountPoint(const sys::RootDir& root, const std::string& path);

/// Adds to a failure what a person or a model can do about it.
Error explainAccess(Error error);

}  // namespace caisson::session
