#include "egress/client_hello.h"

#include <gtest/gtest.h>

#include <vector>

namespace caisson::egress {
namespace {

using Bytes = std::vector<std::uint8_t>;

void put16(Bytes& out, std::size_t value) {
  out.push_back(static_cast<std::uint8_t>(value >> 8));
  out.push_back(static_cast<std::uint8_t>(value));
}

Bytes extension(std::size_t type, const Bytes& content) {
  Bytes out;
  put16(out, type);
  put16(out, content.size());
  out.insert(out.end(), content.begin(), content.end());
  return out;
}

Bytes serverName(std::string_view name) {
  Bytes content;
  put16(content, name.size() + 3);
  content.push_back(0);
  put16(content, name.size());
  content.insert(content.end(), name.begin(), name.end());
  return extension(0, content);
}

/// A hello with these extensions, in records of at most `record` bytes.
Bytes hello(const std::vector<Bytes>& extensions, std::size_t record = 16384) {
  Bytes body{3, 3};
  body.resize(34, 7);
  body.push_back(0);
  put16(body, 2);
  put16(body, 0x1301);
  body.insert(body.end(), {1, 0});
  Bytes list;
  for (const Bytes& item : extensions) list.insert(list.end(), item.begin(), item.end());
  put16(body, list.size());
  body.insert(body.end(), list.begin(), list.end());
  Bytes message{1, 0};
  put16(message, body.size());
  message.insert(message.end(), body.begin(), body.end());
  Bytes out;
  for (std::size_t at = 0; at < message.size(); at += record) {
    const std::size_t size = std::min(record, message.size() - at);
    out.insert(out.end(), {22, 3, 1});
    put16(out, size);
    out.insert(out.end(), message.begin() + static_cast<std::ptrdiff_t>(at),
               message.begin() + static_cast<std::ptrdiff_t>(at + size));
  }
  return out;
}

TEST(ClientHello, HasTheServerName) {
  const ClientHello parsed = parseClientHello(hello({serverName("example.org")}));
  EXPECT_EQ(parsed.kind, ClientHello::Kind::tls);
  EXPECT_TRUE(parsed.has_name);
  EXPECT_EQ(parsed.name, "example.org");
  EXPECT_FALSE(parsed.encrypted);
}

TEST(ClientHello, FindsANameSplitAcrossRecords) {
  for (std::size_t record = 1; record < 80; record += 7) {
    const ClientHello parsed = parseClientHello(hello({serverName("example.org")}, record));
    EXPECT_EQ(parsed.kind, ClientHello::Kind::tls) << record;
    EXPECT_EQ(parsed.name, "example.org") << record;
  }
}

TEST(ClientHello, WaitsWhenItComesByteByByte) {
  const Bytes whole = hello({serverName("example.org")}, 20);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_EQ(parseClientHello(std::span(whole).first(size)).kind, ClientHello::Kind::more) << size;
  }
}

TEST(ClientHello, DetectsAMissingOrEncryptedName) {
  EXPECT_FALSE(parseClientHello(hello({})).has_name);
  EXPECT_TRUE(parseClientHello(hello({serverName("cover.example"), extension(0xfe0d, {0, 1, 2})})).encrypted);
}

TEST(ClientHello, RefusesTwoNamesAndMalformedOnes) {
  EXPECT_EQ(parseClientHello(hello({serverName("a.example"), serverName("b.example")})).kind, ClientHello::Kind::bad);
  EXPECT_EQ(parseClientHello(hello({extension(0, {0, 9, 0, 0, 1})})).kind, ClientHello::Kind::bad);
  EXPECT_EQ(parseClientHello(hello({extension(0, {})})).kind, ClientHello::Kind::bad);
  Bytes lying = hello({serverName("example.org")});
  lying[43 + 5] = 0xff;  // the session id's length
  EXPECT_EQ(parseClientHello(lying).kind, ClientHello::Kind::bad);
}

TEST(ClientHello, RefusesAnotherRecordInTheMiddle) {
  Bytes mixed = hello({serverName("example.org")}, 20);
  mixed[25] = 23;
  EXPECT_EQ(parseClientHello(mixed).kind, ClientHello::Kind::bad);
}

TEST(ClientHello, KnowsEveryExtensionThatHidesTheName) {
  for (const unsigned type :
       {0xfe08U, 0xfe09U, 0xfe0aU, 0xfe0bU, 0xfe0cU, 0xfe0dU, 0xfd00U, 0xda09U, 0xff02U, 0xff03U, 0xffceU}) {
    const Bytes hidden{static_cast<std::uint8_t>(type >> 8), static_cast<std::uint8_t>(type), 0, 1, 0};
    const ClientHello parsed = parseClientHello(hello({serverName("example.org"), hidden}));
    EXPECT_EQ(parsed.kind, ClientHello::Kind::tls) << type;
    EXPECT_TRUE(parsed.encrypted) << type;
  }
  EXPECT_FALSE(parseClientHello(hello({serverName("example.org"), {0xfe, 0x07, 0, 1, 0}})).encrypted);
}

TEST(ClientHello, IsBoundedInSize) {
  Bytes endless{22, 3, 1, 0x40, 0, 1, 0, 0xff, 0xff};
  EXPECT_EQ(parseClientHello(endless).kind, ClientHello::Kind::bad);
}

TEST(ClientHello, OtherProtocolsAreNotTls) {
  for (const std::string_view text : {"GET / HTTP/1.1\r\n", "SSH-2.0-x\r\n", "\x16\x02"}) {
    const Bytes bytes(text.begin(), text.end());
    EXPECT_EQ(parseClientHello(bytes).kind, ClientHello::Kind::none) << text;
  }
}

}  // namespace
}  // namespace caisson::egress
