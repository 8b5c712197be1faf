#include <cstdint>
#include <cstdlib>
#include <span>

#include "egress/socks.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace caisson::egress;
  const std::span bytes(data, size);
  const socks::Step greeting = socks::parseGreeting(bytes);
  if (greeting.used > size) std::abort();
  const socks::Request request = socks::parseRequest(bytes);
  if (request.step.used > size) std::abort();
  if (request.step.kind == socks::Step::Kind::done && request.target.port == 0) std::abort();
  return 0;
}
