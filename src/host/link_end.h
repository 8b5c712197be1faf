// Where a symbolic link of a workspace leads to in it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sys/root_dir.h"

namespace caisson::host {

/// The path relative to `root` that a link there leads to through all links on the way; nullopt: it leads out, nowhere
/// or in a circle, or `link` is not a link. `workspace` is the absolute path of `root`: absolute targets, and such that
/// leave it and come back, are followed without asking the file system about anything outside, which may not answer.
/// Adds the links on the way to `passed`.
std::optional<std::string> linkEnd(const sys::RootDir& root, const std::string& workspace, const std::string& link,
                                   std::vector<std::string>* passed = nullptr);

}  // namespace caisson::host
