#include "approval/image_signatures.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "support/temp_dir.h"

namespace caisson::approval {
namespace {

using Ids = std::vector<std::string>;

class ImageSignatures : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* key : {"one.pem", "two.pem"}) {
      directory.write(key, key);
      ::chmod((directory / key).c_str(), 0600);
    }
  }
  [[nodiscard]] bool allowed(const std::string& name, const Ids& signed_by, const ImageSettings& settings) const {
    return requireSignedBy(name, name, signed_by, settings).has_value();
  }

  const test::TempDir directory;
  const std::string one = signatureKeyId("one.pem"), two = signatureKeyId("two.pem");
};

TEST_F(ImageSignatures, StoredImageNeedsAKeyOfEveryRuleForItsName) {
  ImageSettings settings;
  settings.signatures = {{"a.example/team/*", directory / "one.pem", "user"}};
  EXPECT_FALSE(allowed("a.example/team/app", {}, settings));
  EXPECT_FALSE(allowed("a.example/team/app", {two}, settings));
  EXPECT_TRUE(allowed("a.example/team/app", {two, one}, settings));
  EXPECT_TRUE(allowed("a.example/other", {}, settings));
  settings.signatures.push_back({"a.example/team/*", directory / "two.pem", "user"});
  EXPECT_TRUE(allowed("a.example/team/app", {two}, settings)) << "one key of a group is enough";
  settings.signatures.push_back({"a.example/*", directory / "one.pem", "system"});
  EXPECT_FALSE(allowed("a.example/team/app", {two}, settings)) << "each group counts";
}

TEST_F(ImageSignatures, ExchangedKeyIsAnotherKey) {
  ImageSettings settings;
  settings.signatures = {{"a.example/*", directory / "one.pem", "user"}};
  EXPECT_TRUE(allowed("a.example/app", {one}, settings));
  directory.write("one.pem", "a new key");
  EXPECT_FALSE(allowed("a.example/app", {one}, settings));
}

TEST(SignaturePatterns, AreWrittenAsTheNamesOfImages) {
  for (const auto& [pattern, canonical] :
       std::map<std::string, std::string>{{"victim", "docker.io/library/victim"},
                                          {"team/app", "docker.io/team/app"},
                                          {"docker.io/victim", "docker.io/library/victim"},
                                          {"index.docker.io/library/victim", "docker.io/library/victim"},
                                          {"DOCKER.IO/library/victim", "docker.io/library/victim"},
                                          {"GHCR.io/Team*", ""},
                                          {"GHCR.io/team*", "ghcr.io/team*"},
                                          {"localhost:5000/*", "localhost:5000/*"},
                                          {"docker.io/library/*", "docker.io/library/*"},
                                          {"docker.io/vic*", "docker.io/vic*"},
                                          {"team/*", "docker.io/team/*"},
                                          {"*", "*"}}) {
    const auto read = canonicalPattern(pattern);
    EXPECT_EQ(read ? *read : "", canonical) << pattern;
  }
  EXPECT_TRUE(matchesImage("docker.io/vic*", "docker.io/library/victim"));
  EXPECT_TRUE(matchesImage("docker.io/vic*", "docker.io/victor/app"));
  EXPECT_FALSE(matchesImage("docker.io/vic*", "ghcr.io/library/victim"));
  EXPECT_FALSE(matchesImage("docker.io/team/*", "docker.io/library/team"));
}

/// Such a rule would match no image, and let each pass.
TEST(SignaturePatterns, ThatNoNameCanMatchAreRefused) {
  for (const char* pattern :
       {"docker.io/library/victim:1", "victim:1", "docker.io/library/victim:*", "victim:*", "docker.io/library/vic*m",
        "docker.io/library/victim@sha256:x", "docker.io/library/victim/", "vic*", "**", "docker.io//*",
        "docker.io/library/victim ", "docker.io/lib..*", "http://docker.io/library/*"}) {
    const auto read = canonicalPattern(pattern);
    ASSERT_FALSE(read) << pattern << ": " << *read;
    EXPECT_NE(read.error().hint.find("docker.io/library/"), std::string::npos) << pattern << ": " << read.error().hint;
  }
  EXPECT_NE(canonicalPattern("victim:1").error().hint.find("\"docker.io/library/victim\""), std::string::npos);
}

}  // namespace
}  // namespace caisson::approval
