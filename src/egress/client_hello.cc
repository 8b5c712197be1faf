#include "egress/client_hello.h"

#include <algorithm>
#include <vector>

namespace caisson::egress {
namespace {

constexpr std::uint8_t kHandshake = 22, kHello = 1;
constexpr std::uint16_t kServerName = 0;
/// Extensions that hide the name: encrypted client hello with its drafts and companions, and encrypted names.
constexpr std::uint16_t kHiding[] = {0xfe08, 0xfe09, 0xfe0a, 0xfe0b, 0xfe0c, 0xfe0d,
                                     0xfd00, 0xda09, 0xff02, 0xff03, 0xffce};

/// Reads big-endian numbers and slices; after one failure every read fails.
class Reader {
 public:
  explicit Reader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  std::size_t number(std::size_t size) {
    const auto piece = take(size);
    std::size_t value = 0;
    for (const std::uint8_t byte : piece) value = value << 8 | byte;
    return value;
  }
  std::span<const std::uint8_t> take(std::size_t size) {
    if (failed_ || size > bytes_.size()) {
      failed_ = true;
      return {};
    }
    const auto piece = bytes_.first(size);
    bytes_ = bytes_.subspan(size);
    return piece;
  }
  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] bool empty() const { return bytes_.empty(); }

 private:
  std::span<const std::uint8_t> bytes_;
  bool failed_ = false;
};

ClientHello bad(std::string_view flaw) {
  ClientHello hello;
  hello.kind = ClientHello::Kind::bad;
  hello.flaw = flaw;
  return hello;
}

bool readServerName(std::span<const std::uint8_t> body, ClientHello& hello) {
  Reader reader(body);
  Reader list(reader.take(reader.number(2)));
  if (reader.failed() || !reader.empty()) return false;
  const std::size_t type = list.number(1);
  const auto name = list.take(list.number(2));
  if (list.failed() || !list.empty() || type != 0 || name.empty()) return false;  // one name, of type host_name
  hello.has_name = true;
  hello.name.assign(name.begin(), name.end());
  return true;
}

ClientHello parseBody(std::span<const std::uint8_t> body) {
  ClientHello hello;
  hello.kind = ClientHello::Kind::tls;
  Reader reader(body);
  reader.take(2 + 32);  // version, random
  reader.take(reader.number(1));
  reader.take(reader.number(2));
  reader.take(reader.number(1));
  if (reader.failed()) return bad("a field is cut short");
  if (reader.empty()) return hello;  // no extensions: an old client
  Reader extensions(reader.take(reader.number(2)));
  if (reader.failed() || !reader.empty()) return bad("the extensions are cut short");
  while (!extensions.empty()) {
    const std::size_t type = extensions.number(2);
    const auto content = extensions.take(extensions.number(2));
    if (extensions.failed()) return bad("an extension is cut short");
    if (std::ranges::find(kHiding, type) != std::end(kHiding)) hello.encrypted = true;
    if (type != kServerName) continue;
    if (hello.has_name) return bad("two server names");
    if (!readServerName(content, hello)) return bad("the server name is malformed");
  }
  return hello;
}

}  // namespace

ClientHello parseClientHello(std::span<const std::uint8_t> bytes) {
  ClientHello none;
  none.kind = ClientHello::Kind::none;
  if (bytes.empty()) return {};
  if (bytes[0] != kHandshake) return none;
  if (bytes.size() >= 2 && bytes[1] != 3) return none;

  std::vector<std::uint8_t> message;  // the handshake bytes without record headers
  std::size_t at = 0;
  while (at + 5 <= bytes.size()) {
    if (bytes[at] != kHandshake || bytes[at + 1] != 3) return bad("another record in the middle of the hello");
    const std::size_t size = static_cast<std::size_t>(bytes[at + 3]) << 8 | bytes[at + 4];
    if (size == 0 || size > kHelloBytes) return bad("a record of an impossible size");
    const std::size_t have = std::min(size, bytes.size() - at - 5);
    message.insert(message.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at + 5),
                   bytes.begin() + static_cast<std::ptrdiff_t>(at + 5 + have));
    at += 5 + size;
    if (!message.empty() && message[0] != kHello) return bad("the first message is not a hello");
    if (message.size() < 4) continue;
    const std::size_t length =
        static_cast<std::size_t>(message[1]) << 16 | static_cast<std::size_t>(message[2]) << 8 | message[3];
    if (length + 4 > kHelloBytes) return bad("the hello is too large");
    if (message.size() >= length + 4) return parseBody(std::span(message).subspan(4, length));
  }
  if (bytes.size() >= kHelloBytes + 1024) return bad("the hello is too large");
  return {};
}

}  // namespace caisson::egress
