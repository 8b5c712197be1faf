// A settings file of an agent (chosen by the first byte): the copy can be read, and copying it again leaves out nothing
// more and changes nothing.
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "cli/agent/providers.h"
#include "cli/agent/secret_text.h"
#include "cli/agent/settings.h"

namespace {

std::vector<const caisson::cli::SettingsFile*> documents() {
  std::vector<const caisson::cli::SettingsFile*> list;
  for (const caisson::cli::KnownAgent& agent : caisson::cli::knownAgents())
    for (const caisson::cli::SettingsFile& file : agent.settings)
      if (file.format != caisson::cli::SettingsFormat::text) list.push_back(&file);
  return list;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace caisson::cli;
  static const std::vector<const SettingsFile*> files = documents();
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  (void)mayHoldSecret("notes.md", text);
  (void)mayHoldSecret("settings.json", text);
  const SettingsFile& file = *files[data[0] % files.size()];
  const auto clean = cleanSettings(file, text);
  if (!clean) return 0;
  const auto again = cleanSettings(file, clean->text);
  if (!again || !again->left_out.empty() || again->text != clean->text) std::abort();
  return 0;
}
