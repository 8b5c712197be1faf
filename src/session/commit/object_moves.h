// Looks at one name of a directory, and moves objects between directories.
#pragma once

#include <optional>
#include <string>

#include "sys/root_dir.h"

namespace caisson::session {

/// The object itself, never what a link leads to; nothing if there is none.
std::optional<sys::FileInfo> infoAt(int directory, const std::string& name);
/// renameat2(): 0 or the errno.
int renameWith(int from, const std::string& old_name, int to, const std::string& new_name, unsigned flags);
/// Renames to a name that must not exist. EEXIST if it does.
int moveNew(int from, const std::string& old_name, int to, const std::string& new_name);
/// Exchanges two objects. Where the file system cannot, by three renames: `new_name` is missing for a moment, and after
/// a crash or an error its object may be at asideName(old_name) in `from`.
int exchange(int from, const std::string& old_name, int to, const std::string& new_name);
std::string asideName(const std::string& name);
/// Whether the file system does not have this kind of rename.
bool isUnsupportedRename(int error);

}  // namespace caisson::session
