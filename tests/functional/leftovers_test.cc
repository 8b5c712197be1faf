// Whatever happens to caisson, it leaves no process, mount, control group or file.
#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <random>
#include <set>
#include <sstream>
#include <thread>

#include "functional/sandbox.h"
#include "functional/tree_state.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

void addControlGroups(const std::string& directory, int depth, std::set<std::string>& found) {
  DIR* stream = depth > 6 ? nullptr : opendir(directory.c_str());
  if (stream == nullptr) return;
  while (const dirent* entry = readdir(stream)) {
    if (entry->d_type != DT_DIR || entry->d_name[0] == '.') continue;
    const std::string path = directory + "/" + entry->d_name;
    found.insert(path);
    addControlGroups(path, depth + 1, found);
  }
  closedir(stream);
}

std::set<std::string> controlGroups() {
  std::set<std::string> found;
  addControlGroups("/sys/fs/cgroup", 0, found);
  return found;
}

std::set<std::string> mounts() {
  std::set<std::string> found;
  std::istringstream lines(readFile("/proc/self/mountinfo"));
  for (std::string line; std::getline(lines, line);) found.insert(line);
  return found;
}

std::string added(const std::set<std::string>& before, const std::set<std::string>& after) {
  std::string text;
  for (const std::string& entry : after) {
    if (!before.contains(entry)) text += entry + "\n";
  }
  return text;
}

/// Every directory in which caisson could keep state is private to the test, so that any leftover is found.
class Leftovers : public SandboxTest {
 protected:
  void SetUp() override {
    SandboxTest::SetUp();
    mounts_ = mounts();
    groups_ = controlGroups();
  }

  [[nodiscard]] RunOptions options() const {
    RunOptions how;
    for (const char* variable : {"TMPDIR", "CAISSON_HOME", "HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME",
                                 "XDG_STATE_HOME", "XDG_CONFIG_HOME"}) {
      how.env[variable] = state_.makeDir(variable, 0700);
    }
    how.cwd = workspace.path();
    how.timeout = seconds(30);
    return how;
  }

  void expectNothingRuns(const std::string& marker) const {
    EXPECT_TRUE(eventually([&] { return processesNaming(marker).empty(); }, seconds(5))) << "processes are left";
  }

  /// The registry of live writers without a record, which stays, and the record of CAISSON_HOME.
  static bool isRegistry(const std::string& path) {
    const std::string homes = "XDG_DATA_HOME/caisson/trees/homes";
    return path == homes || std::filesystem::path(path).parent_path() == homes ||
           std::string("XDG_DATA_HOME/caisson/trees/writers/lock").starts_with(path);
  }

  void expectNothingLeft(const std::string& marker) const {
    expectNothingRuns(marker);
    EXPECT_TRUE(eventually([&] { return added(mounts_, mounts()).empty(); }, seconds(5))) << added(mounts_, mounts());
    EXPECT_TRUE(eventually([&] { return added(groups_, controlGroups()).empty(); }, seconds(5)))
        << added(groups_, controlGroups());
    int records = 0;
    for (const auto& [path, entry] : treeState(state_.path())) {
      if (path.starts_with("CAISSON_HOME/audit")) continue;   // the audit log must stay
      if (path.starts_with("CAISSON_HOME/caches")) continue;  // kept for later runs
      if (path == "CAISSON_HOME/runs") continue;              // where stores are made
      if (isRegistry(path)) {
        records += path.find("/homes/") != std::string::npos ? 1 : 0;
        continue;
      }
      if (kThreadSanitizer && path.find("/tsan.rodata.") != std::string::npos) continue;  // its own, before main
      EXPECT_EQ(std::count(path.begin(), path.end(), '/'), 0) << "left behind: " << path;
    }
    EXPECT_LE(records, 1) << "of one CAISSON_HOME";
    EXPECT_EQ(differences({}, treeState(workspace.path())), "");
  }

  const TempDir state_;
  std::set<std::string> mounts_;
  std::set<std::string> groups_;
};

TEST_F(Leftovers, NoneAfterOrdinaryRuns) {
  CONFORMS("R-FILES-18");
  const std::string marker = uniqueMarker();
  for (const std::string text : {"true", "exit 3", "kill -9 $$", "touch f; mkdir d", "(sleep 100 &)",
                                 "mkdir -p /tmp/x; ln -s /proc/self/root x", "chmod 0 ."}) {
    EXPECT_FALSE(script(text + " # " + marker, {}, options()).timed_out) << text;
  }
  EXPECT_EQ(run({"--timeout", "20s"}, {"sh", "-c", "exit 1", marker}, options()).exit_status, 1);
  EXPECT_EQ(script("sleep 60 # " + marker, {"--timeout", "200ms"}, options()).exit_status, 124);
  EXPECT_EQ(run({}, {"no-such-program-" + marker}, options()).exit_status, 127);
  EXPECT_EQ(script("true # " + marker, {"--memory", "many"}, options()).exit_status, 125);
  EXPECT_EQ(script("true # " + marker, {"--deny", "absent", "--workspace", ".:rw"}, options()).exit_status, 125);
  EXPECT_EQ(script("true # " + marker, {"--level", "process"}, options()).exit_status, 0);
  expectNothingLeft(marker);
}

TEST_F(Leftovers, NoneAfterBeingKilledAtAnyMoment) {
  CONFORMS("R-FILES-18");
  const std::string marker = uniqueMarker();
  std::mt19937 random(static_cast<unsigned>(getpid()));
  std::uniform_int_distribution<int> delay(0, 20000);
  for (int round = 0; round < 60; ++round) {
    BackgroundProgram program(
        {caissonBinary(), "run", "--", "bash", "-c",
         "touch f; (setsid sh -c 'sleep 100; :' " + marker + " &); exec -a " + marker + " sleep 100"},
        options());
    std::this_thread::sleep_for(microseconds(delay(random)));
    program.signal(SIGKILL);
    ASSERT_EQ(program.wait(seconds(10)), 128 + SIGKILL);
    ASSERT_TRUE(eventually([&] { return processesNaming(marker).empty(); }, seconds(5))) << "round " << round;
  }
  EXPECT_EQ(run({}, {"true"}, options()).exit_status, 0) << "the next start cleans up";
  expectNothingLeft(marker);
}

TEST_F(Leftovers, NoneAfterBeingTerminatedAtAnyMoment) {
  const std::string marker = uniqueMarker();
  std::mt19937 random(static_cast<unsigned>(getpid()) + 1);
  std::uniform_int_distribution<int> delay(0, 20000);
  // Not a shell that starts a program: one that was just doing so can miss SIGINT.
  for (int round = 0; round < 30; ++round) {
    const int number = std::array{SIGTERM, SIGINT, SIGHUP}.at(static_cast<std::size_t>(round % 3));
    BackgroundProgram program({caissonBinary(), "run", "--", "bash", "-c", "exec -a " + marker + " sleep 100"},
                              options());
    std::this_thread::sleep_for(microseconds(delay(random)));
    program.signal(number);
    const auto status = program.wait(seconds(15));
    ASSERT_TRUE(status.has_value()) << "round " << round << ": still running after signal " << number;
  }
  expectNothingLeft(marker);
}

TEST_F(Leftovers, NoneWhenTheOverlayIsFullOfLinksToTheHost) {
  const std::string marker = uniqueMarker();
  const TempDir host;
  const Canary canary(host / "canary");
  const RunOutput output =
      script("ln -s /proc/self/root r; ln -s " + host.path() +
                 " h; ln -s / s; mkdir -p d/e; ln -s ../../../../../.. d/e/up; chmod 0 d/e; # " + marker,
             {}, options());
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_TRUE(canary.untouched());
  expectNothingLeft(marker);
}

TEST_F(Leftovers, NoneOfAStoppedProgram) {
  const std::string marker = uniqueMarker();
  BackgroundProgram program(
      {caissonBinary(), "run", "--", "bash", "-c", "kill -STOP $$; exec -a " + marker + " sleep 100"}, options());
  sleepFor(milliseconds(300));
  program.signal(SIGKILL);
  EXPECT_EQ(program.wait(seconds(10)), 128 + SIGKILL);
  expectNothingRuns(marker);
  EXPECT_EQ(runCaisson({"run", "--", "true"}, options()).exit_status, 0);  // the next start removes the rest
  expectNothingLeft(marker);
}

TEST_F(Leftovers, TwentyConcurrentRunsSucceed) {
  const std::string marker = uniqueMarker();
  const TempDir results;
  const RunOutput output =
      onHost("for i in $(seq 20); do \"$CAISSON\" run -- bash -c \"echo $i > f; sleep 0.2; cat f; exit $i # " + marker +
                 "\" > " + results / "out" +
                 ".$i 2>/dev/null & pids[$i]=$!; done; for i in $(seq 20); do wait ${pids[$i]}; echo \"$i $?\"; done",
             options());
  std::string expected;
  for (int index = 1; index <= 20; ++index) {
    const std::string number = std::to_string(index);
    expected += number + " " + number + "\n";
    EXPECT_EQ(readFile(results / ("out." + number)), number + "\n");
  }
  EXPECT_EQ(output.out, expected) << output.describe();
  expectNothingLeft(marker);
}

TEST_F(Leftovers, RunInsideARunIsRefusedWithAMessage) {
  const RunOutput output =
      run({"--ro", caissonBinary(), "--timeout", "20s"}, {caissonBinary(), "run", "--", "echo", "inner"}, options());
  EXPECT_EQ(output.exit_status, 125) << output.describe();
  EXPECT_EQ(output.out, "");
  EXPECT_TRUE(contains(output.err, "caisson: ") && contains(output.err, "try")) << output.describe();
}

}  // namespace
}  // namespace caisson::test
