// The bytes of an HTTP connection: read in pieces of any size they give the same requests, and a request that is
// accepted keeps the promises of the reader.
#include <cstdint>
#include <cstdlib>

#include "mcp/http/headers.h"
#include "mcp/http/request.h"

namespace {

using namespace caisson::mcp;

std::vector<std::string> read(std::string_view bytes, std::size_t piece) {
  HttpReader reader({.head = 1024, .headers = 20, .body = 1024});
  std::vector<std::string> found;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    reader.add(bytes.substr(at, piece));
    for (;;) {
      HttpReader::Next next = reader.next();
      if (std::holds_alternative<HttpReader::NeedsMore>(next)) break;
      if (std::holds_alternative<HttpRefusal>(next)) return found;
      const auto& request = std::get<HttpRequest>(next);
      if (request.header("transfer-encoding") != nullptr || request.body.size() > 1024) std::abort();
      for (const auto& [name, value] : request.headers) {
        if (name.empty() || value.find_first_of(std::string_view("\r\n\0", 3)) != std::string::npos) std::abort();
        static_cast<void>(decodeHeaderValue(value));
        static_cast<void>(isLoopbackOrigin(value));
        static_cast<void>(isLoopbackAuthority(value));
      }
      found.push_back(request.method + " " + request.target + " " + request.body);
    }
  }
  return found;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto whole = read(bytes, bytes.size() + 1);
  const auto pieces = read(bytes, 7);
  // A refusal may come earlier in pieces (a head that grows too large); what was accepted is the same.
  for (std::size_t at = 0; at < std::min(whole.size(), pieces.size()); ++at)
    if (whole[at] != pieces[at]) std::abort();
  return 0;
}
