#include "image/reference.h"

#include <gtest/gtest.h>

namespace caisson::image {
namespace {

const std::string kHex(64, 'a');

std::string full(std::string_view text) {
  const auto parsed = Reference::parse(text);
  return parsed ? parsed->text() : "refused";
}

TEST(ImageReference, ShortNamesGetDockersDefaults) {
  EXPECT_EQ(full("debian"), "docker.io/library/debian:latest");
  EXPECT_EQ(full("debian:12"), "docker.io/library/debian:12");
  EXPECT_EQ(full("team/app"), "docker.io/team/app:latest");
  EXPECT_EQ(full("index.docker.io/team/app"), "docker.io/team/app:latest");
  EXPECT_EQ(full("localhost/app"), "localhost/app:latest");
  EXPECT_EQ(full("localhost:5000/a/b:c"), "localhost:5000/a/b:c");
  EXPECT_EQ(full("[::1]:5000/a"), "[::1]:5000/a:latest");
}

TEST(ImageReference, AddressEndsWithItsBracket) {
  const std::string with_nul("[::\0.]/a", 8);
  EXPECT_FALSE(Reference::parse(with_nul));
}

/// A rule for ghcr.io must also hold for what is called ghcr.io:443.
TEST(ImageReference, DefaultPortIsNotPartOfTheName) {
  EXPECT_EQ(full("ghcr.io:443/a/b"), "ghcr.io/a/b:latest");
  EXPECT_EQ(full("GHCR.io:00443/a/b"), "ghcr.io/a/b:latest");
  EXPECT_EQ(full("index.docker.io:443/team/app"), "docker.io/team/app:latest");
  EXPECT_EQ(full("docker.io:443/debian"), "docker.io/library/debian:latest");
  EXPECT_EQ(full("[::1]:443/a"), "[::1]/a:latest");
  EXPECT_EQ(full("ghcr.io:05000/a"), "ghcr.io:5000/a:latest");
  EXPECT_EQ(full("registry:443/a"), "registry:443/a:latest") << "registry/a is another image";
}

TEST(ImageReference, DigestReplacesTheDefaultTag) {
  EXPECT_EQ(full("debian@sha256:" + kHex), "docker.io/library/debian@sha256:" + kHex);
  EXPECT_EQ(full("debian:12@sha256:" + kHex), "docker.io/library/debian:12@sha256:" + kHex);
}

TEST(ImageReference, FamiliarNameOmitsDefaults) {
  EXPECT_EQ(Reference::parse("debian:12")->familiar(), "debian:12");
  EXPECT_EQ(Reference::parse("ghcr.io/a/b")->familiar(), "ghcr.io/a/b:latest");
  EXPECT_EQ(Reference::parse("team/app:1")->familiar(), "team/app:1");
}

TEST(ImageReference, InvalidNamesAreRefused) {
  const std::string bad[] = {"",
                             ":tag",
                             "UPPER",
                             "a//b",
                             "a/",
                             "/a",
                             "a..b",
                             "a___b",
                             "-a",
                             "a-",
                             "a:",
                             "a:-x",
                             "a:b c",
                             "../../etc",
                             "a/../b",
                             "a@sha256:12",
                             "a@md5:" + kHex,
                             "a@",
                             "x.y:port/a",
                             "ex ample.com/a",
                             "a\nb",
                             "a:" + std::string(129, 't'),
                             std::string(300, 'a'),
                             "[::1/a",
                             "[::1..2]/a",
                             "[...5]/a",
                             "[1:2]/a",
                             "host..name.com/a"};
  for (const std::string& text : bad) EXPECT_EQ(full(text), "refused") << text;
}

TEST(ImageReference, RecognisesNamesThatLookLikeIds) {
  const std::string ids[] = {
      "decade",         "caff0123", kHex, "caff0123:latest", "docker.io/library/caff0123", "caff0123@sha256:" + kHex,
      "sha256:caff0123"};
  for (const std::string& text : ids) EXPECT_TRUE(Reference::parse(text)->looksLikeId()) << text;
  for (const char* text : {"caffe", "debian", "caff0123:1", "localhost/caff0123", "team/caff0123", "sha256:v1",
                           "sha256", "ghcr.io/caff0123"}) {
    EXPECT_FALSE(Reference::parse(text)->looksLikeId()) << text;
  }
}

}  // namespace
}  // namespace caisson::image
