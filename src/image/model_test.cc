#include "image/model.h"

#include <gtest/gtest.h>

namespace caisson::image {
namespace {

const std::string kDigest = "sha256:" + std::string(64, 'b');

std::string descriptor(std::string_view type, std::string_view more = "") {
  return R"({"mediaType":")" + std::string(type) + R"(","digest":")" + kDigest + R"(","size":7)" + std::string(more) +
         "}";
}

std::string manifestWith(const std::string& config, const std::string& layers, const std::string& more = "") {
  return R"({"schemaVersion":2,"config":)" + config + R"(,"layers":[)" + layers + "]" + more + "}";
}

TEST(ImageModel, ManifestListsConfigAndLayers) {
  const auto parsed = parseManifest(manifestWith(descriptor(kOciConfig), descriptor(std::string(kOciLayer) + "+gzip")));
  ASSERT_TRUE(parsed) << parsed.error().message();
  EXPECT_EQ(parsed->media_type, kOciManifest);
  ASSERT_EQ(parsed->layers.size(), 1U);
  EXPECT_EQ(parsed->layers[0].size, 7U);
}

TEST(ImageModel, DocumentThatIsIndexAndManifestIsRefused) {
  const std::string both =
      manifestWith(descriptor(kOciConfig), "", R"(,"manifests":[],"mediaType":")" + std::string(kOciManifest) + "\"");
  EXPECT_FALSE(parseManifest(both));
  EXPECT_FALSE(parseIndex(both));
}

TEST(ImageModel, MalformedManifestsAreRefused) {
  const std::string layer = descriptor(std::string(kOciLayer));
  const std::string many = [&] {
    std::string list = layer;
    for (std::size_t count = 0; count < kMaxLayers; ++count) list += "," + layer;
    return list;
  }();
  const std::string bad[] = {"",
                             "[]",
                             "{}",
                             R"({"schemaVersion":1})",
                             manifestWith("7", layer),
                             manifestWith("{}", layer),
                             manifestWith(descriptor("application/json"), layer),
                             manifestWith(descriptor(kOciConfig), descriptor("text/plain")),
                             manifestWith(descriptor(kOciConfig), R"({"digest":"sha256:00","size":1})"),
                             manifestWith(descriptor(kOciConfig), R"({"digest":")" + kDigest + R"(","size":-1})"),
                             manifestWith(descriptor(kOciConfig), many),
                             std::string(kMaxDocument + 1, ' ')};
  for (const std::string& text : bad) EXPECT_FALSE(parseManifest(text)) << text.substr(0, 200);
}

TEST(ImageModel, ConfigHasWhatAContainerNeeds) {
  const auto parsed = parseConfig(R"({"os":"linux","architecture":"arm64","rootfs":{"type":"layers","diff_ids":[")" +
                                  kDigest + R"("]},"config":{"Env":["A=b"],"Cmd":["sh"],"Entrypoint":null,
                                  "WorkingDir":"/w","User":"1000:1000","Labels":{"a":"b"}}})");
  ASSERT_TRUE(parsed) << parsed.error().message();
  EXPECT_EQ(parsed->env, std::vector<std::string>{"A=b"});
  EXPECT_EQ(parsed->cmd, std::vector<std::string>{"sh"});
  EXPECT_TRUE(parsed->entrypoint.empty());
  EXPECT_EQ(parsed->working_dir, "/w");
  EXPECT_EQ(parsed->user, "1000:1000");
  EXPECT_EQ(parsed->diff_ids.size(), 1U);
}

TEST(ImageModel, ConfigWithWrongTypesIsRefused) {
  const std::string rootfs = R"({"rootfs":{"diff_ids":[]},"config":)";
  for (const std::string& text :
       {std::string("{}"), std::string(R"({"rootfs":{"diff_ids":["x"]}})"), rootfs + R"({"Env":"A=b"}})",
        rootfs + R"({"Cmd":[1]}})", rootfs + R"({"Env":["A=\u0000"]}})"}) {
    EXPECT_FALSE(parseConfig(text)) << text;
  }
}

TEST(ImageModel, PlatformIsSelectedByArchitectureThenVariant) {
  const auto entry = [](std::string_view platform, char digit) {
    return Descriptor{.digest = *ContentDigest::parse("sha256:" + std::string(64, digit)),
                      .platform = parsePlatform(platform)};
  };
  const Index index{.manifests = {entry("linux/amd64", '1'), entry("linux/arm/v6", '2'), entry("linux/arm/v7", '3'),
                                  entry("linux/arm64", '4'), entry("unknown/unknown", '5')}};
  EXPECT_EQ(selectPlatform(index, {"linux", "arm64", "v8"})->digest.hex()[0], '4');
  EXPECT_EQ(selectPlatform(index, {"linux", "arm", "v7"})->digest.hex()[0], '3');
  EXPECT_FALSE(selectPlatform(index, {"linux", "s390x", ""}));
}

}  // namespace
}  // namespace caisson::image
