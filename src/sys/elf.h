// What a program file needs to start: the loader and libraries of an ELF file, or the interpreter of a script.
//
// The file is untrusted: every offset and length is checked before use, and the amount of reading is bounded. Supports
// only 64-bit little-endian files, the only ones that our kernels run natively.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace caisson::sys {

struct ProgramNeeds {
  bool elf = false;
  std::string interpreter;  ///< the loader of an ELF file or the interpreter of a script; empty: none
  std::vector<std::string> libraries;
  std::string rpath, runpath;  ///< colon-separated, verbatim, $ORIGIN not expanded
};

/// Fills `room` from `offset`; false if there are fewer bytes.
using ByteSource = std::function<bool(std::uint64_t offset, std::span<char> room)>;

/// nullopt if the file is neither a supported ELF file nor a script.
std::optional<ProgramNeeds> readProgram(const ByteSource& source);
/// The same, for an open file.
std::optional<ProgramNeeds> readProgram(int fd);

}  // namespace caisson::sys
