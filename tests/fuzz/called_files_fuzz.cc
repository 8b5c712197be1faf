// Hooks, and settings of agents and editors, from a repository that a stranger made.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "policy/rules/called_files.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using caisson::policy::CommandSource;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const CommandSource source : {CommandSource::script, CommandSource::settings}) {
    for (const auto& called : caisson::policy::calledFiles(source, text)) {
      if (called.path.empty() || called.path.find('\0') != std::string::npos) std::abort();
    }
  }
  return 0;
}
