#include "base/sha256.h"

#include <gtest/gtest.h>

namespace caisson {
namespace {

std::string sum(std::string_view text) { return hex(Sha256().add(text).finish()); }

/// The examples of FIPS 180-4, and lengths around the padding boundary (computed with coreutils' sha256sum).
TEST(Sha256, KnownAnswers) {
  EXPECT_EQ(sum(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sum("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sum("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sum(std::string(1'000'000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  EXPECT_EQ(sum(std::string(55, 'a')), "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
  EXPECT_EQ(sum(std::string(56, 'a')), "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a");
  EXPECT_EQ(sum(std::string(64, 'a')), "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
}

TEST(Sha256, PiecesHashLikeTheWhole) {
  const std::string text(1000, 'x');
  for (std::size_t size = 1; size < 200; size += 7) {
    Sha256 pieces;
    for (std::size_t at = 0; at < text.size(); at += size) pieces.add(std::string_view(text).substr(at, size));
    EXPECT_EQ(hex(pieces.finish()), sum(text)) << size;
  }
}

TEST(Sha256, TheProcessorsInstructionsGiveTheSame) {
  std::string text;
  for (int size = 0; size < 300; ++size) {
    const std::string portable = hex(Sha256(Sha256::Way::portable).add(text).finish());
    EXPECT_EQ(sum(text), portable) << size;
    text += static_cast<char>(size * 37 + 11);
  }
}

TEST(Sha256, HexRoundTripsAndMalformedHexIsRejected) {
  const Digest digest = Sha256().add("x").finish();
  Digest read{};
  ASSERT_TRUE(readHex(hex(digest), read));
  EXPECT_EQ(read, digest);
  std::string upper = hex(digest);
  upper[0] = 'A';
  EXPECT_FALSE(readHex(upper, read));
  EXPECT_FALSE(readHex(hex(digest).substr(1), read));
  EXPECT_FALSE(readHex("", read));
}

}  // namespace
}  // namespace caisson
