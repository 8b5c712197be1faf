// HTTP heads and bodies: a request that is accepted says the same after it was rewritten for the origin server.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "egress/http_body.h"
#include "egress/http_head.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace caisson::egress;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const http::RequestHead head = http::parseRequest(bytes, 80);
  if (head.status == http::Status::done) {
    if (head.used > size) std::abort();
    if (!head.connect && head.has_authority) {
      const std::string rewritten = http::rewriteForOrigin(head, {});
      const http::RequestHead again = http::parseRequest(rewritten, 80);
      if (again.status != http::Status::done || again.used != rewritten.size()) std::abort();
      if (again.authority.host != head.authority.host || again.authority.port != head.authority.port) std::abort();
      if (again.body.kind != head.body.kind || again.body.length != head.body.length) std::abort();
      if (again.method != head.method || again.path != head.path) std::abort();
    }
    http::BodyFramer framer(head.body);
    if (framer.feed(bytes.substr(head.used)) > size - head.used) std::abort();
  }
  const http::ResponseHead response = http::parseResponse(bytes, false);
  if (response.status == http::Status::done && response.used > size) std::abort();
  http::BodyFramer whole({http::Framing::Kind::chunked, 0});
  http::BodyFramer parts({http::Framing::Kind::chunked, 0});
  const std::size_t used = whole.feed(bytes);
  std::size_t sum = 0;
  for (std::size_t i = 0; i < size && !parts.done() && !parts.bad(); ++i) sum += parts.feed(bytes.substr(i, 1));
  if (used != sum || whole.done() != parts.done()) std::abort();
  (void)http::looksLikeRequest(bytes);
  return 0;
}
