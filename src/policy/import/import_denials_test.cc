// What a foreign document denies stays denied, or the import says that it is not.
#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>

#include "policy/decode/syntax.h"
#include "policy/import/import.h"
#include "support/conforms.h"

namespace caisson::policy {
namespace {

using Texts = std::vector<std::string>;
using DenialNote = ImportNote::Kind;

constexpr std::string_view kProject = "/home/someone/project";

Imported importDenials(std::string_view text, Format format = Format::json, std::string_view workspace = kProject) {
  const auto document = readText(text, format, "example");
  EXPECT_TRUE(document) << document.error().message();
  auto result = importPolicy(*document, workspace);
  EXPECT_TRUE(result) << result.error().message();
  return result ? *result : Imported{};
}

/// Settings with these rules, in a workspace that may be written.
Imported importDenyRules(const std::string& rules, const std::string& allowed = R"js("Edit(.)")js") {
  return importDenials(R"({"permissions": {"allow": [)" + allowed + R"(], "deny": [)" + rules + "]}}");
}

bool tells(const Imported& result, DenialNote kind, std::string_view key, std::string_view part) {
  return std::ranges::any_of(result.notes, [&](const ImportNote& note) {
    return note.kind == kind && note.key.ends_with(key) && note.text.find(part) != std::string::npos;
  });
}

TEST(ImportDenials, SrtRulesKeepTheirPatterns) {
  CONFORMS("R-POLICY-18");
  const Imported result = importDenyRules(
      R"js("Read(conf/prod*)", "Read(*.pem)", "Read(keys/**)", "Read(a/*/key?)", "Read(//home/someone/project/x*)")js");
  EXPECT_EQ(result.policy.filesystem.denied, (Texts{"/workspace/conf/prod*", "/workspace/**/*.pem", "/workspace/keys",
                                                    "/workspace/a/*/key?", "/workspace/x*"}));
  EXPECT_EQ(result.policy.filesystem.workspace.mode, WorkspaceMode::overlay) << "rw cannot hide patterns";
  EXPECT_TRUE(tells(result, DenialNote::unsafe, "permissions.deny", "conf/prod*: a pattern"));
  const Imported settings =
      importDenials(R"({"filesystem": {"denyRead": ["**/*.key", "conf/*", "{a,b}"], "allowWrite": []}})");
  EXPECT_EQ(settings.policy.filesystem.denied, (Texts{"/workspace/**/*.key", "/workspace/conf", "/workspace/{a,b}"}));
  EXPECT_EQ(settings.policy.filesystem.workspace.mode, WorkspaceMode::ro);
  EXPECT_TRUE(tells(settings, DenialNote::unsafe, "denyRead", "braces"));
}

TEST(ImportDenials, SrtRuleForAToolIsForAllOfIt) {
  for (const char* rule : {R"("Read")", R"js("Read(*)")js", R"js("Read(**)")js", R"js("Read(./**)")js"})
    EXPECT_EQ(importDenyRules(rule).policy.filesystem.workspace.mode, WorkspaceMode::none) << rule;
  for (const char* rule : {R"("Edit")", R"js("Write(*)")js", R"js("Edit(./**)")js", R"js("Edit(//home/someone/**)")js"})
    EXPECT_EQ(importDenyRules(rule).policy.filesystem.workspace.mode, WorkspaceMode::overlay) << rule;
  EXPECT_EQ(importDenyRules(R"("WebFetch")").policy.network.denied_hosts, Texts{"*"});
}

TEST(ImportDenials, PatternOfTheHostShowsNothingThatItConcerns) {
  const Imported result = importDenyRules(
      R"js("Read(//abs/data/sec*)", "Read(//srv/*/key)")js",
      R"js("Read(//abs/data)", "Read(//abs/other)", "Read(//abs/data/section/x)", "Edit(//srv/a)", "Edit(//opt/wide*)")js");
  EXPECT_EQ(result.policy.filesystem.read_only, Texts{"/abs/other"});
  EXPECT_TRUE(result.policy.filesystem.read_write.empty());
  for (const char* path : {"/abs/data is not shown", "/abs/data/section/x is not shown", "/srv/a is not shown"})
    EXPECT_TRUE(tells(result, DenialNote::unsafe, "permissions.deny", path)) << path;
  EXPECT_TRUE(tells(result, DenialNote::lossy, "permissions.allow", "/opt/wide*: patterns"));
}

TEST(ImportDenials, SrtHostPatternIsKeptOrRefused) {
  EXPECT_EQ(importDenyRules(R"js("WebFetch(domain:b.example)")js", R"js("WebFetch(domain:*.example.org)")js")
                .policy.network.allowed_hosts,
            Texts{"*.example.org"});
  const auto document =
      readText(R"js({"permissions": {"deny": ["WebFetch(domain:b.example*)"]}})js", Format::json, "example");
  ASSERT_TRUE(document);
  EXPECT_FALSE(importPolicy(*document)) << "not b.example alone";
}

TEST(ImportDenials, SrtDirectoriesThatMayNotBeWrittenAreProtected) {
  CONFORMS("R-POLICY-18");
  for (const char* rule :
       {R"js("Edit(conf/**)")js", R"js("Edit(conf/*)")js", R"js("Edit(conf/)")js", R"js("Edit(./conf/**/*)")js",
        R"js("Edit(//home/someone/project/conf/)")js", R"js("Write(//workspace/conf/**)")js"}) {
    const Imported result = importDenyRules(rule);
    EXPECT_EQ(result.policy.filesystem.workspace.protected_files, Texts{"conf/"}) << rule;
    EXPECT_EQ(result.policy.filesystem.workspace.mode, WorkspaceMode::rw) << rule;
  }
  const Imported result = importDenyRules(R"js("Edit(conf/prod*)", "Edit(**/*.yml)")js");
  EXPECT_EQ(result.policy.filesystem.workspace.protected_files, (Texts{"conf/prod*", "*.yml"}));
  for (const char* rule : {R"js("Edit(conf/**/x)")js", R"js("Edit(key?)")js", R"js("Edit([ab])")js"})
    EXPECT_EQ(importDenyRules(rule).policy.filesystem.workspace.mode, WorkspaceMode::overlay) << rule;
}

TEST(ImportDenials, AbsolutePathOfTheWorkspaceMayNotBeWritten) {
  const Imported result = importDenials(R"({"filesystem": {
      "allowWrite": ["/home/someone/project", "/srv/x"],
      "denyWrite": ["/home/someone/project/conf/", "/srv/*/kept", "/home/someone/pro*/lib/"]}})");
  EXPECT_EQ(result.policy.filesystem.workspace.mode, WorkspaceMode::rw);
  EXPECT_EQ(result.policy.filesystem.workspace.protected_files, (Texts{"conf/", "lib/"}));
  EXPECT_TRUE(result.policy.filesystem.read_write.empty());
  EXPECT_EQ(result.policy.filesystem.read_only, Texts{"/srv/x"});
  const Imported around = importDenials(R"({"filesystem": {"allowWrite": ["/srv"], "denyWrite": ["conf/"]}})",
                                        Format::json, "/srv/project");
  EXPECT_EQ(around.policy.filesystem.read_only, Texts{"/srv"}) << "conf is in it";
}

TEST(ImportDenials, BlockedPathsOfTheWorkspaceAreDenied) {
  CONFORMS("R-POLICY-9");
  const auto blocked = [](const std::string& paths, std::string_view workspace = kProject) {
    return importDenials("network_allowlist: []\nblocked_paths: [" + paths + "]\n", Format::yaml, workspace);
  };
  const Imported result = blocked(
      "/workspace/conf, /home/someone/project/keys/, '/home/*/project/*.pem', secrets, '/workspace/a/**', /etc, /home, "
      "'/home/*/.*', 'C:/Windows', /usr/bin");
  EXPECT_EQ(result.policy.filesystem.denied, (Texts{"/workspace/conf", "/workspace/keys", "/home/someone/project/keys",
                                                    "/workspace/*.pem", "/workspace/secrets", "/workspace/a"}))
      << "a path of the host holds in any workspace";
  EXPECT_TRUE(tells(result, DenialNote::lossy, "blocked_paths", "/home of the host is not in the sandbox, except"));
  EXPECT_TRUE(tells(result, DenialNote::lossy, "blocked_paths", "/etc of the host is not in the sandbox, which"));
  EXPECT_EQ(blocked("/home/someone/project/keys", "").policy.filesystem.denied, Texts{"/home/someone/project/keys"});
  for (const char* whole : {"/workspace", "/home/someone/project/"})
    EXPECT_EQ(blocked(whole).policy.filesystem.workspace.mode, WorkspaceMode::none) << whole;
}

TEST(ImportDenials, PortsOfTwoKeysAreThoseOfBoth) {
  const auto ports = [](const std::string& restricted, const std::string& configured) {
    return importDenials("port_restrictions: {allowed_ports: " + restricted +
                             "}\nsandbox_config: {network: {enabled: true, ports: " + configured + "}}\n",
                         Format::yaml)
        .policy.network.allowed_ports;
  };
  EXPECT_EQ(ports("[443]", "[80, 443, 22]"), Texts{"443"});
  EXPECT_EQ(ports("[80, 443]", "[443]"), Texts{"443"});
  EXPECT_EQ(ports("['8000-8010', 443]", "['8005-9000', '1-1023']"), (Texts{"8005-8010", "443"}));
  EXPECT_TRUE(ports("[443]", "[22]").empty());
  EXPECT_TRUE(ports("[]", "[22]").empty());
  const Imported container = importDenials(R"({"image": "x", "forwardPorts": [8080, 80], "appPort": [80, "3000"]})");
  EXPECT_EQ(container.policy.network.exposed_ports, (Texts{"8080", "80", "3000"}));
}

/// Each list is built once: with a comparison of two policies per entry, 4,000 took 10 seconds of an optimized build.
TEST(ImportDenials, LongListsAreImportedInLinearTime) {
  const auto list = [](const std::string& before, const std::string& after) {
    std::string text;
    for (int i = 0; i < 5'000; ++i) text += (i == 0 ? "\"" : ",\"") + before + std::to_string(i) + after + "\"";
    return "[" + text + "]";
  };
  const std::string documents[] = {
      R"({"network": {"allowedDomains": )" + list("h", ".test") + "}}",
      R"({"filesystem": {"allowWrite": )" + list("/opt/a", "") + R"(, "denyWrite": )" + list("/opt/b", "/c") + "}}",
      R"({"image": "x", "mounts": )" + list("source=/srv/", ",target=/x,type=bind") + "}",
      R"({"execution_policy": {"allowed_executables": )" + list("tool", "") + "}}"};
  timespec start{}, end{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
  for (const std::string& text : documents) EXPECT_FALSE(importDenials(text).notes.empty());
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
  EXPECT_LT(end.tv_sec - start.tv_sec, 8);
}

}  // namespace
}  // namespace caisson::policy
