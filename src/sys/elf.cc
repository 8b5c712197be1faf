#include "sys/elf.h"

#include <elf.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string_view>

namespace caisson::sys {

namespace {

constexpr std::size_t kMaxHeaders = 128;
constexpr std::size_t kMaxDynamic = 4096;
constexpr std::size_t kMaxLibraries = 256;
constexpr std::size_t kMaxText = 4096;
constexpr std::size_t kScriptLine = 256;  // the length that the kernel reads

template <class T>
bool readObject(const ByteSource& source, std::uint64_t offset, T& object) {
  return source(offset, {reinterpret_cast<char*>(&object), sizeof(T)});
}

/// Reads a NUL-terminated string of at most kMaxText bytes. Byte-wise, since the file may end right after it.
std::optional<std::string> readText(const ByteSource& source, std::uint64_t offset, std::uint64_t most) {
  std::string text;
  char letter = 0;
  for (std::uint64_t at = 0; at < std::min<std::uint64_t>(most, kMaxText); ++at) {
    if (!source(offset + at, {&letter, 1})) return std::nullopt;
    if (letter == 0) return text;
    text += letter;
  }
  return std::nullopt;
}

class ElfReader {
 public:
  explicit ElfReader(const ByteSource& source) : source_(source) {}

  std::optional<ProgramNeeds> read() {
    Elf64_Ehdr header;
    if (!readObject(source_, 0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return std::nullopt;
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB) return std::nullopt;
    if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum > kMaxHeaders) return std::nullopt;
    headers_.resize(header.e_phnum);
    if (!headers_.empty() &&
        !source_(header.e_phoff, {reinterpret_cast<char*>(headers_.data()), headers_.size() * sizeof(Elf64_Phdr)})) {
      return std::nullopt;
    }
    needs_.elf = true;
    for (const Elf64_Phdr& one : headers_) {
      if (one.p_type == PT_INTERP) needs_.interpreter = readText(source_, one.p_offset, one.p_filesz).value_or("");
      if (one.p_type == PT_DYNAMIC) readDynamic(one);
    }
    return needs_;
  }

 private:
  void readDynamic(const Elf64_Phdr& segment) {
    const std::size_t count = std::min<std::uint64_t>(segment.p_filesz / sizeof(Elf64_Dyn), kMaxDynamic);
    std::vector<Elf64_Dyn> entries(count);
    if (!source_(segment.p_offset, {reinterpret_cast<char*>(entries.data()), count * sizeof(Elf64_Dyn)})) return;
    std::optional<std::uint64_t> strings;
    for (const Elf64_Dyn& entry : entries) {
      if (entry.d_tag == DT_NULL) break;
      if (entry.d_tag == DT_STRTAB) strings = offsetOf(entry.d_un.d_ptr);
    }
    if (!strings) return;
    for (const Elf64_Dyn& entry : entries) {
      if (entry.d_tag == DT_NULL) break;
      if (entry.d_tag != DT_NEEDED && entry.d_tag != DT_RPATH && entry.d_tag != DT_RUNPATH) continue;
      if (needs_.libraries.size() >= kMaxLibraries) return;
      const auto text = readText(source_, *strings + entry.d_un.d_val, kMaxText);
      if (!text || text->empty()) continue;
      if (entry.d_tag == DT_NEEDED) needs_.libraries.push_back(*text);
      if (entry.d_tag == DT_RPATH) needs_.rpath = *text;
      if (entry.d_tag == DT_RUNPATH) needs_.runpath = *text;
    }
  }

  [[nodiscard]] std::optional<std::uint64_t> offsetOf(std::uint64_t address) const {
    for (const Elf64_Phdr& one : headers_) {
      if (one.p_type == PT_LOAD && address >= one.p_vaddr && address - one.p_vaddr < one.p_filesz) {
        return one.p_offset + (address - one.p_vaddr);
      }
    }
    return std::nullopt;
  }

  const ByteSource& source_;
  std::vector<Elf64_Phdr> headers_;
  ProgramNeeds needs_;
};

std::optional<ProgramNeeds> readScript(const ByteSource& source) {
  char mark[2] = {};
  if (!source(0, mark) || mark[0] != '#' || mark[1] != '!') return std::nullopt;
  std::string line;
  char letter = 0;
  while (line.size() < kScriptLine && source(2 + line.size(), {&letter, 1}) && letter != '\n') line += letter;
  const std::size_t begin = line.find_first_not_of(" \t");
  if (begin == std::string::npos) return std::nullopt;
  ProgramNeeds needs;
  needs.interpreter = line.substr(begin, line.find_first_of(" \t", begin) - begin);
  return needs;
}

}  // namespace

std::optional<ProgramNeeds> readProgram(const ByteSource& source) {
  if (auto script = readScript(source)) return script;
  return ElfReader(source).read();
}

std::optional<ProgramNeeds> readProgram(int fd) {
  return readProgram([fd](std::uint64_t offset, std::span<char> room) {
    if (offset > static_cast<std::uint64_t>(INT64_MAX) - room.size()) return false;
    std::size_t got = 0;
    while (got < room.size()) {
      const ssize_t read =
          ::pread(fd, room.data() + got, room.size() - got, static_cast<off_t>(offset) + static_cast<off_t>(got));
      if (read <= 0) return false;
      got += static_cast<std::size_t>(read);
    }
    return true;
  });
}

}  // namespace caisson::sys
