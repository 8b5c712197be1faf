// What an import makes wider is reported or refused.
#include <gtest/gtest.h>

#include <algorithm>

#include "policy/import/import.h"

namespace caisson::policy {
namespace {

Imported importOf(std::string_view text, Format format) {
  const auto document = readText(text, format, "example");
  EXPECT_TRUE(document) << document.error().message();
  auto result = importPolicy(*document);
  EXPECT_TRUE(result) << result.error().message();
  return result ? *result : Imported{};
}

bool hasNote(const Imported& result, ImportNote::Kind kind, std::string_view key, std::string_view part = "") {
  return std::ranges::any_of(result.notes, [&](const ImportNote& note) {
    return note.kind == kind && note.key.ends_with(key) && note.text.find(part) != std::string::npos;
  });
}

TEST(ImportWidening, RefusesTheNetworkOfTheHost) {
  const Imported result = importOf("[sandbox]\nimage = 'x'\nnetwork_mode = 'host'\n", Format::toml);
  EXPECT_EQ(result.policy.network.mode, NetworkMode::none);
  EXPECT_TRUE(hasNote(result, ImportNote::Kind::unsafe, "network_mode", "owner's approval"));
}

TEST(ImportWidening, ShowsNoHomeAndNoKeysOfOne) {
  const Imported result = importOf(R"({"isolationLevel": "LEVEL_2", "filesystem": {
      "readOnlyPaths": ["~/.ssh", "~", "/home/someone", "/home/someone/.aws/credentials", "/root", "/", "/opt/data"]}})",
                                   Format::json);
  EXPECT_EQ(result.policy.filesystem.read_only, std::vector<std::string>{"/opt/data"});
  EXPECT_TRUE(hasNote(result, ImportNote::Kind::unsafe, "readOnlyPaths", "~/.ssh"));
  EXPECT_TRUE(hasNote(result, ImportNote::Kind::unsafe, "readOnlyPaths", "/home/someone: a whole home"));
  EXPECT_TRUE(hasNote(result, ImportNote::Kind::widening, "readOnlyPaths", "/opt/data"));
}

TEST(ImportWidening, WritesNoHomeAndNoSettingsOfHostPrograms) {
  const Imported result = importOf(R"({"isolationLevel": "LEVEL_2", "filesystem": {
      "readWritePaths": ["~/.ssh", "~", "/home/someone", "~/.config/fish", "~/.bashrc", "/opt/data"]}})",
                                   Format::json);
  EXPECT_EQ(result.policy.filesystem.read_write, std::vector<std::string>{"/opt/data"});
  EXPECT_TRUE(hasNote(result, ImportNote::Kind::unsafe, "readWritePaths", "~/.ssh"));
  EXPECT_TRUE(hasNote(result, ImportNote::Kind::unsafe, "readWritePaths", "/home/someone: a whole home"));
  EXPECT_TRUE(hasNote(result, ImportNote::Kind::unsafe, "readWritePaths", "~/.bashrc is not writable"));
  EXPECT_TRUE(hasNote(result, ImportNote::Kind::widening, "readWritePaths", "/opt/data"));
}

TEST(ImportWidening, ReportsEverythingThatIsWiderThanTheProfile) {
  const Imported shell = importOf("[sandbox]\nimage = 'x'\nmemory_limit = '1g'\ncpu_limit = 1.5\n", Format::toml);
  EXPECT_TRUE(hasNote(shell, ImportNote::Kind::widening, "sandbox.memory_limit", "resources.memory"));
  EXPECT_TRUE(hasNote(shell, ImportNote::Kind::widening, "sandbox.cpu_limit", "resources.cpus"));
  const Imported compose = importOf(
      "services:\n  sandbox:\n    image: x\n    pids_limit: 300\n    security_opt: [\"apparmor:unconfined\", "
      "\"seccomp:/etc/profile.json\"]\n",
      Format::yaml);
  EXPECT_TRUE(hasNote(compose, ImportNote::Kind::widening, "services.sandbox", "process.max_processes"));
  EXPECT_TRUE(hasNote(compose, ImportNote::Kind::unsafe, "security_opt", "apparmor:unconfined"));
  EXPECT_TRUE(hasNote(compose, ImportNote::Kind::widening, "security_opt", "/etc/profile.json"));
  EXPECT_EQ(compose.policy.isolation.apparmor_profile, "");
}

}  // namespace
}  // namespace caisson::policy
