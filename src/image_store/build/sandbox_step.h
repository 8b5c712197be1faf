// Runs a command of a build in a sandbox whose root is an image, and keeps what it changed there.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "caisson/session.h"
#include "image_store/build/containerfile.h"
#include "sys/root_dir.h"

namespace caisson::image {

struct SandboxStep {
  std::string root;                  ///< reference of the image, with its digest
  std::vector<std::string> command;  ///< argv
  Variables environment;
  std::string directory;           ///< absolute; empty: /
  std::vector<std::string> hosts;  ///< patterns that it may reach; empty: no network
  std::string program;             ///< of the session's supervisor: this one
};

/// Runs the command as root of the sandbox; its output goes to standard error. Then calls `use` with the upper
/// directory of the root's overlay, and removes the sandbox. An error if the command fails.
Result<void> runStep(const SandboxStep& step, const std::function<Result<void>(const sys::RootDir& upper)>& use);

/// The layers of a session's root above its image, lowest first; an error if its root is not writable. The files of an
/// image belong to root: so do those in these layers from now on.
Result<std::vector<sys::RootDir>> rootChanges(const std::string& session_id);

}  // namespace caisson::image
