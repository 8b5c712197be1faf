// Mounts of a devcontainer.json: none becomes wider than it is there, and no part of one is dropped silently.
#include <gtest/gtest.h>

#include <algorithm>

#include "policy/import/import.h"
#include "policy/rules/secret_files.h"

namespace caisson::policy {
namespace {

Result<Imported> importMounts(const std::string& members) {
  const auto document = readText(R"({"image": "x", )" + members + "}", Format::json, "example");
  EXPECT_TRUE(document) << document.error().message();
  return importPolicy(*document);
}

bool reports(const Imported& result, std::string_view part) {
  return std::ranges::any_of(result.notes,
                             [&](const ImportNote& note) { return note.text.find(part) != std::string::npos; });
}

TEST(ImportMounts, ReadOnlyMarkIsFoundInAnyCase) {
  for (const char* mount :
       {R"("source=/srv/a,target=/x,type=bind,ReadOnly")", R"("source=/srv/a,target=/x,type=bind,RO")",
        R"("source=/srv/a,target=/x,type=bind,READONLY=true")", R"("Source=/srv/a,TARGET=/x,Type=BIND,readonly=1")",
        R"("\"source=/srv/a\",target=/x,\"ReadOnly\"")", R"("source=/srv/a,target=/x,rw=false")",
        R"({"type": "bind", "source": "/srv/a", "target": "/t", "readOnly": true})",
        R"({"Type": "Bind", "SRC": "/srv/a", "dst": "/t", "READONLY": "true"})",
        R"({"type": "bind", "source": "/srv/a", "target": "/t", "read_only": 1})", R"("/srv/a:/t:z,RO")",
        R"("/srv/a:/t:O")"}) {
    const auto result = importMounts(R"("mounts": [)" + std::string(mount) + "]");
    ASSERT_TRUE(result) << mount << result.error().message();
    EXPECT_EQ(result->policy.filesystem.read_only, std::vector<std::string>{"/srv/a"}) << mount;
    EXPECT_TRUE(result->policy.filesystem.read_write.empty()) << mount;
  }
  for (const char* arguments : {R"("-v", "/srv/a:/t:Ro")", R"("--volume=/srv/a:/t:ro,z")",
                                R"("--mount", "type=bind,src=/srv/a,dst=/t,ReadOnly")"}) {
    const auto result = importMounts(R"("runArgs": [)" + std::string(arguments) + "]");
    ASSERT_TRUE(result) << arguments << result.error().message();
    EXPECT_EQ(result->policy.filesystem.read_only, std::vector<std::string>{"/srv/a"}) << arguments;
    EXPECT_TRUE(result->policy.filesystem.read_write.empty()) << arguments;
  }
}

TEST(ImportMounts, WritableMountsStayWritable) {
  for (const char* mount :
       {R"("source=/srv/a,target=/x,type=bind,readonly=false")", R"("source=/srv/a,target=/x,ro=0,rw")",
        R"({"source": "/srv/a", "target": "/t", "readOnly": false})", R"("/srv/a:/t")", R"("/srv/a:/t:rw")"}) {
    const auto result = importMounts(R"("mounts": [)" + std::string(mount) + "]");
    ASSERT_TRUE(result) << mount << result.error().message();
    EXPECT_EQ(result->policy.filesystem.read_write, std::vector<std::string>{"/srv/a"}) << mount;
  }
}

TEST(ImportMounts, UnknownPartOfAMountIsAnError) {
  for (const char* members :
       {R"("mounts": [{"type": "bind", "source": "/srv/a", "bogus": 1}])",
        R"("mounts": [{"type": "bind", "source": "/srv/a", "bogus": "x"}])", R"("mounts": [{"source": 1}])",
        R"("mounts": ["type=bind,source=/srv/a,bogus=1"])", R"("mounts": ["type=bind,source=/srv/a,bogus"])",
        R"("mounts": ["/srv/a:/t:bogus"])", R"("mounts": "type=bind,source=/srv/a")", R"("mounts": [1])",
        R"("runArgs": ["--mount", "type=bind,source=/srv/a,bogus=1"])", R"("runArgs": ["-v", "/srv/a:/t:bogus"])"}) {
    const auto result = importMounts(members);
    ASSERT_FALSE(result) << members;
    EXPECT_NE(result.error().message().find(std::string(members).substr(1, 6)), std::string::npos)
        << result.error().message();
  }
}

TEST(ImportMounts, OptionWithoutACounterpartIsReported) {
  const auto result = importMounts(
      R"("mounts": ["type=bind,source=/srv/a,bind-propagation=shared,consistency=cached", "/srv/b:/t:z"])");
  ASSERT_TRUE(result) << result.error().message();
  for (const char* part : {"/srv/a: \"bind-propagation\"", "/srv/a: \"consistency\"", "/srv/b: \"z\""})
    EXPECT_TRUE(reports(*result, part)) << part;
}

/// `-v /srv/a` is a new volume at /srv/a of the container, not the host's directory.
TEST(ImportMounts, VolumesShowNothingOfTheHost) {
  for (const char* volume : {"/srv/a", "cache:/srv/a"}) {
    const auto result = importMounts(R"("runArgs": ["-v", ")" + std::string(volume) + "\"]");
    ASSERT_TRUE(result) << result.error().message();
    EXPECT_TRUE(result->policy.filesystem.read_write.empty()) << volume;
    EXPECT_TRUE(reports(*result, "volume " + std::string(volume).substr(0, 5))) << volume;
  }
}

TEST(ImportMounts, DirectoriesThatAreAlwaysSecretAreRefused) {
  std::size_t checked = 0;
  for (const SecretPattern& secret : secretPatterns()) {
    const std::string_view pattern = secret.pattern;
    if (secret.verdict != SecretVerdict::hide || !pattern.ends_with('/') || pattern.find_first_of("*|") != pattern.npos)
      continue;
    const std::string directory = "/srv/data/" + std::string(pattern.substr(0, pattern.size() - 1));
    if (!isInSecretDirectory(directory)) continue;  // another row shows it
    ++checked;
    for (const std::string& path : {directory, directory + "/sub"}) {
      const auto result = importMounts(R"("mounts": ["source=)" + path + R"(,target=/x,type=bind,ro"])");
      ASSERT_TRUE(result) << path << result.error().message();
      EXPECT_TRUE(result->policy.filesystem.read_only.empty()) << path;
      EXPECT_TRUE(reports(*result, path + ": it usually holds keys or passwords")) << path;
    }
  }
  EXPECT_GT(checked, 200U);
}

TEST(ImportMounts, VariableInAVolumeIsThatOfItsPath) {
  const auto result = importMounts(R"("runArgs": ["-v", "${localEnv:HOME}/.ssh:/k:ro"])");
  ASSERT_TRUE(result) << result.error().message();
  EXPECT_TRUE(result->policy.filesystem.read_only.empty());
  EXPECT_TRUE(reports(*result, ".ssh: it usually holds keys"));
}

}  // namespace
}  // namespace caisson::policy
