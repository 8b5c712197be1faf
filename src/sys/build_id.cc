#include "sys/build_id.h"

#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstring>

// Defined by the linker in every program and library: the first byte of the ELF header in memory.
extern "C" [[gnu::weak, gnu::visibility("hidden")]] const ElfW(Ehdr) __ehdr_start;

namespace caisson::sys {
namespace {

std::string_view buildIdIn(const char* notes, std::size_t bytes) {
  const auto padded = [](std::size_t length) { return (length + 3) & ~std::size_t{3}; };
  for (std::size_t at = 0; at + sizeof(ElfW(Nhdr)) <= bytes;) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes + at, sizeof(note));
    const std::size_t name = at + sizeof(note), content = name + padded(note.n_namesz);
    at = content + padded(note.n_descsz);
    if (at > bytes) return {};
    const bool gnu = note.n_namesz == 4 && std::memcmp(notes + name, "GNU", 4) == 0;
    if (gnu && note.n_type == NT_GNU_BUILD_ID) return {notes + content, note.n_descsz};
  }
  return {};
}

}  // namespace

std::string_view buildId() {
  const ElfW(Ehdr)* header = &__ehdr_start;
  asm("" : "+r"(header));  // stops the compiler from assuming that it is not null
  if (header == nullptr) return {};
  const auto* begin = reinterpret_cast<const char*>(header);
  const auto* parts = reinterpret_cast<const ElfW(Phdr)*>(begin + header->e_phoff);
  auto origin = reinterpret_cast<std::uintptr_t>(begin);  // base of the addresses in the file
  for (int i = 0; i < header->e_phnum; ++i) {
    if (parts[i].p_type == PT_LOAD && parts[i].p_offset == 0) origin -= parts[i].p_vaddr;
  }
  for (int i = 0; i < header->e_phnum; ++i) {
    if (parts[i].p_type != PT_NOTE) continue;
    const auto* notes = reinterpret_cast<const char*>(origin + parts[i].p_vaddr);
    if (const auto found = buildIdIn(notes, parts[i].p_memsz); !found.empty()) return found;
  }
  return {};
}

}  // namespace caisson::sys
