// Invalid command lines, files and environments: a clear error or a clean run, never a hang or a crash.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "functional/sandbox.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

using std::chrono::seconds;

class BadInput : public SandboxTest {
 protected:
  /// caisson refused with its own message, and printed nothing else.
  static void expectRefusal(const RunOutput& output, int status = 125) {
    EXPECT_EQ(output.exit_status, status) << output.describe();
    EXPECT_TRUE(output.err.starts_with("caisson: ")) << output.describe();
    EXPECT_GT(output.err.size(), 20U) << output.describe();
    EXPECT_EQ(output.out, "") << output.describe();
    EXPECT_LT(output.duration, seconds(10));
  }
  /// It either worked or failed with a message.
  static void expectCleanRunOrRefusal(const RunOutput& output) {
    EXPECT_FALSE(output.timed_out) << output.describe();
    if (output.exit_status != 0) expectRefusal(output);
  }
};

TEST_F(BadInput, UnusablePrograms) {
  workspace.write("plain", "not executable");
  workspace.write("garbage",
                  std::string("\x7f"
                              "ELF garbage",
                              12),
                  0755);
  workspace.write("bad-interpreter", "#!/no/such/interpreter\n", 0755);
  workspace.makeDir("directory");
  expectRefusal(run({}, {"missing"}), 127);
  expectRefusal(run({}, {"./missing"}), 127);
  expectRefusal(run({}, {"/workspace/missing/deeper"}), 127);
  expectRefusal(run({}, {"./plain"}), 126);
  expectRefusal(run({}, {"./directory"}), 126);
  expectRefusal(run({}, {"/"}), 126);
  expectRefusal(run({}, {"./plain/below"}), 127);
  expectRefusal(run({}, {"./garbage"}), 126);
  expectRefusal(run({}, {"./bad-interpreter"}), 127);
  EXPECT_TRUE(contains(run({}, {"./bad-interpreter"}).err, "interpreter that its first line names"));
  EXPECT_FALSE(contains(run({}, {"./missing"}).err, "interpreter"));
  expectRefusal(run({}, {"./" + std::string(5000, 'x')}), 126);
  expectRefusal(run({}, {std::string(300, 'x')}), 127);  // no directory on PATH can hold such a name
}

TEST_F(BadInput, NoProgramAtAll) {
  expectRefusal(run({}, {}));
  expectRefusal(run({}, {""}));
  expectRefusal(runCaisson({"run"}));
  const RunOutput alone = runCaisson({});
  EXPECT_EQ(alone.exit_status, 125) << alone.describe();
  EXPECT_EQ(alone.out, "");
  EXPECT_NE(alone.err.find("caisson run -- "), std::string::npos) << alone.describe();
  EXPECT_NE(alone.err.find("caisson --help"), std::string::npos) << alone.describe();
}

TEST_F(BadInput, ScriptWithoutInterpreterLineExitsWith126) {
  workspace.write("script", "echo ran\n", 0755);
  const RunOutput output = run({}, {"./script"});
  EXPECT_EQ(output.exit_status, 126) << output.describe();
  EXPECT_EQ(output.out, "");
}

TEST_F(BadInput, InvalidSizeIsRejected) {
  for (const std::string option : {"--memory", "--output-limit", "--timeout", "--cpus", "--pids"}) {
    for (const std::string value : {"-1", "1e30", "99999999999G", "abc", "", " ", "0x10", "1.2.3", "NaN", "inf",
                                    "18446744073709551616", "+", "G", "\xFF"}) {
      const RunOutput output = run({option, value}, {"true"});
      expectRefusal(output);
      EXPECT_TRUE(contains(output.err, option)) << "names the option: " << output.describe();
    }
  }
  for (const std::string option : {"--memory", "--cpus", "--pids"}) expectRefusal(run({option, "0"}, {"true"}));
  expectRefusal(run({"--pids", "1.5"}, {"true"}));
  expectRefusal(run({"--memory"}, {}));
}

TEST_F(BadInput, ValuesAboveTheCeilingAreRefusedNotClipped) {
  CONFORMS("R-POLICY-4", "R-LIMIT-7", "R-LIMIT-1");
  const auto underPolicy = [&](const std::string& line) {
    workspace.write("p.toml", line + "\n");
    return run({"--policy", "p.toml"}, {"true"});
  };
  for (const std::string line :
       {"resources.memory = '2049M'", "resources.wall_seconds = '601s'", "resources.wall_seconds = 'none'",
        "resources.cpus = 2.1", "process.max_processes = 501", "resources.open_files = 4097"}) {
    const RunOutput output = underPolicy(line);
    expectRefusal(output);
    EXPECT_TRUE(contains(output.err, "ceiling")) << output.describe();
  }
  for (const std::string line : {"resources.memory = '2G'", "resources.wall_seconds = '10m'", "resources.cpus = 2",
                                 "process.max_processes = 500", "resources.open_files = 4096"}) {
    EXPECT_EQ(underPolicy(line).exit_status, 0) << line;
  }
}

TEST_F(BadInput, InvalidPolicyFileIsRejected) {
  workspace.makeDir("directory.toml");
  ASSERT_EQ(mkfifo((workspace / "fifo.toml").c_str(), 0600), 0);
  ASSERT_EQ(symlink("nowhere", (workspace / "dangling.toml").c_str()), 0);
  ASSERT_EQ(symlink("loop.toml", (workspace / "loop.toml").c_str()), 0);
  workspace.write("nul.toml", std::string("name = \"a\0b\"\n", 13));
  workspace.write("binary.toml", "\xFF\xFE\x00\x01");
  workspace.write("huge.toml", "x = \"" + std::string(8 << 20, 'x') + "\"\n");
  workspace.write("deep.json", std::string(100000, '['));
  workspace.write("deep.yaml", std::string(100000, '['));
  workspace.write("deep.toml", "x = " + std::string(100000, '['));
  workspace.write(
      "bomb.yaml",
      "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"
      "d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n"
      "g: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f]\nh: [*g,*g,*g,*g,*g,*g,*g,*g,*g]\n");
  workspace.write("loop.yaml", "a: &a [*a]\n");
  workspace.write("twice.json", R"({"name": "a", "name": "b"})");
  workspace.write("self.toml", "extends = \"self.toml\"\n");
  workspace.write("a.toml", "extends = \"b.toml\"\n");
  workspace.write("b.toml", "extends = \"a.toml\"\n");
  workspace.write("unknown.toml", "[resources]\nmemroy = \"1G\"\n");
  workspace.write("array.json", "[]");
  workspace.write("number.json", "3");
  for (const std::string name : {"missing.toml",   "directory.toml",
                                 "fifo.toml",      "dangling.toml",
                                 "loop.toml",      "nul.toml",
                                 "binary.toml",    "huge.toml",
                                 "deep.json",      "deep.yaml",
                                 "deep.toml",      "bomb.yaml",
                                 "loop.yaml",      "twice.json",
                                 "self.toml",      "a.toml",
                                 "unknown.toml",   "array.json",
                                 "number.json",    "/dev/zero",
                                 "/proc/self/mem", ""}) {
    SCOPED_TRACE(name);
    expectRefusal(run({"--policy", name}, {"echo", "ran"}, {.timeout = seconds(15)}));
  }
  workspace.write("unreadable.toml", "name = \"x\"\n", 0);
  if (!runsAsRoot()) expectRefusal(run({"--policy", "unreadable.toml"}, {"true"}));
  workspace.write("empty.toml", "");
  EXPECT_EQ(run({"--policy", "empty.toml"}, {"true"}).exit_status, 0) << "an empty policy is the default one";
}

TEST_F(BadInput, UnusableWorkspaceIsRejected) {
  workspace.write("file", "x");
  ASSERT_EQ(symlink("nowhere", (workspace / "dangling").c_str()), 0);
  ASSERT_EQ(symlink("file", (workspace / "to-file").c_str()), 0);
  ASSERT_EQ(symlink("loop", (workspace / "loop").c_str()), 0);
  ASSERT_EQ(mkfifo((workspace / "fifo").c_str(), 0600), 0);
  for (const std::string& name :
       {std::string("missing"), std::string("file"), std::string("dangling"), std::string("to-file"),
        std::string("loop"), std::string("fifo"), std::string("file/below"), std::string(5000, 'x'),
        std::string(300, 'x'), std::string("/dev/null"), "./" + std::string(4090, '/') + "missing",
        std::string(".:bogus"), std::string(":"), std::string("new\nline")}) {
    for (const std::string mode : {"", ":ro", ":rw", ":overlay"}) {
      SCOPED_TRACE(name.substr(0, 40) + mode);
      expectRefusal(run({"--workspace", name + mode}, {"true"}, {.timeout = seconds(15)}));
    }
  }
  expectRefusal(run({"--workspace", ""}, {"true"}));
}

TEST_F(BadInput, WorkspaceOfAnotherUser) {
  if (runsAsRoot()) {
    workspace.makeDir("closed", 0700);
    EXPECT_EQ(run({"--workspace", "closed"}, {"ls"}).exit_status, 0) << "root's own closed directory is root's to show";
  } else {
    expectRefusal(run({"--workspace", "/root"}, {"true"}));
    const std::string mine = workspace.makeDir("mine", 0);
    expectRefusal(run({"--workspace", "mine"}, {"true"}));
    chmod(mine.c_str(), 0700);
  }
}

TEST_F(BadInput, WorkspaceRemovedDuringTheRun) {
  for (const std::string mode : {"overlay", "ro", "rw"}) {
    const RunOutput output =
        onHost("rm -f said; mkdir gone; echo x > gone/f; { \"$CAISSON\" run --workspace gone:" + mode +
                   " -- sh -c 'echo begun; sleep 0.5; ls; touch new; exit 4' > said; echo status $?; } & "
                   "until grep -q begun said 2>/dev/null; do sleep 0.02; done; rm gone/f; rmdir gone; wait",
               {.timeout = seconds(20)});
    EXPECT_TRUE(contains(output.out, "status 4")) << mode << output.describe();
  }
}

TEST_F(BadInput, ADeletedCurrentDirectory) {
  const RunOutput output = onHost(
      R"(mkdir d; cd d; rmdir ../d; "$CAISSON" run -- true; status=$?; cd ..; "$CAISSON" run --workspace . -- true || exit 9; exit $status)");
  EXPECT_EQ(output.exit_status, 125) << output.describe();
  EXPECT_TRUE(contains(output.err, "the current directory: it was removed")) << output.describe();
  EXPECT_TRUE(contains(output.err, "--workspace DIR")) << output.describe();
  const RunOutput named = onHost(R"(mkdir d; cd d; rmdir ../d; "$CAISSON" run --workspace :none -- pwd)");
  EXPECT_EQ(named.exit_status, 0) << "nothing needs the current directory " << named.describe();
}

TEST_F(BadInput, AConfiguredProfileThatDoesNotExistNamesFileAndKey) {
  const std::string file = workspace.write("config/caisson/config.toml", "[defaults]\nprofile = 'bsh'\n", 0600);
  const RunOutput output = run({}, {"true"}, {.env = {{"XDG_CONFIG_HOME", workspace / "config"}}});
  EXPECT_EQ(output.exit_status, 125) << output.describe();
  EXPECT_TRUE(contains(output.err, file + ": defaults.profile: there is no built-in profile \"bsh\"")) << output.err;
  EXPECT_TRUE(contains(output.err, "did you mean \"bash\"?")) << output.err;
}

TEST_F(BadInput, ACurrentDirectoryThatCannotBeReadOrWritten) {
  workspace.makeDir("closed");
  workspace.write("closed/f", "x\n");
  ASSERT_EQ(chmod((workspace / "closed").c_str(), 0555), 0);
  EXPECT_EQ(run({}, {"cat", "f"}, {.cwd = workspace / "closed"}).out, "x\n");
  const RunOutput output = onHost(R"(mkdir x; cd x; chmod 0111 .; "$CAISSON" run -- true)");
  expectCleanRunOrRefusal(output);
}

TEST_F(BadInput, ArgumentsPassUnchanged) {
  const std::vector<std::string> words{"\xFF\xFE\x80", "",   " ",     "a b", "\n",    "\t\x01\x1b",
                                       "--",           "-x", "$HOME", "*",   "'\"\\", "\xC3\xA4"};
  std::vector<std::string> command{"printf", "[%s]"};
  command.insert(command.end(), words.begin(), words.end());
  std::string expected;
  for (const std::string& word : words) expected += "[" + word + "]";
  EXPECT_EQ(run({}, command).out, expected);
}

TEST_F(BadInput, OneLargeArgumentPassesUnchanged) {
  const std::string large(131000, 'x');  // the kernel's maximum is 128 KiB per argument
  EXPECT_EQ(run({"--output-limit", "1M"}, {"printf", "%s", large}).out, large);
  EXPECT_EQ(run({}, {"sh", "-c", "printf %s ${#1}", "sh", large}).out, "131000");
  const RunOutput beyond = onHost(R"sh("$CAISSON" run -- printf %s "$(head -c 200K /dev/zero | tr '\0' x)" | wc -c)sh");
  EXPECT_FALSE(beyond.timed_out) << "the shell itself can't pass 200 KiB on";
}

TEST_F(BadInput, TwoMebibytesOfArguments) {
  // A raised stack limit lets the kernel pass this much to caisson; inside, the policy's stack limit applies.
  const RunOutput output =
      onHost(R"sh(ulimit -s unlimited 2>/dev/null || ulimit -s 65536 2>/dev/null || { echo 0; exit 0; }
    "$CAISSON" run -- sh -c 'echo $#' sh $(seq 1 330000))sh",
             {.timeout = seconds(30)});
  EXPECT_FALSE(output.timed_out);
  if (output.exit_status != 0) {
    EXPECT_TRUE(output.exit_status == 125 || output.exit_status == 126) << output.describe();
    EXPECT_TRUE(contains(output.err, "E2BIG") || contains(output.err, "bytes")) << output.describe();
  }
}

TEST_F(BadInput, ErrorsAreSafeToPrintOnATerminal) {
  const std::string hostile = "\x1b[31m\x1b]0;owned\x07\xE2\x80\xAE\r\n\xFF";
  for (const RunOutput& output :
       {run({}, {hostile}), run({"--workspace", hostile}, {"true"}), run({"--policy", hostile + ".toml"}, {"true"}),
        run({"--" + hostile}, {"true"}), run({"--profile", hostile}, {"true"}), run({"--memory", hostile}, {"true"}),
        run({"--env", "=" + hostile}, {"true"}), runCaisson({hostile}),
        runCaisson({"policy", "check", hostile + ".toml"})}) {
    EXPECT_NE(output.exit_status, 0);
    for (const char* part : {"\x1b", "\x07", "\r", "\xE2\x80\xAE", "\xFF"})
      EXPECT_FALSE(contains(output.err, part)) << output.describe();
  }
}

TEST_F(BadInput, EnvironmentVariables) {
  for (const std::string value : {"", "=", "=x", "A B=1", "A\nB=1"}) expectRefusal(run({"--env", value}, {"true"}));
  EXPECT_EQ(run({"--env", "NOT_SET_OUTSIDE"}, {"env"}, {.unset = {"NOT_SET_OUTSIDE"}}).out.find("NOT_SET_OUTSIDE"),
            std::string::npos);
  EXPECT_EQ(run({"--env", "A=\xFF\n"}, {"sh", "-c", "printf %s \"$A\""}).out, "\xFF\n");
}

TEST_F(BadInput, FiveHundredVariables) {
  CONFORMS("R-PROCESS-14");
  RunOptions how;
  std::vector<std::string> options;
  for (int index = 0; index < 500; ++index) {
    how.env["VARIABLE_" + std::to_string(index)] = std::string(50, 'v');
    options.insert(options.end(), {"--env", "GIVEN_" + std::to_string(index) + "=x"});
  }
  EXPECT_EQ(run({}, {"sh", "-c", "env | grep -c VARIABLE_"}, how).out, "0\n");
  EXPECT_EQ(run(options, {"sh", "-c", "env | grep -c GIVEN_"}, how).out, "500\n");
}

TEST_F(BadInput, NoHomeNoPathNoEnvironment) {
  EXPECT_EQ(run({}, {"echo", "ran"}, {.unset = {"HOME"}}).out, "ran\n");
  EXPECT_EQ(run({}, {"echo", "ran"},
                {.env = {{"HOME", "/no/such/home"}, {"TMPDIR", "/no/such/tmp"}, {"XDG_RUNTIME_DIR", ""}}})
                .out,
            "ran\n");
  EXPECT_EQ(run({}, {"echo", "ran"}, {.env = {{"HOME", "relative"}, {"XDG_DATA_HOME", "\xFF"}}}).out, "ran\n");
  EXPECT_EQ(onHost(R"(env -i "$CAISSON" run -- echo ran)").out, "ran\n");
}

TEST_F(BadInput, FewDescriptors) {
  for (const int limit : {8, 12, 20, 32, 64}) {
    const RunOutput output =
        onHost("ulimit -n " + std::to_string(limit) + "; exec \"$CAISSON\" run -- true", {.timeout = seconds(15)});
    SCOPED_TRACE(limit);
    expectCleanRunOrRefusal(output);
  }
}

TEST_F(BadInput, LowResourceLimitsOfTheCaller) {
  EXPECT_EQ(onHost(R"(nice -n 3 "$CAISSON" run -- nice)").out, onHost("nice -n 3 nice").out);
  EXPECT_EQ(onHost(R"(umask 077; "$CAISSON" run --workspace .:rw -- cat /etc/hostname)").out, "sandbox\n");
  for (const std::string limit : {"-f 0", "-s 256", "-c 0", "-t 5", "-l 0", "-q 0", "-i 0"}) {
    SCOPED_TRACE(limit);
    if (kThreadSanitizer && limit == "-f 0") continue;
    expectCleanRunOrRefusal(onHost("ulimit " + limit + "; \"$CAISSON\" run -- true", {.timeout = seconds(15)}));
  }
}

TEST_F(BadInput, IgnoredSignalsOfTheCallerAreNotInherited) {
  for (const std::string names : {"TERM INT HUP PIPE USR1", "CHLD"}) {
    const RunOutput output =
        onHost("trap '' " + names +
                   R"(; "$CAISSON" run -- sh -c 'grep -E "^Sig(Blk|Ign):" /proc/self/status | cut -f2; exit 6')",
               {.timeout = seconds(10)});
    EXPECT_EQ(output.exit_status, 6) << names << output.describe();
    EXPECT_EQ(output.out, "0000000000000000\n0000000000000000\n") << names << output.describe();
  }
}

TEST_F(BadInput, ResultFiles) {
  workspace.makeDir("directory");
  ASSERT_EQ(mkfifo((workspace / "fifo").c_str(), 0600), 0);
  for (const std::string& name : {std::string("missing/result"), std::string("directory"), std::string(""),
                                  std::string(5000, 'x'), std::string(300, 'x')}) {
    SCOPED_TRACE(name.substr(0, 40));
    expectRefusal(run({"--result", name}, {"true"}, {.timeout = seconds(15)}));
  }
  EXPECT_FALSE(run({"--result", "fifo"}, {"true"}, {.timeout = seconds(15)}).timed_out);
  EXPECT_FALSE(run({"--result", "/dev/full"}, {"true"}, {.timeout = seconds(15)}).timed_out);
}

TEST_F(BadInput, PathsToShowOrHide) {
  for (const std::vector<std::string>& options :
       std::vector<std::vector<std::string>>{{"--ro", "missing"},
                                             {"--ro", ""},
                                             {"--rw", "missing"},
                                             {"--rw", "/"},
                                             {"--ro", std::string(5000, 'x')},
                                             {"--deny", ""},
                                             {"--deny", "../.."},
                                             {"--deny", std::string(5000, 'x')},
                                             {"--rw", "/proc"},
                                             {"--rw", "/proc/self"}}) {
    SCOPED_TRACE(options[0] + " " + options[1].substr(0, 40));
    expectRefusal(run(options, {"true"}));
  }
}

TEST_F(BadInput, ContradictionsAreNamed) {
  CONFORMS("R-POLICY-2");
  for (const auto& [flag, value] : std::vector<std::pair<std::string, std::string>>{
           {"--allow-host", "example.org"}, {"--level", "medium"}, {"--net", "some"}, {"--approve", "everything"}}) {
    const RunOutput refused = run({flag, value}, {"true"});
    expectRefusal(refused);
    EXPECT_TRUE(refused.err.starts_with("caisson: " + flag + " ")) << refused.describe();
    EXPECT_TRUE(contains(refused.err, "try: ")) << refused.describe();
  }
  for (const auto& [text, key] : std::vector<std::pair<std::string, std::string>>{
           {"process.allowed_executables = ['cat']\nprocess.blocked_executables = ['cat']\n",
            "p.toml:1: process.allowed_executables[0]"},
           {"resources.memory = '100M'\nresources.memory_reservation = '200M'\n",
            "p.toml:2: resources.memory_reservation"},
           {"filesystem.read_only = ['/opt']\nfilesystem.read_write = ['/opt']\n", "p.toml:1: filesystem.read_only[0]"},
           {"network.allowed_hosts = ['a.test']\nnetwork.denied_hosts = ['a.test']\n",
            "p.toml:1: network.allowed_hosts[0]"}}) {
    workspace.write("p.toml", text);
    const RunOutput refused = run({"--policy", "p.toml"}, {"true"});
    expectRefusal(refused);
    EXPECT_TRUE(contains(refused.err, key)) << refused.describe();
    EXPECT_TRUE(contains(refused.err, "try: ")) << refused.describe();
  }
}

}  // namespace
}  // namespace caisson::test
