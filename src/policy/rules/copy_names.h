// Names of copies and backups that editors, package managers and people make. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace caisson::policy {

/// What such names end with: ".bak", "~".
std::span<const std::string_view> copyEndings();

/// The position of the ending's dot; npos without one. A dot at the beginning is none.
std::size_t endingOf(std::string_view name);

/// Whether withoutCopyMark() may change the name: a quick test. `copy_ending`: what follows the dot is in
/// copyEndings().
bool mayBeCopy(std::string_view name, std::size_t dot, bool copy_ending);

/// The name that this one is a copy or backup of; the same if it is none. All in lower case.
std::string withoutCopyMark(const std::string& name);

}  // namespace caisson::policy
