// What a foreign document denies stays denied, or the import says that it is not.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <expected>
#include <fstream>
#include <functional>

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

/// Settings that deny this pattern to be read; the mode of a workspace at kProject, which may be written.
WorkspaceMode modeWithDenied(const std::string& pattern) {
  return importDenials(R"({"filesystem": {"allowWrite": ["."], "denyRead": [")" + pattern + R"("]}})")
      .policy.filesystem.workspace.mode;
}

TEST(ImportDenials, PatternOfTheHostThatMeansTheWorkspaceHidesIt) {
  CONFORMS("R-POLICY-18");
  for (const char* pattern :
       {"/home/someone/pro*", "/home/*/project", "/home/*/project/**", "/home/someone/projec?",
        "/home/someone/p[r]oject", "/home/**/project", "/home/some*", "/hom*", "/workspac*", "/**/someone/**"})
    EXPECT_EQ(modeWithDenied(pattern), WorkspaceMode::none) << pattern;
  for (const char* rule : {R"js("Read(//home/*/project/**)")js", R"js("Read(//home/**/project/**)")js",
                           R"js("Read(//home/someone/p[r]oject)")js"}) {
    const Imported result = importDenyRules(rule);
    EXPECT_EQ(result.policy.filesystem.workspace.mode, WorkspaceMode::none) << rule;
    EXPECT_TRUE(tells(result, DenialNote::unsafe, "permissions.deny", "the workspace cannot be hidden")) << rule;
  }
  for (const char* pattern : {"/home/someone/other*", "/home/*/project/x*", "/srv/*", "/home/someone/project-*"})
    EXPECT_NE(modeWithDenied(pattern), WorkspaceMode::none) << pattern;
}

TEST(ImportDenials, BlockedPatternThatMeansTheWorkspaceHidesIt) {
  for (const char* pattern : {"/home/*/project", "/home/someone/pro*", "/work*"})
    EXPECT_EQ(importDenials("network_allowlist: []\nblocked_paths: ['" + std::string(pattern) + "']\n", Format::yaml)
                  .policy.filesystem.workspace.mode,
              WorkspaceMode::none)
        << pattern;
}

TEST(ImportDenials, ProgramsThatTheListDoesNotNameAreReported) {
  const Imported result =
      importDenials("network_allowlist: []\nexecution_policy: {allowed_executables: [cargo, rustc]}\n", Format::yaml);
  for (const char* program : {"git", "rustup", "rustdoc", "gcc", "ld"})
    EXPECT_TRUE(tells(result, DenialNote::widening, "allowed_executables", program)) << program;
  for (const std::string& program : *result.policy.process.allowed_executables)
    EXPECT_TRUE(program == "cargo" || program == "rustc" ||
                tells(result, DenialNote::widening, "allowed_executables", program))
        << program;
}

TEST(ImportDenials, PathThatMayNotBeWrittenIsKeptAsAFileAndAsADirectory) {
  const Imported result = importDenials(R"({"filesystem": {"allowWrite": ["."], "denyWrite": ["conf", "lib/"]}})");
  EXPECT_EQ(result.policy.filesystem.workspace.protected_files, (Texts{"conf", "conf/", "lib/"}));
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
  EXPECT_EQ(result.policy.filesystem.workspace.protected_files,
            (Texts{"conf/prod*", "conf/prod*/", "*.yml", "*.yml/"}));
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

/// Runs in a child process, which may use 10 seconds of processor time and 512 MiB more than now. Whether it ended as
/// it should.
bool succeedsWithinLimits(const std::function<bool()>& task) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::ifstream sizes("/proc/self/statm");
    rlim_t pages = 0;
    sizes >> pages;
    const rlim_t memory = pages * 4096 + (rlim_t{512} << 20);
    const rlimit space{memory, memory}, time{10, 10};
    ::setrlimit(RLIMIT_AS, &space);
    ::setrlimit(RLIMIT_CPU, &time);
    ::_exit(task() ? 0 : 1);
  }
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::string listOfCopies(const std::string& before, const std::string& after, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += (i == 0 ? "\"" : ",\"") + before + std::to_string(i) + after + "\"";
  return "[" + text + "]";
}

std::string copiesOf(std::string_view text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

/// Whether the document can be imported; the error otherwise.
std::expected<Imported, std::string> tryImport(const std::string& text, Format format = Format::json) {
  const auto document = readText(text, format, "example");
  if (!document) return std::unexpected(document.error().message());
  auto result = importPolicy(*document, kProject);
  if (!result) return std::unexpected(result.error().message());
  return *std::move(result);
}

TEST(ImportDenials, LongPatternsCostNoMoreThanTheirLength) {
  const std::string stars = copiesOf("**/", 30'000) + "x";
  EXPECT_TRUE(succeedsWithinLimits([&] {
    const auto srt = tryImport(R"({"filesystem": {"allowWrite": ["."], "denyRead": ["/)" + stars + "\"]}}");
    return !srt && srt.error().find("longer than 4095 bytes") != std::string::npos;
  }));
  EXPECT_TRUE(succeedsWithinLimits(
      [&] { return !tryImport("network_allowlist: []\nblocked_paths: ['/" + stars + "']\n", Format::yaml); }));
  const std::string doubled = copiesOf("/**/", 1'000), mixed = copiesOf("/**/a*", 600);
  EXPECT_TRUE(succeedsWithinLimits([&] {
    const auto srt =
        tryImport(R"({"filesystem": {"allowWrite": ["."], "denyRead": )" + listOfCopies(doubled + "x", "", 250) + "}}");
    return srt && !srt->policy.filesystem.denied.empty();
  }));
  EXPECT_TRUE(succeedsWithinLimits([&] {
    return tryImport(R"({"filesystem": {"allowWrite": ["."], "denyRead": )" + listOfCopies(mixed + "/x", "", 250) +
                     "}}")
        .has_value();
  }));
}

TEST(ImportDenials, ManyPathsAndPatternsAreRefused) {
  for (const std::string lists : {R"("allowRead": /opt/a, "denyRead": )", R"("allowWrite": /opt/a, "denyWrite": )"}) {
    std::string text = lists;
    text.replace(text.find("/opt/a"), 6, listOfCopies("/opt/a", "", 30'000));
    EXPECT_TRUE(succeedsWithinLimits([&] {
      const auto result = tryImport("{\"filesystem\": {" + text + listOfCopies("/srv/*b", "", 30'000) + "}}");
      return !result && result.error().find("too many paths to compare") != std::string::npos;
    })) << lists;
  }
  const auto few = tryImport(R"({"filesystem": {"allowRead": )" + listOfCopies("/opt/a", "", 300) +
                             R"(, "denyRead": )" + listOfCopies("/opt/*b", "", 300) + "}}");
  ASSERT_TRUE(few) << few.error();
  EXPECT_EQ(few->policy.filesystem.read_only.size(), 300U);
}

TEST(ImportDenials, ManyPortsOfTwoKeysAreComparedInLinearTime) {
  std::string first, second;
  for (int port = 1; port <= 60'000; port += 2) first += std::to_string(port) + ",";
  for (int port = 1; port <= 60'000; port += 3) second += std::to_string(port) + ",";
  EXPECT_TRUE(succeedsWithinLimits([&] {
    const auto result =
        tryImport("port_restrictions: {allowed_ports: [" + first +
                      "1-65535]}\nsandbox_config: {network: {enabled: true, ports: [" + second + "65535]}}\n",
                  Format::yaml);
    return result && result->policy.network.allowed_ports.size() == 20'001;
  }));
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
