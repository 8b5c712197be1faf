// Another sandbox's configuration in any of the three languages (chosen by the first byte): it is imported or refused,
// and what is imported is a policy that our own decoder reads back as the same.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "policy/decode/decode.h"
#include "policy/describe/json.h"
#include "policy/fields.h"
#include "policy/import/import.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace caisson::policy;
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Format format = data[0] % 3 == 0 ? Format::toml : data[0] % 3 == 1 ? Format::json : Format::yaml;
  const auto document = readText(format == Format::json ? withoutComments(text) : std::string(text), format, "fuzz");
  if (!document) return 0;
  const auto imported = importPolicy(*document);
  if (!imported) {
    if (imported.error().message().empty()) std::abort();
    return 0;
  }
  const auto again = parse(toJson(imported->policy), Format::json, "fuzz");
  if (!again || !sameSettings(imported->policy, *again)) std::abort();
  return 0;
}
