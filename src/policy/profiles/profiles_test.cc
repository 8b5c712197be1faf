#include "policy/profiles/profiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "policy/decode/decode.h"
#include "policy/decode/validate.h"
#include "policy/fields.h"
#include "support/conforms.h"

namespace caisson::policy {

extern const char* const kProfileDirectory;

namespace {

/// CAISSON_SOURCE_DIR names the sources if the test runs on a copy.
std::string profileDirectory() {
  const char* source = std::getenv("CAISSON_SOURCE_DIR");
  return source != nullptr && *source != 0 ? std::string(source) + "/src/policy/profiles" : kProfileDirectory;
}

}  // namespace

TEST(Profiles, CompiledProfilesMatchTheirFiles) {
  ASSERT_FALSE(builtinNames().empty());
  EXPECT_EQ(builtinNames()[0], kDefaultProfile);
  for (const std::string_view name : builtinNames()) {
    const std::string path = profileDirectory() + "/" + std::string(name) + ".toml";
    const auto text = readRegularFile(path);
    ASSERT_TRUE(text) << text.error().message();
    const auto document = readText(*text, Format::toml, path);
    ASSERT_TRUE(document) << document.error().message();
    const Policy base;
    Origin origin;
    origin.base = &base;
    const auto decoded = decode(*document, origin);
    ASSERT_TRUE(decoded) << decoded.error().message();
    const auto compiled = builtin(name);
    ASSERT_TRUE(compiled);
    for (const Field& field : fields()) {
      EXPECT_EQ(field.get(*compiled), field.get(*decoded)) << name << ": " << field.key;
    }
    EXPECT_EQ(compiled->name, name);
    EXPECT_TRUE(validate(*compiled));
  }
  EXPECT_FALSE(builtin("nonesuch"));
}

TEST(Profiles, ListNoWeakerRungButTheHostName) {
  for (const std::string_view name : builtinNames()) {
    const std::vector<OptionalLayer> listed = builtin(name)->isolation.may_be_missing;
    const auto lists = [&](OptionalLayer layer) { return std::ranges::count(listed, layer) > 0; };
    EXPECT_TRUE(lists(OptionalLayer::hostname)) << name;
    for (const OptionalLayer rung : {OptionalLayer::landlock, OptionalLayer::proc_subset, OptionalLayer::proc_bound}) {
      EXPECT_FALSE(lists(rung)) << name;
    }
  }
}

TEST(Profiles, BashCanRunWhatItBuilds) {
  const Policy bash = *builtin("bash");
  EXPECT_EQ(bash.isolation.level, Level::full);
  EXPECT_EQ(bash.network.mode, NetworkMode::none);
  EXPECT_EQ(bash.filesystem.workspace.mode, WorkspaceMode::overlay);
  for (const Tmpfs& mount : bash.filesystem.tmpfs) {
    EXPECT_EQ(mount.exec, mount.path == "/tmp" || mount.path == "/home/sandbox") << mount.path;
  }
}

TEST(Profiles, ShellExecutesNothingWritable) {
  const Policy shell = *builtin("shell");
  EXPECT_FALSE(shell.filesystem.workspace_exec);
  EXPECT_EQ(effectiveWallSeconds(shell), 60);
  for (const Tmpfs& mount : shell.filesystem.tmpfs) EXPECT_FALSE(mount.exec) << mount.path;
}

TEST(Profiles, StrictNamesItsCalls) {
  CONFORMS("R-POLICY-12");
  const Policy strict = *builtin("strict");
  EXPECT_FALSE(strict.process.allow_exec);
  EXPECT_EQ(strict.process.max_processes, 10U);
  EXPECT_TRUE(strict.network.allowed_ports.empty());
  ASSERT_TRUE(strict.syscalls.names);
  EXPECT_FALSE(std::ranges::count(*strict.syscalls.names, "socket"));
}

TEST(Profiles, DevIsSizedForRealBuilds) {
  const Policy dev = *builtin("dev");
  EXPECT_EQ(kDefaultProfile, "dev");
  EXPECT_EQ(dev.isolation.level, Level::full);
  EXPECT_EQ(dev.network.mode, NetworkMode::none);
  EXPECT_EQ(dev.filesystem.workspace.mode, WorkspaceMode::overlay);
  EXPECT_EQ(dev.filesystem.overlay_store, OverlayStore::prefer_disk);
  EXPECT_EQ(dev.resources.memory, shareOfMemory(50));
  EXPECT_EQ(dev.resources.cpus, kAllCpus);
  EXPECT_EQ(dev.process.max_processes, 4096U);
  EXPECT_EQ(dev.resources.open_files, 16384U);
  EXPECT_EQ(effectiveWallSeconds(dev), kNoTimeLimit);
  for (const std::string path : {"/tmp", "/home/sandbox"}) {
    const auto directory = std::ranges::find(dev.filesystem.tmpfs, path, &Tmpfs::path);
    ASSERT_NE(directory, dev.filesystem.tmpfs.end()) << path;
    EXPECT_EQ(directory->store, DirectoryStore::prefer_disk) << path;
    EXPECT_TRUE(directory->exec) << path;
    EXPECT_GE(directory->size, 4 * kGiB) << path;
  }
}

TEST(Profiles, ValuesOfDevAreItsCeilings) {
  const Policy dev = *builtin("dev");
  EXPECT_TRUE(validate(dev));
  Ceilings ceilings = ceilingsOf(dev);
  ceilings.host_memory = 8 * kGiB;
  const auto accepts = [&](auto change) {
    Policy policy = dev;
    change(policy);
    return validate(policy, ceilings).has_value();
  };
  EXPECT_TRUE(accepts([](Policy& p) { p.resources.memory = 4 * kGiB / 100 * 100; }));
  EXPECT_FALSE(accepts([](Policy& p) { p.resources.memory = 5 * kGiB; }));
  EXPECT_FALSE(accepts([](Policy& p) { p.resources.memory = shareOfMemory(51); }));
  EXPECT_FALSE(accepts([](Policy& p) { p.process.max_processes = 4097; }));
  EXPECT_FALSE(accepts([](Policy& p) { p.resources.open_files = 16385; }));
  EXPECT_TRUE(accepts([](Policy& p) { p.resources.wall_seconds = 3600; }));
  EXPECT_FALSE(accepts([](Policy& p) { p.resources.wall_seconds = 3601; }));
  EXPECT_FALSE(accepts([](Policy& p) { p.resources.wall_seconds = kNoTimeLimit; }));
}

TEST(Profiles, ShareOfMemoryIsComparedWithCeiling) {
  Policy bash = *builtin("bash");
  bash.resources.memory = shareOfMemory(50);
  Ceilings ceilings = ceilingsOf(bash);
  ceilings.host_memory = 8 * kGiB;
  EXPECT_FALSE(validate(bash, ceilings));
  ceilings.host_memory = 2 * kGiB;
  EXPECT_TRUE(validate(bash, ceilings));
}

}  // namespace caisson::policy
