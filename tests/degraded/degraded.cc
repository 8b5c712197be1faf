#include "degraded/degraded.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cctype>
#include <filesystem>

namespace caisson::test {
namespace {

constexpr const char* kMark = "the-payload-ran";

/// Prints the payload's own protections: one line each, the same wherever nothing is weaker.
constexpr const char* kProbe =
    "echo the-payload-ran; : > mark; id -u; hostname; pwd; ls /; ls -A /root 2>&1; echo $$; cut -d' ' -f5,6 "
    "/proc/$$/stat; "
    "grep -E '^(NoNewPrivs|Seccomp|Seccomp_filters|CapEff|CapPrm|CapBnd|CapAmb):' /proc/self/status | "
    "grep -v Seccomp_filters; (: > /usr/x) 2>&1; (: > /x) 2>&1; ls /proc/self/fd; cat /proc/net/dev | wc -l";

/// Lists every file below, opening nothing and following no link. Directories that caisson keeps for later runs don't
/// count.
std::string filesBelow(const std::string& directory) {
  std::string found;
  std::error_code ignored;
  const std::string caches = directory + "/caches/";
  for (auto entry = std::filesystem::recursive_directory_iterator(directory, ignored); entry != end(entry); ++entry) {
    if (entry->path().parent_path() == std::filesystem::path(directory) / "audit") continue;  // the audit log must stay
    const std::string path = entry->path().string();
    if (path.starts_with(caches) && !contains(path, "/data/")) continue;  // kept, and nothing was written to it
    const bool shelf = entry->symlink_status().type() == std::filesystem::file_type::directory && entry.depth() == 0;
    if (!shelf) found += entry->path().string() + " ";
  }
  return found;
}

}  // namespace

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string asTestName(std::string_view missing) {
  std::string name;
  bool capital = true;
  for (const char c : missing) {
    const bool letter = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (letter) name += capital ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    capital = !letter;
  }
  return name;
}

RunOutput caissonWithout(const std::string& missing, const std::vector<std::string>& arguments, RunOptions how) {
  std::vector<std::string> argv;
  if (!missing.empty()) argv = {"/proc/self/exe", kWithoutFlag, missing, "--"};
  argv.push_back(caissonBinary());
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  if (how.timeout == RunOptions().timeout) how.timeout = std::chrono::seconds(20);
  return runProgram(argv, how);
}

std::string Ending::text(const char* key) const { return result.value(key, std::string()); }

std::string Ending::layer(const char* name) const {
  return result.contains("layers") ? result["layers"].value(name, std::string()) : std::string();
}

bool Ending::refused() const { return text("outcome") == "setup_failed"; }

std::vector<std::string> Ending::warnings() const { return result.value("warnings", std::vector<std::string>()); }

void DegradedTest::SetUp() {
  static const RunOutput whole = runCaisson({"run", "--workspace", ":none", "--", "/bin/true"});
  requireOrSkip(whole.exit_status == 0, "level full does not work here: " + whole.describe());
  // Without idmapped mounts (level process, landlock tier) a root caller's payload has no rights on its files.
  ASSERT_EQ(chmod(workspace.path().c_str(), 0777), 0);
}

Ending DegradedTest::probe(const std::string& missing, std::vector<std::string> options) const {
  options.insert(options.begin(), {"run", "--json", "--workspace", workspace.path() + ":rw"});
  options.insert(options.end(), {"--", "sh", "-c", kProbe});
  RunOptions how;
  how.env["CAISSON_HOME"] = home.path();
  Ending ending;
  ending.output = caissonWithout(missing, options, how);
  ending.result = ending.output.json();
  if (!ending.result.is_object()) ending.result = nlohmann::json::object();
  const std::string mark = workspace / "mark";
  ending.ran = contains(ending.output.out, kMark) || exists(mark);
  unlink(mark.c_str());
  ending.left_behind = filesBelow(workspace.path()) + filesBelow(home.path());
  return ending;
}

void expectRefusal(const Ending& ending, const std::vector<std::string>& words) {
  EXPECT_FALSE(ending.output.timed_out) << ending.describe();
  EXPECT_EQ(ending.output.exit_status, 125) << ending.describe();
  EXPECT_EQ(ending.text("outcome"), "setup_failed") << ending.describe();
  EXPECT_FALSE(ending.ran) << "refused, and yet the payload ran: " << ending.describe();
  EXPECT_EQ(ending.left_behind, "") << ending.describe();
  const std::string error = ending.result.contains("error") ? ending.result["error"].dump() : "";
  for (const std::string& word : words) EXPECT_TRUE(contains(error, word)) << "no \"" << word << "\" in " << error;
}

void expectSameAs(const Ending& ending, const Ending& whole) {
  EXPECT_EQ(ending.output.exit_status, whole.output.exit_status) << ending.describe();
  EXPECT_TRUE(ending.ran) << ending.describe();
  EXPECT_EQ(ending.left_behind, "") << ending.describe();
  EXPECT_EQ(ending.text("outcome"), "exited") << ending.describe();
  EXPECT_EQ(ending.text("stdout"), whole.text("stdout"));
  EXPECT_EQ(ending.text("stderr"), whole.text("stderr"));
  EXPECT_EQ(ending.result.value("layers", nlohmann::json()), whole.result.value("layers", nlohmann::json()));
  EXPECT_EQ(ending.warnings(), whole.warnings());
}

}  // namespace caisson::test
