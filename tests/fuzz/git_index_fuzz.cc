// An index of git's from a repository that a stranger made.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "policy/rules/git_index.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const caisson::policy::IndexEntry& entry : caisson::policy::readIndex(bytes)) {
    if (entry.path.empty() || entry.id.size() != 40 || entry.path.find('\0') != std::string::npos) std::abort();
  }
  const caisson::policy::IndexFlags flags = caisson::policy::readIndexFlags(bytes);
  for (const std::string& path : flags.unwatched) {
    if (path.empty() || path.find('\0') != std::string::npos) std::abort();
  }
  return 0;
}
