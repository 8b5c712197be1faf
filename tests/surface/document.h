// The part of docs/syscalls.md that is made from the lists in the source.
#pragma once

#include <string>

namespace caisson::surface {

/// Markdown: families of allowed calls with their reasons, ioctl classes, arguments, refused calls.
std::string describeLists();

}  // namespace caisson::surface
