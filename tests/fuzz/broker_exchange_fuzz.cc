// Any bytes of a client and of a host: a credential goes out once per request, only whole, and only for the host.
#include <cstdint>
#include <cstdlib>

#include "broker/exchange.h"

namespace {

using namespace caisson;

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::string_view kSecret = "s3cr3t-token-42";
  constexpr std::string_view kLine = "\r\nAuthorization: Bearer s3cr3t-token-42\r\n";
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  broker::Exchange exchange({{"api.example.org", std::nullopt}, 443},
                            {{"api", "Authorization", "Bearer s3cr3t-token-42", kSecret}});
  std::string upstream, said;
  std::size_t used = 0;
  const auto take = [&] {
    upstream += exchange.toUpstream();
    exchange.toUpstream().clear();
    exchange.toClient().clear();
    for (const auto& event : exchange.takeEvents()) used += event.used ? 1 : 0;
    exchange.advance();
  };
  // 0xff changes the side; the first byte says when the host is proved.
  bool client = true;
  std::size_t pieces = 0;
  const std::size_t proved_at = size > 0 ? data[0] % 4 : 0;
  for (std::size_t begin = size > 0 ? 1 : 0; begin <= size && !exchange.finished();) {
    std::size_t end = begin;
    while (end < size && data[end] != 0xff) ++end;
    if (pieces++ == proved_at) {
      if (!upstream.empty()) std::abort();  // before the host was proved
      exchange.hostProved();
    }
    const std::string_view piece = bytes.substr(begin, end - begin);
    client ? exchange.fromClient(piece) : exchange.fromUpstream(piece);
    if (client) said += piece;
    take();
    client = !client;
    begin = end + 1;
  }
  if (said.find(kSecret) != std::string::npos) return 0;  // then it is not a secret
  if (count(upstream, kSecret) != used || count(upstream, kLine) != used) std::abort();
  return 0;
}
