// TLS hellos: the same verdict however the bytes arrive.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "egress/client_hello.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using caisson::egress::ClientHello;
  using caisson::egress::parseClientHello;
  const std::span bytes(data, size);
  const ClientHello whole = parseClientHello(bytes);
  for (std::size_t length = 0; length < size && length < 512; ++length) {
    const ClientHello part = parseClientHello(bytes.first(length));
    if (part.kind == ClientHello::Kind::more) continue;
    if (part.kind != whole.kind || part.name != whole.name || part.encrypted != whole.encrypted) std::abort();
    break;
  }
  return 0;
}
