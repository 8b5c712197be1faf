// Learn mode with real programs: accesses are recorded and proposed, and nothing is granted.
#include <sys/stat.h>
#include <unistd.h>

#include <regex>
#include "functional/sandbox.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

class LearnFiles : public SandboxTest {
 protected:
  void SetUp() override {
    SandboxTest::SetUp();
    if (IsSkipped()) return;
    how_.env["CAISSON_HOME"] = state_.path();
    outside_.openToAll();
  }

  struct Lesson {
    RunOutput output;
    std::string proposal;
  };

  [[nodiscard]] Lesson learn(std::vector<std::string> options, const std::vector<std::string>& command) const {
    const std::string file = state_ / ("learned-" + std::to_string(lessons_++) + ".toml");
    options.insert(options.end(), {"--learn", file});
    RunOutput output = run(options, command, how_);
    return {std::move(output), exists(file) ? readFile(file) : ""};
  }
  [[nodiscard]] std::string lastLesson() const {
    return state_ / ("learned-" + std::to_string(lessons_ - 1) + ".toml");
  }

  RunOptions how_;
  const TempDir state_;
  const TempDir outside_;  ///< a host directory that no sandbox shows
  mutable int lessons_ = 0;
};

/// A program that needs a file, a program and a writable directory, none of them shown. Each proposal is used in the
/// next run, like a user who agrees.
TEST_F(LearnFiles, LeadToAPolicyThatAllowsTheProgram) {
  requireOrSkip(systemHas("python3"), "no python3");
  outside_.write("settings.json", R"({"answer": 42})");
  outside_.write("tool", "#!/bin/sh\necho made by the tool\n", 0755);
  outside_.makeDir("state", 0777);
  outside_.openToAll();
  const std::string place = outside_.path();
  const std::vector<std::string> command{"/usr/bin/python3", "-c",
                                         "import json, os, subprocess, sys\n"
                                         "settings = json.load(open('" +
                                             place +
                                             "/settings.json'))\n"
                                             "text = subprocess.run(['" +
                                             place +
                                             "/tool'], stdout=subprocess.PIPE, check=True).stdout\n"
                                             "open('" +
                                             place +
                                             "/state/result', 'wb').write(text)\n"
                                             "print(settings['answer'])"};
  std::vector<std::string> options;
  int lessons = 0;
  for (; lessons < 5; ++lessons) {
    const Lesson lesson = learn(options, command);
    if (lesson.output.exit_status == 0) break;
    EXPECT_EQ(lesson.output.out, "") << "nothing is given by asking" << lesson.output.describe();
    EXPECT_FALSE(exists(outside_ / "state/result"));
    options = {"--policy", lastLesson()};
    const RunOutput checked = runCaisson({"policy", "check", lastLesson()}, how_);
    ASSERT_EQ(checked.exit_status, 0) << lesson.proposal << checked.describe();
  }
  EXPECT_EQ(lessons, 3) << "one for the file, one for the program, one for the directory";
  EXPECT_EQ(readFile(outside_ / "state/result"), "made by the tool\n");
  const RunOutput without = run(options, command, how_);
  EXPECT_EQ(without.out, "42\n") << "the learned policy alone is enough" << without.describe();
}

TEST_F(LearnFiles, ProposeTheFileAndNotItsDirectory) {
  outside_.write("data/one", "1");
  outside_.write("data/two", "2");
  outside_.openToAll();
  const Lesson lesson = learn({}, {"cat", outside_ / "data/one"});
  EXPECT_NE(lesson.output.exit_status, 0);
  EXPECT_TRUE(contains(lesson.proposal, "filesystem.read_only = [\"" + (outside_ / "data/one") + "\"]"))
      << lesson.proposal;
  EXPECT_TRUE(contains(lesson.output.err, "+ filesystem.read_only")) << lesson.output.err;
  const Lesson listing = learn({}, {"ls", outside_ / "data"});
  EXPECT_TRUE(contains(listing.proposal, "[\"" + (outside_ / "data") + "\"]")) << listing.proposal;
}

TEST_F(LearnFiles, RelativePathsAndLinksAreFollowed) {
  outside_.write("data/one", "1");
  outside_.openToAll();
  ASSERT_EQ(symlink((outside_ / "data/one").c_str(), (workspace / "link").c_str()), 0);
  const Lesson relative = learn({}, {"sh", "-c", "cd /usr && cat ../" + (outside_ / "data/one").substr(1)});
  EXPECT_TRUE(contains(relative.proposal, "[\"" + (outside_ / "data/one") + "\"]")) << relative.proposal;
}

TEST_F(LearnFiles, ProposeAnOverlayWhereTheWorkspaceIsReadOnly) {
  const Lesson lesson = learn({"--workspace", ".:ro"}, {"touch", "new"});
  EXPECT_NE(lesson.output.exit_status, 0);
  EXPECT_TRUE(contains(lesson.proposal, "filesystem.workspace.mode = \"overlay\"")) << lesson.proposal;
}

TEST_F(LearnFiles, ProposeNothingThatIsHiddenOrASecret) {
  workspace.write(".env", "TOKEN=x");
  workspace.write("private/file", "x");
  workspace.openToAll();
  outside_.write("home/.ssh/id_ed25519", "key");
  outside_.write("home/server.pem", "key");
  outside_.openToAll();
  const Lesson lesson =
      learn({"--deny", "/workspace/private"},
            {"cat", ".env", "private/file", outside_ / "home/.ssh/id_ed25519", outside_ / "home/server.pem"});
  EXPECT_EQ(lesson.output.out, "");
  EXPECT_FALSE(contains(lesson.proposal, "\nfilesystem.")) << lesson.proposal;
  for (const char* name : {"# /workspace/.env was asked for and is hidden", "# /workspace/private/file was asked for",
                           "id_ed25519 was asked for and usually holds a secret", "server.pem was asked for"}) {
    EXPECT_TRUE(contains(lesson.proposal, name)) << name << lesson.proposal;
  }
}

/// A user who accepts the proposal without reading it must not give the payload a way out.
TEST_F(LearnFiles, ProposeNoWritingWhereTheHostExecutes) {
  outside_.write("home/.bashrc", "");
  outside_.write("home/.toolrc", "");
  outside_.write("home/.config/app/settings", "");
  outside_.write("home/.cache/app/data", "");
  outside_.write("project/.git/hooks/pre-commit.sample", "");
  outside_.write("project/.git/HEAD", "");
  outside_.write("tools/deep/run.sh", "#!/bin/sh\n", 0755);
  outside_.makeDir("state", 0777);
  ASSERT_EQ(symlink((outside_ / "home/.bashrc").c_str(), (outside_ / "state/log").c_str()), 0);
  outside_.openToAll();
  how_.env["HOME"] = outside_ / "home";
  for (const char* name :
       {"home/.bashrc", "home/.toolrc", "home/.config/app/settings", "home/.config/new", "home/.ssh/authorized_keys",
        "home/new", "project/.git/hooks/pre-commit", "project/new", "tools/new", "tools/deep/run.sh", "state/log"}) {
    const std::string path = outside_ / name;
    const Lesson lesson = learn({}, {"sh", "-c", "echo x >> " + path});
    EXPECT_FALSE(contains(lesson.proposal, "\nfilesystem.")) << lesson.proposal;
    EXPECT_TRUE(contains(lesson.proposal, "# " + path + " was asked for and ")) << lesson.proposal;
  }
  const Lesson data = learn({}, {"sh", "-c", "echo x >> " + (outside_ / "home/.cache/app/data")});
  EXPECT_TRUE(contains(data.proposal, "read_write = [\"" + (outside_ / "home/.cache/app/data") + "\"]"))
      << data.proposal;
}

TEST_F(LearnFiles, ProposeProgramsWhereThereIsAList) {
  workspace.write("list.toml", "process.allowed_executables = [\"bash\"]\n");
  const Lesson lesson = learn({"--policy", "list.toml"}, {"bash", "-c", "/usr/bin/id; true"});
  EXPECT_TRUE(contains(lesson.proposal, "process.allowed_executables = [\"bash\", \"/usr/bin/id\"]"))
      << lesson.proposal;
}

TEST_F(LearnFiles, ReportShownPathsThatWereNotUsed) {
  outside_.write("used", "1");
  outside_.write("unused", "2");
  outside_.openToAll();
  const Lesson lesson = learn({"--ro", outside_ / "used", "--ro", outside_ / "unused"}, {"cat", outside_ / "used"});
  EXPECT_EQ(lesson.output.out, "1");
  EXPECT_TRUE(contains(lesson.proposal, "never asked for: " + (outside_ / "unused"))) << lesson.proposal;
  EXPECT_FALSE(contains(lesson.proposal, "never asked for: " + (outside_ / "used") + " ")) << lesson.proposal;
  EXPECT_TRUE(contains(lesson.output.err, "nothing to change")) << lesson.output.err;
}

/// Without a network no host is reported; the program's DNS queries are used instead.
TEST_F(LearnFiles, ProposeTheRequestedHost) {
  requireOrSkip(systemHas("curl"), "no curl");
  const Lesson lesson = learn({}, {"curl", "-sS", "--max-time", "5", "https://registry.example.org/x"});
  EXPECT_TRUE(contains(lesson.proposal, "network.mode = \"proxy\"")) << lesson.output.err << lesson.proposal;
  EXPECT_TRUE(contains(lesson.proposal, "network.allowed_hosts = [\"registry.example.org\"]")) << lesson.proposal;
  const Lesson address =
      learn({}, {"curl", "-sS", "--max-time", "5", "http://93.184.216.34:8080/", "http://10.0.0.1/"});
  EXPECT_TRUE(contains(address.proposal, "network.allowed_hosts = [\"93.184.216.34\"]")) << address.proposal;
  EXPECT_TRUE(contains(address.proposal, "\"8080\"")) << address.proposal;
  EXPECT_TRUE(contains(address.proposal, "no policy reaches it: 10.0.0.1")) << address.proposal;
}

/// A program may pass an invalid pointer, an endless path, or a name that would inject a line into the policy.
TEST_F(LearnFiles, HandleInvalidPointersAndDeceptivePaths) {
  requireOrSkip(systemHas("python3"), "no python3");
  const Lesson lesson = learn({}, {"/usr/bin/python3", "-c", R"(
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for pointer in (0, 1, 4096, 2**63, 2**64 - 1):
    assert libc.open(ctypes.c_void_p(pointer), 0) == -1
    assert ctypes.get_errno() == 14, ctypes.get_errno()
assert libc.open(b"/" + b"x" * 10000, 0) == -1 and ctypes.get_errno() == 36
assert libc.openat(12345, b"x", 0) == -1 and ctypes.get_errno() == 9
for name in (b"/tmp/a\"\nisolation.level = \"none\"\n#", b"/tmp/\x1b[2J", b"/tmp/\xe2\x80\xae", b"/tmp/" + bytes([255]), b"../" * 50 + b"x"):
    libc.open(name, 0)
libc.sendto(0, ctypes.c_void_p(1), 2**40, 0, ctypes.c_void_p(2), 2**31)
libc.connect(0, ctypes.c_void_p(3), 16)
print("end"))"});
  EXPECT_EQ(lesson.output.out, "end\n") << lesson.output.describe();
  EXPECT_FALSE(contains(lesson.proposal, "\nisolation.level")) << lesson.proposal;
  EXPECT_FALSE(contains(lesson.proposal, "\x1b")) << lesson.proposal;
}

/// Threads, signals, children, thousands of files: programs work as without learning.
TEST_F(LearnFiles, DoNotDisturbProgramsThatWork) {
  requireOrSkip(systemHas("python3") && systemHas("git"), "no python3 or git");
  const Lesson lesson = learn({"--timeout", "100s"}, {"bash", "-c", R"(
set -e
git init -q repo && cd repo && for i in $(seq 50); do echo $i > f$i; done && git add . && git -c user.name=a -c user.email=b commit -qm x
git log --oneline | wc -l
/usr/bin/python3 -c '
import threading, os, signal
signal.signal(signal.SIGALRM, lambda *_: None); signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
def work():
    for i in range(300): open("/etc/passwd").close(); os.stat("/usr"); os.path.exists("/nowhere/%d" % i)
threads = [threading.Thread(target=work) for _ in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
signal.setitimer(signal.ITIMER_REAL, 0)
print("threads")'
find /usr/share/doc -maxdepth 1 | head -1000 | wc -l >/dev/null; echo found)"});
  EXPECT_EQ(lesson.output.exit_status, 0) << lesson.output.describe();
  EXPECT_TRUE(contains(lesson.output.out, "1\nthreads\nfound\n")) << lesson.output.describe();
}

/// Learning does not change denials, however many calls are reported.
TEST_F(LearnFiles, DenialsStayInForceWhileLearning) {
  const Lesson lesson = learn({"--workspace", ".:overlay"}, {"bash", "-c", R"(
unshare -r true 2>/dev/null && echo unshared
touch /usr/x 2>/dev/null && echo wrote
: > x && chmod u+s x 2>/dev/null && echo planted
mount -t tmpfs none /tmp 2>/dev/null && echo mounted
cat /etc/shadow 2>/dev/null && echo read
echo end)"});
  EXPECT_EQ(lesson.output.out, "end\n") << lesson.output.describe();
  EXPECT_FALSE(exists(workspace / "x"));
}

class LearnMerge : public LearnFiles {
 protected:
  [[nodiscard]] RunOutput learnInto(const std::string& file, std::vector<std::string> options,
                                    const std::vector<std::string>& command) const {
    options.insert(options.end(), {"--learn", file});
    return run(options, command, how_);
  }
};

TEST_F(LearnMerge, LaterLessonsAreAddedToEarlierOnes) {
  outside_.write("one", "1\n");
  outside_.write("two", "2\n");
  outside_.openToAll();
  const std::string file = state_ / "l.toml";
  const RunOutput first = learnInto(file, {}, {"cat", outside_ / "one"});
  ASSERT_TRUE(exists(file)) << first.describe();
  const RunOutput second = learnInto(file, {}, {"cat", outside_ / "two"});
  EXPECT_TRUE(contains(second.err, "- filesystem.read_only = [\"" + (outside_ / "one") + "\"]")) << second.err;
  EXPECT_TRUE(contains(second.err, "+ filesystem.read_only")) << second.err;
  const RunOutput both = run({"--policy", file}, {"cat", outside_ / "one", outside_ / "two"}, how_);
  EXPECT_EQ(both.out, "1\n2\n") << both.describe() << readFile(file);
}

TEST_F(LearnMerge, ShowsAllThatTheFileWidens) {
  outside_.write("one", "1\n");
  outside_.openToAll();
  const std::string file = state_ / "l.toml";
  (void)learnInto(file, {}, {"cat", outside_ / "one"});
  state_.write("l.toml", readFile(file) + "network.allowed_hosts = ['evil.example.org']\n");
  const RunOutput second = learnInto(file, {}, {"cat", outside_ / "one"});
  EXPECT_TRUE(contains(second.err, "network.allowed_hosts: [] -> [evil.example.org]")) << second.err;
}

TEST_F(LearnMerge, IntoThePolicyOfTheRunDoesNotMakeItExtendItself) {
  outside_.write("one", "1\n");
  outside_.write("two", "2\n");
  outside_.openToAll();
  for (const char* start : {"", "# mine\nresources.cpus = 0.5\n"}) {
    const std::string file = state_ / "own.toml";
    state_.write("own.toml", start);
    const RunOutput first = learnInto(file, {"--policy", file}, {"cat", outside_ / "one"});
    const RunOutput second = learnInto(file, {"--policy", file}, {"cat", outside_ / "one", outside_ / "two"});
    const RunOutput both = run({"--policy", file}, {"cat", outside_ / "one", outside_ / "two"}, how_);
    EXPECT_EQ(both.out, "1\n2\n") << first.describe() << second.describe() << both.describe() << readFile(file);
    EXPECT_TRUE(readFile(file).starts_with(start)) << readFile(file);
  }
}

TEST_F(LearnMerge, NeverReplacesOtherFilesWithoutARequest) {
  outside_.write("one", "1\n");
  outside_.openToAll();
  const std::string file = state_.write("notes.toml", "precious = true\n");
  const RunOutput refused = learnInto(file, {}, {"sh", "-c", "echo ran; cat " + outside_ / "one"});
  EXPECT_EQ(refused.exit_status, 125);
  EXPECT_EQ(refused.out, "") << "it must not run first";
  EXPECT_TRUE(contains(refused.err, "--force")) << refused.err;
  EXPECT_EQ(readFile(file), "precious = true\n");
  const RunOutput forced = learnInto(file, {"--force", "--profile", "bash"}, {"cat", outside_ / "one"});
  EXPECT_TRUE(contains(readFile(file), outside_ / "one")) << forced.describe();
  const RunOutput other = learnInto(file, {"--profile", "shell"}, {"true"});
  EXPECT_EQ(other.exit_status, 125) << "the file extends another profile" << other.describe();
  EXPECT_TRUE(contains(other.err, "extends bash")) << other.err;
  EXPECT_EQ(run({"--force"}, {"true"}, how_).exit_status, 125);
  EXPECT_EQ(learnInto(state_ / "l.json", {}, {"true"}).exit_status, 125);
}

class PolicyTest : public LearnFiles {
 protected:
  [[nodiscard]] RunOutput test(const std::string& policy, const std::vector<std::string>& command) const {
    const std::string file = state_.write("p.toml", policy);
    std::vector<std::string> args{"policy", "test", file, "--"};
    args.insert(args.end(), command.begin(), command.end());
    RunOptions how = how_;
    how.cwd = workspace.path();
    return runCaisson(args, how);
  }
};

TEST_F(PolicyTest, ReportsWhatWasDeniedAndWhatWouldAllowIt) {
  outside_.write("one", "1\n");
  outside_.openToAll();
  const RunOutput denied = test("", {"sh", "-c", "cat " + outside_ / "one" + "; echo done"});
  EXPECT_EQ(denied.exit_status, 1) << denied.describe();
  EXPECT_EQ(denied.out, "done\n");
  EXPECT_TRUE(contains(denied.err, "this would allow it")) << denied.err;
  EXPECT_TRUE(contains(denied.err, "filesystem.read_only = [\"" + (outside_ / "one") + "\"]")) << denied.err;
  const RunOutput allowed =
      test("filesystem.read_only = [\"" + outside_.path() + "\"]", {"sh", "-c", "cat " + outside_ / "one"});
  EXPECT_EQ(allowed.exit_status, 0) << allowed.describe();
  EXPECT_EQ(allowed.out, "1\n");
  EXPECT_TRUE(contains(allowed.err, "nothing was denied")) << allowed.err;
}

TEST_F(PolicyTest, CountsHiddenFilesCallsAndLimits) {
  workspace.write(".env", "TOKEN=x");
  workspace.openToAll();
  EXPECT_EQ(test("", {"cat", ".env"}).exit_status, 1);
  EXPECT_EQ(test("", {"sh", "-c", "unshare -r true; true"}).exit_status, 1);
  EXPECT_EQ(test("resources.wall_seconds = 1", {"sleep", "60"}).exit_status, 1);
  const RunOutput command = test("commands.blocked_patterns = ['rm ']", {"rm", "-r", "x"});
  EXPECT_NE(command.exit_status, 0) << command.describe();
  EXPECT_TRUE(contains(command.err, "commands.blocked_patterns")) << command.err;
}

TEST_F(PolicyTest, WithoutADenialTheStatusIsTheCommands) {
  EXPECT_EQ(test("", {"sh", "-c", "exit 7"}).exit_status, 7);
  EXPECT_EQ(test("", {"true"}).exit_status, 0);
  EXPECT_EQ(test("nonsense = 1", {"true"}).exit_status, 125);
  EXPECT_EQ(runCaisson({"policy", "test", "--", "true"}).exit_status, 125);
}

class TraceFiles : public LearnFiles {};

TEST_F(TraceFiles, ShowsWhatWasAskedForAndStarted) {
  CONFORMS("R-AUDIT-8");
  workspace.write("input", "1\n");
  workspace.openToAll();
  for (const std::string level : {"full", "process"}) {
    const std::string place = level == "full" ? "/workspace" : workspace.path();
    const RunOutput output = run({"--trace", "files", "--json", "--level", level},
                                 {"sh", "-c",
                                  "cat input /nowhere/at/all; ls / >/dev/null; : > made; : > old; mv old new; "
                                  "dd if=/dev/null of=input conv=notrunc,nocreat status=none; rm new; mkdir dir"},
                                 how_);
    std::string seen;
    const nlohmann::json result = output.json();
    for (const auto& file : result["files"]) {
      seen += file["operation"].get<std::string>() + " " + file["path"].get<std::string>() + " " +
              file["state"].get<std::string>() + "\n";
    }
    EXPECT_TRUE(contains(seen, "read " + place + "/input present\n")) << level << seen;
    EXPECT_TRUE(contains(seen, "read /nowhere/at/all absent\n")) << level << seen;
    EXPECT_TRUE(contains(seen, "create " + place + "/made present\n")) << level << seen;
    EXPECT_TRUE(contains(seen, "write " + place + "/input present\n")) << level << seen;
    EXPECT_TRUE(contains(seen, "write " + place + "/old present\n")) << "renamed: " << level << seen;
    EXPECT_TRUE(contains(seen, "create " + place + "/new present\n")) << level << seen;
    EXPECT_TRUE(contains(seen, "write " + place + "/new present\n")) << "removed: " << level << seen;
    EXPECT_TRUE(contains(seen, "create " + place + "/dir present\n")) << level << seen;
    EXPECT_TRUE(std::regex_search(seen, std::regex("execute [^ ]*/cat present\n"))) << level << seen;
  }
  const RunOutput lines = run({"--trace", "files"}, {"cat", "input"}, how_);
  EXPECT_EQ(lines.out, "1\n");
  EXPECT_TRUE(contains(lines.err, "caisson: trace: read /workspace/input\n")) << lines.err;
  EXPECT_FALSE(contains(run({"--json"}, {"true"}, how_).out, "\"files\"")) << "without --trace";
}

TEST_F(TraceFiles, UnknownKindIsRejected) {
  const RunOutput unknown = run({"--trace", "everything"}, {"true"}, how_);
  EXPECT_EQ(unknown.exit_status, 125);
  EXPECT_TRUE(contains(unknown.err, "--trace")) << unknown.err;
}

}  // namespace
}  // namespace caisson::test
