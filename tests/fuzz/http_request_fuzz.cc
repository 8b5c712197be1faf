// The bytes of an HTTP connection: read in pieces of any size they give the same requests, and a request that is
// accepted keeps the promises of the reader. The rest of a request is read by smaller functions, which get the same
// bytes.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "http/head.h"
#include "http/websocket.h"
#include "mcp/http/headers.h"

namespace {

using namespace caisson::http;

constexpr std::size_t kHead = 1024;
constexpr std::size_t kBody = 4096;

void check(const RequestHead& head) {
  for (const std::string& segment : head.target.segments)
    if (segment.empty() || segment == "." || segment == ".." || segment.find('\0') != std::string::npos) std::abort();
  for (const auto& [name, value] : head.headers) {
    if (name.empty() || value.find_first_of(std::string_view("\r\n\0", 3)) != std::string::npos) std::abort();
    const auto authority = parseAuthority(value);
    if (authority && isLoopback(*authority) && authority->host.find("evil") != std::string::npos) std::abort();
    static_cast<void>(parseOrigin(value));
    static_cast<void>(caisson::mcp::decodeHeaderValue(value));
    const Range range = parseRange(value, 1000);
    if (!range.unsatisfiable && range.offset + range.length > 1000) std::abort();
  }
}

/// The requests in these bytes, as the server would read them from pieces of this size.
std::vector<std::string> readRequests(std::string_view bytes, std::size_t piece) {
  std::vector<std::string> found;
  std::string inbox;
  std::unique_ptr<MessageParser<true>> parser;
  RequestHead head;
  std::string body;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    inbox.append(bytes.substr(at, piece));
    for (;;) {
      if (!parser) {
        const std::size_t end = inbox.find("\r\n\r\n");
        if (end == std::string::npos || end + 4 > kHead) break;
        parser = std::make_unique<MessageParser<true>>(20);
        head = {};
        body.clear();
        std::string reason;
        if (parseHead(inbox.substr(0, end + 4), kHead, *parser, head, reason) != 0) return found;
        inbox.erase(0, end + 4);
        check(head);
      }
      if (!feedBody(*parser, inbox, kHead)) return found;
      body += std::exchange(parser->body, "");
      if (body.size() > kBody) return found;
      if (!parser->is_done()) break;
      found.push_back(head.method + " " + head.target.text + " " + body);
      parser.reset();
    }
    if (inbox.size() > kHead + kBody) return found;
  }
  return found;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto whole = readRequests(bytes, bytes.size() + 1);
  const auto pieces = readRequests(bytes, 7);
  // A refusal may come earlier in pieces (a head that grows too large); what was accepted is the same.
  for (std::size_t at = 0; at < std::min(whole.size(), pieces.size()); ++at)
    if (whole[at] != pieces[at]) std::abort();
  std::optional<CloseCode> failure;
  std::size_t at = 0;
  for (std::size_t before = 0; const auto frame = takeFrame(bytes, at, failure); before = at)
    if (frame->payload.size() > kMaxFrame || at <= before || at > bytes.size()) std::abort();
  return 0;
}
