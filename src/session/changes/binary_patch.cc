#include "session/changes/binary_patch.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "session/changes/git_patch.h"

namespace caisson::session {
namespace {

constexpr std::size_t kStoredBlock = 65535;
constexpr std::size_t kLineBytes = 52;

std::uint32_t adler32(std::string_view data) {
  constexpr std::uint32_t kModulus = 65521;
  constexpr std::size_t kRun = 5552;  // the sums fit into 32 bits for so many bytes
  std::uint32_t a = 1, b = 0;
  while (!data.empty()) {
    const std::string_view run = data.substr(0, kRun);
    for (const char byte : run) {
      a += static_cast<unsigned char>(byte);
      b += a;
    }
    a %= kModulus;
    b %= kModulus;
    data.remove_prefix(run.size());
  }
  return b << 16 | a;
}

void appendBigEndian(std::string& out, std::uint32_t value) {
  for (const int shift : {24, 16, 8, 0}) out += static_cast<char>(value >> shift & 0xFF);
}

/// RFC 1950 and 1951: a zlib stream of stored blocks.
std::string zlibStored(std::string_view data) {
  std::string out("\x78\x01", 2);
  out.reserve(data.size() + data.size() / kStoredBlock * 5 + 16);
  const std::uint32_t sum = adler32(data);
  do {
    const std::string_view block = data.substr(0, kStoredBlock);
    data.remove_prefix(block.size());
    const auto length = static_cast<std::uint16_t>(block.size());
    const auto inverse = static_cast<std::uint16_t>(~length);
    out += static_cast<char>(data.empty() ? 1 : 0);
    for (const std::uint16_t word : {length, inverse}) {
      out += static_cast<char>(word & 0xFF);
      out += static_cast<char>(word >> 8);
    }
    out += block;
  } while (!data.empty());
  appendBigEndian(out, sum);
  return out;
}

void appendBase85(std::string& out, std::string_view bytes) {
  constexpr std::string_view kAlphabet =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";
  for (std::size_t at = 0; at < bytes.size(); at += 4) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      value = value << 8 | (at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0U);
    }
    std::array<char, 5> digits{};
    for (std::size_t i = 5; i-- > 0; value /= 85) digits[i] = kAlphabet[value % 85];
    out.append(digits.data(), digits.size());
  }
}

using Sha1State = std::array<std::uint32_t, 5>;

void sha1Block(Sha1State& state, const unsigned char* block) {
  std::array<std::uint32_t, 80> words;
  for (std::size_t i = 0; i < 16; ++i) {
    words[i] = std::uint32_t{block[4 * i]} << 24 | std::uint32_t{block[4 * i + 1]} << 16 |
               std::uint32_t{block[4 * i + 2]} << 8 | block[4 * i + 3];
  }
  for (std::size_t i = 16; i < 80; ++i) {
    words[i] = std::rotl(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
  }
  auto [a, b, c, d, e] = state;
  for (std::size_t i = 0; i < 80; ++i) {
    const std::uint32_t mixed = i < 20              ? ((b & c) | (~b & d))
                                : i >= 40 && i < 60 ? ((b & c) | (b & d) | (c & d))
                                                    : b ^ c ^ d;
    const std::uint32_t constant = i < 20 ? 0x5A827999 : i < 40 ? 0x6ED9EBA1 : i < 60 ? 0x8F1BBCDC : 0xCA62C1D6;
    const std::uint32_t next = std::rotl(a, 5) + mixed + e + constant + words[i];
    e = d;
    d = c;
    c = std::rotl(b, 30);
    b = a;
    a = next;
  }
  const Sha1State step{a, b, c, d, e};
  for (std::size_t i = 0; i < step.size(); ++i) state[i] += step[i];
}

/// SHA-1 as hexadecimal digits; only for git's object ids, which nothing here trusts.
std::string sha1Hex(std::string message) {
  Sha1State state{0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0};
  const std::uint64_t bits = std::uint64_t{message.size()} * 8;
  message += '\x80';
  while (message.size() % 64 != 56) message += '\0';
  appendBigEndian(message, static_cast<std::uint32_t>(bits >> 32));
  appendBigEndian(message, static_cast<std::uint32_t>(bits));
  for (std::size_t at = 0; at < message.size(); at += 64) {
    sha1Block(state, reinterpret_cast<const unsigned char*>(message.data()) + at);
  }
  std::string hex;
  for (const std::uint32_t word : state) {
    for (int shift = 28; shift >= 0; shift -= 4) hex += "0123456789abcdef"[word >> shift & 15U];
  }
  return hex;
}

}  // namespace

std::string blobId(std::string_view content) {
  std::string message = "blob " + std::to_string(content.size());
  message += '\0';
  message += content;
  return sha1Hex(std::move(message));
}

std::string binaryLiteral(std::string_view content) {
  const std::string stream = zlibStored(content);
  std::string out = "literal " + std::to_string(content.size()) + "\n";
  for (std::size_t at = 0; at < stream.size(); at += kLineBytes) {
    const std::string_view line = std::string_view(stream).substr(at, kLineBytes);
    const auto length = static_cast<char>(line.size());
    out += static_cast<char>(length <= 26 ? 'A' + length - 1 : 'a' + length - 27);
    appendBase85(out, line);
    out += '\n';
  }
  return out + "\n";
}

}  // namespace caisson::session
