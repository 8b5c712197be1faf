// What a program file needs to start: the loader and libraries an ELF file names, the interpreter a script names.
//
// The file may be anybody's: every offset and length in it is checked before it is believed, and how much is read is
// bounded. Only 64-bit little-endian files are looked into, which is all that our kernels start natively.
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
  std::string interpreter;  ///< of an ELF file its loader, of a script its interpreter; empty: none
  std::vector<std::string> libraries;
  std::string rpath, runpath;  ///< colon-separated, as written: with $ORIGIN in them
};

/// Fills `room` from `offset`; false if there is less.
using ByteSource = std::function<bool(std::uint64_t offset, std::span<char> room)>;

/// Nothing if it is neither an ELF file of ours nor a script.
std::optional<ProgramNeeds> readProgram(const ByteSource& source);
std::optional<ProgramNeeds> readProgram(int fd);

}  // namespace caisson::sys
