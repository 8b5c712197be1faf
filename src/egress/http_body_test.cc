#include "egress/http_body.h"

#include <gtest/gtest.h>

#include <string>

namespace caisson::egress::http {
namespace {

BodyFramer chunked() { return BodyFramer({Framing::Kind::chunked, 0}); }

TEST(BodyFramer, EndsAtTheLength) {
  BodyFramer framer({Framing::Kind::length, 5});
  EXPECT_EQ(framer.feed("abc"), 3U);
  EXPECT_FALSE(framer.done());
  EXPECT_EQ(framer.feed("deGET /"), 2U);
  EXPECT_TRUE(framer.done());
  EXPECT_TRUE(BodyFramer({Framing::Kind::none, 0}).done());
}

TEST(BodyFramer, EndsAfterTheLastChunkAndItsTrailers) {
  const std::string body = "5\r\nhello\r\nA;x=y\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n";
  BodyFramer framer = chunked();
  EXPECT_EQ(framer.feed(body + "GET /"), body.size());
  EXPECT_TRUE(framer.done());
  BodyFramer slow = chunked();
  for (std::size_t i = 0; i < body.size(); ++i) {
    EXPECT_FALSE(slow.done());
    EXPECT_EQ(slow.feed(std::string_view(body).substr(i, 1)), 1U);
  }
  EXPECT_TRUE(slow.done());
}

TEST(BodyFramer, SeparatesExtensionsAndTrailersFromTheBody) {
  const std::string body = "5;a=\"s3cr3t\";b\r\nhello\r\nA\r\n0123456789\r\n0;c\r\nTrailer: x\r\nOther: y\r\n\r\n";
  for (std::size_t piece = 1; piece <= body.size(); ++piece) {
    BodyFramer framer = chunked();
    std::string out, trailers;
    for (std::size_t at = 0; at < body.size(); at += piece) {
      framer.feed(std::string_view(body).substr(at, piece), out, trailers);
    }
    EXPECT_TRUE(framer.done());
    EXPECT_EQ(out, "5\r\nhello\r\nA\r\n0123456789\r\n0\r\n");
    EXPECT_EQ(trailers, "Trailer: x\r\nOther: y\r\n\r\n");
  }
}

TEST(BodyFramer, RejectsMalformedChunks) {
  for (const char* body : {"5\nhello\r\n", "\r\n", "g\r\n", "5 \r\nhello", "5\r\nhelloX", "5\r\nhello\n", "-5\r\n",
                           "0x5\r\n", "1234567890123456\r\n", "5;\x01\r\n", "0\r\n\n", "5\r\rhello"}) {
    BodyFramer framer = chunked();
    framer.feed(body);
    EXPECT_TRUE(framer.bad()) << body;
    EXPECT_FALSE(framer.done()) << body;
  }
}

}  // namespace
}  // namespace caisson::egress::http
