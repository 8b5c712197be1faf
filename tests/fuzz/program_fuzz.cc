// Any file read as a program: headers that lie must lead to nothing but an answer.
#include <cstdint>
#include <cstring>

#include "sys/elf.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  caisson::sys::readProgram([&](std::uint64_t offset, std::span<char> room) {
    if (offset > size || size - offset < room.size()) return false;
    if (!room.empty()) std::memcpy(room.data(), data + offset, room.size());
    return true;
  });
  return 0;
}
