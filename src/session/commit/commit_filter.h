// Files that a host executes by itself later: what a commit holds back unless it is named.
//
// A session that writes `.git/hooks/pre-commit` has its code run outside at the next commit. The list is about things
// that run without a person starting them: tools read them as configuration. What a person builds or runs knowingly (a
// Makefile, a package.json) is the content of a project and not on it.
#pragma once

#include <string>
#include <string_view>

namespace caisson::session {

/// Why `path` (relative to the workspace) is held back, or empty. Letters count the same in both cases: a file system
/// may not tell them apart.
std::string_view whyHeld(std::string_view path);

/// Whether a link with this target, at this path, leads out of the workspace.
bool leadsOut(std::string_view path, std::string_view target);

}  // namespace caisson::session
