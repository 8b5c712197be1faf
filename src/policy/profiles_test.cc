#include "policy/profiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "policy/decode.h"
#include "policy/fields.h"
#include "policy/validate.h"
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

TEST(Profiles, TheCompiledProfileIsTheFile) {
  ASSERT_FALSE(builtinNames().empty());
  EXPECT_EQ(builtinNames()[0], "bash");
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

}  // namespace caisson::policy
