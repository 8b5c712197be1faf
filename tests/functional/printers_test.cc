// Text that a payload, an image or a repository chose is escaped in everything that is printed.
#include <array>
#include <set>

#include "functional/busybox_root.h"
#include "functional/sandbox.h"
#include "functional/terminal.h"

namespace caisson::test {
namespace {

// ESC, a C1 control that begins a sequence by itself, a bidirectional override, a zero-width space.
constexpr const char* kHostile = "\x1b[31m\xc2\x9b?25l\xe2\x80\xae\xe2\x80\x8b";
// The same in JSON and TOML, without what those do not allow.
constexpr const char* kHostileEscaped = "\\u001b[31m\\u009b?25l\\u202e\\u200b";

/// The first character of the text that must not reach a terminal, in hexadecimal with what surrounds it; "" if none.
std::string deceptivePart(const std::string& text) {
  constexpr std::array<std::pair<unsigned, unsigned>, 5> kRanges{
      {{0x7F, 0x9F}, {0x200B, 0x200F}, {0x2028, 0x202E}, {0x2060, 0x206F}, {0xFEFF, 0xFEFF}}};
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    const std::size_t length = byte < 0x80 ? 1 : byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC2 ? 2 : 0;
    unsigned code = length <= 1 ? byte : byte & (0x7FU >> length);
    for (std::size_t i = 1; i < length && at + i < text.size(); ++i)
      code = (code << 6U) | (static_cast<unsigned char>(text[at + i]) & 0x3FU);
    const bool control = code < 0x20 && code != '\n' && code != '\t';
    const bool listed = std::ranges::any_of(
        kRanges, [&](const auto& range) { return length != 0 && code >= range.first && code <= range.second; });
    if (control || listed || length == 0) {
      char number[16];
      std::snprintf(number, sizeof(number), "U+%04X", code);
      return std::string(number) + " after: " + text.substr(at > 60 ? at - 60 : 0, std::min<std::size_t>(at, 60));
    }
    at += length;
  }
  return "";
}

class Printers : public SandboxTest {
 protected:
  void SetUp() override {
    SandboxTest::SetUp();
    workspace.openToAll();
    how_.env = {{"CAISSON_HOME", home_ / "state"}, {"HOME", home_ / "user"}};
    how_.cwd = workspace.path();
    home_.makeDir("user");
  }
  /// A unique text that ends with hostile characters; its beginning must be printed somewhere.
  std::string planted(const std::string& name, bool escaped = false) {
    planted_.insert("planted-" + name);
    return "planted-" + name + (escaped ? kHostileEscaped : kHostile);
  }
  RunOutput caisson(const std::vector<std::string>& words) {
    RunOutput output = runCaisson(words, how_);
    for (const std::string* text : {&output.out, &output.err}) {
      std::string command;
      for (const std::string& word : words) command += word + " ";
      EXPECT_EQ(deceptivePart(*text), "") << command;
      for (auto name = planted_.begin(); name != planted_.end();)
        name = contains(*text, *name) ? planted_.erase(name) : std::next(name);
    }
    return output;
  }

  const TempDir home_;
  RunOptions how_;
  std::set<std::string> planted_;  ///< not printed yet
};

TEST_F(Printers, SessionsAndAuditLogEscapeWhatCommandsChose) {
  workspace.write("removed " + planted("removed"), "text\n");
  const std::string id = [&] {
    const RunOutput made = caisson({"session", "create"});
    EXPECT_EQ(made.exit_status, 0) << made.describe();
    return made.out.substr(0, made.out.find('\n'));
  }();
  const std::string file = planted("file");
  const std::string content = planted("content");
  (void)caisson({"session", "exec", id, "--", "sh", "-c",
                 "rm removed*; mkdir \"d $0\"; echo \"$1\" > \"$0\"; ln -s \"$1\" link", file, content});
  (void)caisson({"session", "exec", id, "--", planted("program"), "x"});
  (void)caisson({"session", "exec", id, "--json", "--", "sh", "-c", "echo \"$0\"; echo \"$0\" >&2", planted("output")});
  (void)caisson({"session", "checkpoint", id, planted("checkpoint")});
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"session", "list"},
                                             {"session", "list", "--json"},
                                             {"session", "info", id},
                                             {"session", "info", id, "--json"},
                                             {"session", "diff", id},
                                             {"session", "diff", id, "--json"},
                                             {"session", "diff", id, "--stat"},
                                             {"session", "diff", id, "-p", "--json"},
                                             {"session", "commit", id, "--dry-run"},
                                             {"session", "commit", id, "--dry-run", "--json"},
                                             {"session", "ps", id},
                                             {"session", "checkpoints", id},
                                             {"session", "read", id, planted("missing")},
                                             {"session", "commit", id},
                                             {"session", "info", id},
                                             {"session", "uncommit", id, "--dry-run"},
                                             {"audit", "show"},
                                             {"audit", "show", "--json"},
                                             {"audit", "verify"},
                                             {"stats"},
                                             {"stats", "--json"},
                                             {"stats", "--prometheus"},
                                             {"session", "destroy", planted("session")}})
    (void)caisson(words);
  EXPECT_EQ(planted_, std::set<std::string>()) << "fields that no command printed";
}

TEST_F(Printers, RunsPoliciesAndToolsEscapeWhatFilesSay) {
  const std::string policy =
      workspace.write("policy.toml", "description = \"planted-description\\u202e\\u200b\"\n[environment.set]\nA = \"" +
                                         planted("variable", true) + "\"\n");
  planted_.insert("planted-description");
  const std::string refused = workspace.write("refused.toml", "name = \"" + planted("name", true) + "\"\n");
  const std::string blocked =
      workspace.write("blocked.toml", "[commands]\nblocked_patterns = [\"(" + planted("pattern", true) + "\"]\n");
  const std::string damaged = workspace.write("damaged.toml", "a = 1\n\"" + planted("key", true) + "\" = 2\n");
  const std::string foreign = workspace.write(
      "foreign.json", R"({"network": {"allowedDomains": [], "deniedDomains": []}, "permissions": {"allow": [")" +
                          planted("rule", true) + R"("]}})");
  workspace.write("caisson.toml", "\"" + planted("project", true) + "\" = 1\n");
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"policy", "check", policy, damaged, refused, blocked},
                                             {"policy", "explain", policy},
                                             {"policy", "explain", policy, "--json"},
                                             {"policy", "explain", policy, "--command", planted("command")},
                                             {"policy", "import", foreign},
                                             {"policy", "import", foreign, "--json"},
                                             {"policy", "trust"},
                                             {"plan", "--policy", policy, "--", "true"},
                                             {"plan", "--policy", policy, "--json", "--", "true"},
                                             {"run", "--ro", "/" + planted("path"), "--", "true"},
                                             {"run", "--json", "--", planted("runs")},
                                             {"run", "--profile", planted("profile"), "--", "true"},
                                             {"run", "--allow-host", planted("host"), "--", "true"},
                                             {planted("verb")},
                                             {"tool", "add", "t", "--description", planted("tool"), "--profile",
                                              "files", "--", "grep", "{p}", planted("word")},
                                             {"tool", "list"},
                                             {"tool", "list", "--json"},
                                             {"tool", "show", "t"},
                                             {"tool", "show", "t", "--json"},
                                             {"approvals", "list"},
                                             {"approvals", "grant", planted("what")},
                                             {"doctor"},
                                             {"doctor", "--json"},
                                             {"clean", "--dry-run"}})
    (void)caisson(words);
  EXPECT_EQ(planted_, std::set<std::string>()) << "fields that no command printed";
}

TEST_F(Printers, ImagesEscapeWhatTheirConfigurationSays) {
  requireOrSkip(runCaisson({"image", "list"}, how_).exit_status == 0, "caisson-image is not beside caisson");
  const TempDir layout, root;
  root.write("etc/motd " + planted("motd"), "x\n");
  const auto member = [&](const std::string& name) { return '"' + planted(name, true) + '"'; };
  const std::string config = R"({"Env": ["A=)" + planted("env", true) + R"("], "Cmd": [)" + member("cmd") +
                             R"(], "Labels": {)" + member("label") + ": " + member("labelled") +
                             R"(}, "WorkingDir": )" + member("directory") + R"(, "User": )" + member("user") + "}";
  const RunOutput made =
      runProgram({"python3", std::string(std::getenv("CAISSON_SOURCE_DIR")) + "/tests/functional/oci_layout.py",
                  layout / "image", config, root.path()});
  ASSERT_EQ(made.exit_status, 0) << made.describe();
  EXPECT_EQ(caisson({"image", "import", layout / "image", "app:1"}).exit_status, 0);
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"image", "list"},
                                             {"image", "list", "--json"},
                                             {"image", "inspect", "app:1"},
                                             {"image", "verify"},
                                             {"image", "verify", "--json"},
                                             {"image", "inspect", planted("image")},
                                             {"image", "pull", planted("pulled")},
                                             {"run", "--image", "app:1", "--workspace", ":none"},
                                             {"image", "import", layout / planted("archive")},
                                             {"image", "remove", "app:1"}})
    (void)caisson(words);
  planted_.erase("planted-motd");  // a file of a layer is named only if it is changed
  EXPECT_EQ(planted_, std::set<std::string>()) << "fields that no command printed";
}

TEST_F(Printers, TerminalsGetNoSequencesOfFilesAndLogs) {
  const RunOutput made = caisson({"session", "create"});
  ASSERT_EQ(made.exit_status, 0) << made.describe();
  const std::string id = made.out.substr(0, made.out.find('\n'));
  const std::string content = planted("content");
  ASSERT_EQ(caisson({"session", "exec", id, "--", "sh", "-c", "echo \"$0\" > file", content}).exit_status, 0);
  const RunOutput started = caisson({"session", "exec", "--background", id, "--", "sh", "-c", "echo \"$0\"", content});
  ASSERT_EQ(started.exit_status, 0) << started.describe();
  const std::string exec = started.out.substr(0, started.out.find('\n'));
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"session", "diff", "-p", id},
                                             {"session", "read", id, "file"},
                                             {"session", "logs", "--follow", id, exec},
                                             {"audit", "show"}}) {
    std::vector<std::string> argv{"/usr/bin/env", "CAISSON_HOME=" + (home_ / "state"), caissonBinary()};
    argv.insert(argv.end(), words.begin(), words.end());
    Terminal terminal(argv, workspace.path());
    EXPECT_TRUE(terminal.shows("planted-content")) << words[1] << terminal.screen();
    EXPECT_TRUE(terminal.wait());
    for (const char* part : {"\x1b[31m\xc2", "\xc2\x9b", "\xe2\x80\xae", "\xe2\x80\x8b"})
      EXPECT_FALSE(contains(terminal.screen(), part)) << words[1] << terminal.screen();
  }
  // A program gets the bytes.
  EXPECT_EQ(runCaisson({"session", "read", id, "file"}, how_).out, content + "\n");
}

}  // namespace
}  // namespace caisson::test
