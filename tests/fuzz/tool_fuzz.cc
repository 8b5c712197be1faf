// A tool's entry: read or refused; what is read has a command that can be filled in, each value as it is given.
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

#include "tool/command_template.h"
#include "tool/registry.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace caisson::tool;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto tool = readTool(text, "search");
  if (!tool) {
    if (tool.error().message().empty()) std::abort();
    return 0;
  }
  std::map<std::string, std::string, std::less<>> values;
  for (const std::string& name : parameters(tool->command)) values.emplace(name, "v{w}");
  const auto filled = fillTemplate(tool->command, values, {});
  if (!filled || filled->empty()) std::abort();
  const auto again = readTool(writeTool(*tool), "search");
  if (!again || again->command != tool->command) std::abort();
  return 0;
}
