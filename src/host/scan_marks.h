// The rules of the workspace search for a directory, by its place.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "plan/plan.h"
#include "sys/root_dir.h"

namespace caisson::host {

/// Git's own directory, by its folded name.
inline constexpr std::string_view kGit = ".git";

/// The rules for a directory by its place. They only add rules, or drop those against execution of what the host
/// never executes there: a payload can make any directory look like another one.
struct ScanMarks {
  std::uint16_t depth = 0;
  bool in_repository = false;    ///< a part of a git directory that holds others
  bool in_git = false;           ///< in a git directory: git writes through links
  bool git_members = false;      ///< in what git keeps in a directory `.git`; git's rules say what is executed there
  bool objects = false;          ///< the directory `objects` of a git directory
  bool executed = false;         ///< git executes what is in it, or reads it as configuration
  bool below_protected = false;  ///< in a protected directory, whose content is protected with it
  bool hidden = false;           ///< in a directory that is hidden
};

/// What a directory looks like.
struct RepositoryShape {
  bool repository = false;  ///< it has the shape or the name of a git directory
  bool shaped = false;      ///< it has the shape
};

/// Whether git finds a git directory by this name. Not so for `.GIT`, nor for an empty `.git`.
bool isUsedByGit(const RepositoryShape& shape, std::string_view name);

/// The rules for the entry `name` of a directory of this shape, called `parent_name`.
ScanMarks marksBelow(const ScanMarks& parent, const RepositoryShape& shape, const std::string& parent_name,
                     const std::string& name);

/// A directory in a git directory's `objects` that git makes for objects: searched last, since it has many files.
bool holdsObjects(std::string_view name);

/// Protects the files and directories of the git directory `path` that name programs, or hold them.
void protectRepository(const sys::RootDir& root, const std::string& path, plan::WorkspaceScan& found);

}  // namespace caisson::host
