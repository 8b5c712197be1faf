#include "broker/mask.h"

#include <gtest/gtest.h>

namespace caisson::broker {
namespace {

const std::vector<std::string_view> kSecrets{"s3cr3t-token-42", "another-secret"};

std::string frame(std::string_view payload, char first = '\x81') {
  std::string bytes(1, first);
  if (payload.size() < 126) {
    bytes += static_cast<char>(payload.size());
  } else {
    bytes += '\x7e';
    bytes += static_cast<char>(payload.size() >> 8);
    bytes += static_cast<char>(payload.size());
  }
  return bytes.append(payload);
}

TEST(FrameMasker, OverwritesSecretsAndKeepsTheLength) {
  const std::string in =
      frame("a s3cr3t-token-42 b") + frame("") + frame("another-secret") + frame(std::string(300, 'x'));
  const std::string expected = frame("a " + std::string(15, '*') + " b") + frame("") + frame(std::string(14, '*')) +
                               frame(std::string(300, 'x'));
  for (std::size_t piece = 1; piece <= in.size(); ++piece) {
    FrameMasker masker;
    std::string out;
    for (std::size_t at = 0; at < in.size(); at += piece) {
      ASSERT_TRUE(masker.feed(std::string_view(in).substr(at, piece), kSecrets, out));
    }
    ASSERT_EQ(out, expected) << piece;
  }
}

TEST(FrameMasker, EndOfAFrameIsNeverHeldBack) {
  FrameMasker masker;
  std::string out;
  EXPECT_TRUE(masker.feed(frame("it ends like s3cr3t-tok"), kSecrets, out));
  EXPECT_EQ(out, frame("it ends like s3cr3t-tok"));
}

TEST(FrameMasker, ExtensionsAndMasksAreRefused) {
  for (const char* head : {"\xc1\x05hello", "\x81\x85hello", "\x81\xff"}) {
    FrameMasker masker;
    std::string out;
    EXPECT_FALSE(masker.feed(head, kSecrets, out));
  }
  FrameMasker masker;
  std::string out;
  EXPECT_FALSE(masker.feed("\x81\x7f\xff\xff\xff\xff\xff\xff\xff\xff", kSecrets, out)) << "longer than any frame";
}

}  // namespace
}  // namespace caisson::broker
