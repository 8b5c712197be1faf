#include "egress/shown_host.h"

#include <algorithm>

#include "egress/host_name.h"

namespace caisson::egress {
namespace {

constexpr std::size_t kPlain = 40, kDomain = 24, kShortened = 20;
constexpr std::string_view kDots = "...";
/// Second-level names below which countries register domains.
constexpr std::string_view kShared[] = {"ac",  "co", "com", "edu", "go", "gob", "gov",
                                        "mil", "ne", "net", "nom", "or", "org", "sch"};

}  // namespace

std::string_view registrableDomain(std::string_view host) {
  const auto canonical = canonicalHost(host);
  if (!canonical || canonical->address) return host;
  const std::size_t last = host.rfind('.');
  if (last == std::string_view::npos || last == 0) return host;
  const auto labelBefore = [&](std::size_t dot) {
    const std::size_t previous = dot == 0 ? std::string_view::npos : host.rfind('.', dot - 1);
    return previous == std::string_view::npos ? 0 : previous + 1;
  };
  std::size_t begin = labelBefore(last);
  const bool country = host.size() - last - 1 == 2;
  const std::string_view second = host.substr(begin, last - begin);
  if (country && begin > 0 && std::ranges::find(kShared, second) != std::end(kShared)) begin = labelBefore(begin - 1);
  return host.substr(begin);
}

std::string shortened(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  const std::size_t kept = most - std::min(most, kDots.size());
  const std::size_t head = kept / 2;
  return std::string(text.substr(0, head)).append(kDots).append(text.substr(text.size() - (kept - head)));
}

std::string shownQuestion(std::string_view target) {
  if (target.size() <= kPlain) return "host:" + std::string(target);
  const std::size_t colon = target.rfind(':');
  const std::string_view domain = registrableDomain(target.substr(0, colon));
  return shortened(domain, kDomain) + ", host:" + shortened(target, kShortened);
}

}  // namespace caisson::egress
