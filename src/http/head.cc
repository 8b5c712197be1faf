#include "http/head.h"

#include <algorithm>
#include <limits>

#include <boost/asio/buffer.hpp>

#include "base/text.h"

namespace caisson::http {
namespace {

/// Header names that change how a request is read; two of them would let two readers disagree.
bool mustBeUnique(std::string_view name) {
  return name == "host" || name == "content-length" || name == "transfer-encoding" || name == "authorization" ||
         name == "origin" || name == "content-type" || name == "idempotency-key" || name == "last-event-id" ||
         name.starts_with("mcp-");
}

bool hasToken(const std::string* header, std::string_view token) {
  if (header == nullptr) return false;
  const std::string text = lowered(*header);
  const auto parts = split(text, ',');
  return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) { return trimmed(part) == token; });
}

}  // namespace

int parseHead(std::string_view text, std::size_t limit, MessageParser<true>& parser, RequestHead& head,
              std::string& reason) {
  reason = findHeadFlaw(text);
  if (!reason.empty()) return 400;
  parser.header_limit(static_cast<std::uint32_t>(limit + 1));
  parser.body_limit(std::numeric_limits<std::uint64_t>::max());  // ours are checked as bytes arrive
  boost::system::error_code code;
  parser.put(boost::asio::buffer(text.data(), text.size()), code);
  if (code == beast::http::error::header_limit) {
    reason = "too many headers";
    return 431;
  }
  if (code || !parser.is_header_done()) {
    reason = "malformed request";
    return 400;
  }
  head.method = parser.method;
  head.headers = parser.headers;
  for (auto one = head.headers.begin(); one != head.headers.end(); ++one) {
    const bool repeated =
        std::any_of(head.headers.begin(), one, [&](const auto& other) { return other.first == one->first; });
    if (repeated && mustBeUnique(one->first)) {
      reason = "repeated header " + one->first;
      return 400;
    }
  }
  auto target = parseTarget(parser.target);
  if (!target) {
    reason = "malformed request target";
    return 400;
  }
  head.target = *std::move(target);
  const bool http_1_0 = parser.version < 11;
  if (!http_1_0 && head.header("host") == nullptr) {
    reason = "missing Host header";
    return 400;
  }
  const std::string* encoding = head.header("transfer-encoding");
  if (encoding != nullptr && (lowered(*encoding) != "chunked" || http_1_0)) {
    reason = "unsupported transfer encoding";
    return 501;
  }
  const std::string* expect = head.header("expect");
  if (expect != nullptr && lowered(*expect) != "100-continue") {
    reason = "unknown expectation";
    return 417;
  }
  if (parser.content_length()) head.content_length = *parser.content_length();
  head.has_body = parser.chunked() || head.content_length.value_or(0) > 0;
  head.upgrades = head.method == "GET" && !head.has_body && hasToken(head.header("upgrade"), "websocket") &&
                  hasToken(head.header("connection"), "upgrade") && head.header("sec-websocket-key") != nullptr &&
                  head.header("sec-websocket-version") != nullptr && *head.header("sec-websocket-version") == "13";
  return 0;
}

bool feedBody(MessageParser<true>& parser, std::string& input, std::size_t limit) {
  parser.eager(true);
  while (!parser.is_done() && !input.empty()) {
    boost::system::error_code code;
    const std::size_t used = parser.put(boost::asio::buffer(input), code);
    input.erase(0, used);
    if (code == beast::http::error::need_more) return input.size() < limit;  // an endless head of a chunk
    if (code) return false;
    if (used == 0) break;
  }
  return true;
}

}  // namespace caisson::http
