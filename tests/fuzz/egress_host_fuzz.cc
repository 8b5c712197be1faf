// Host names: what is accepted has one form, and that form is accepted as itself.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "egress/rules.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace caisson::egress;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto host = canonicalHost(text)) {
    const auto again = canonicalHost(host->text());
    if (!again || *again != *host) std::abort();
    if (host->address.has_value() == !host->name.empty()) std::abort();
    static const Rules rules = *Rules::from({.allowed_hosts = {".example.org"}, .allowed_ports = {"443"}});
    const bool below = host->name == "example.org" || host->name.ends_with(".example.org");
    if (rules.judge(*host, 443).allowed != below) std::abort();
  }
  (void)canonicalAuthority(text, 443);
  if (const auto pattern = parsePattern(text)) {
    if (pattern->kind == HostPattern::Kind::exact && !pattern->matches(pattern->host)) std::abort();
  }
  return 0;
}
