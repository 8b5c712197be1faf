// Where namespaces are forbidden there is a weaker tier; it must be requested by name and lists what it does not
// protect.
#include <signal.h>
#include <sys/stat.h>

#include <sstream>

#include "degraded/degraded.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

using LandlockTier = DegradedTest;

TEST_F(LandlockTier, IsNeverChosenAutomatically) {
  CONFORMS("R-LEVEL-24");
  expectRefusal(probe("namespaces"), {"caisson doctor"});
}

TEST_F(LandlockTier, IsTheFallbackWithoutUserNamespacesWhenAllowed) {
  CONFORMS("R-LEVEL-24");
  expectRefusal(probe("namespaces", {"--allow-weaker", "proc_bound"}), {"clone"});
  const Ending rung = probe("namespaces", {"--allow-weaker", "landlock"});
  const Ending tier = probe("namespaces", {"--tier", "landlock"});
  EXPECT_TRUE(rung.ran) << rung.describe();
  EXPECT_EQ(rung.result["layers"], tier.result["layers"]);
  EXPECT_EQ(rung.warnings(), tier.warnings());
  expectSameAs(probe("", {"--allow-weaker", "landlock"}), probe());  // where there are namespaces
}

TEST_F(LandlockTier, RunsWithoutNamespacesAndReportsWhatItDoesNotProtect) {
  CONFORMS("R-LEVEL-24");
  const Ending ending = probe("namespaces", {"--tier", "landlock"});
  EXPECT_EQ(ending.text("outcome"), "exited") << ending.describe();
  EXPECT_TRUE(ending.ran) << ending.describe();
  EXPECT_TRUE(ending.layer("namespaces").starts_with("none")) << ending.describe();
  EXPECT_FALSE(ending.layer("landlock").empty()) << ending.describe();
  EXPECT_FALSE(ending.layer("seccomp").empty()) << ending.describe();
  std::string said;
  for (const std::string& warning : ending.warnings()) said += warning + "\n";
  for (const char* word : {"landlock tier", "no namespaces", "Not protected", "process list"}) {
    EXPECT_TRUE(contains(said, word)) << "no \"" << word << "\" in " << said;
  }
}

TEST_F(LandlockTier, KeepsThePayloadFromWritingOutsideTheWorkspace) {
  const Canary canary(files / "canary");
  files.openToAll();
  const std::string script = "cat " + canary.path() + "; echo x > " + canary.path() + "; echo x > " + (files / "new") +
                             "; echo x > inside && cat inside";
  const RunOutput output = caissonWithout(
      "namespaces", {"run", "--tier", "landlock", "--workspace", workspace.path() + ":rw", "--", "sh", "-c", script});
  EXPECT_EQ(output.out, "x\n") << output.describe();
  EXPECT_TRUE(canary.untouched());
  EXPECT_FALSE(canary.leakedInto(output.out + output.err)) << output.describe();
  EXPECT_FALSE(exists(files / "new"));
}

TEST_F(LandlockTier, RunsWithoutFurtherOptions) {
  workspace.write("file", "content\n");
  workspace.openToAll();
  const RunOutput output = caissonWithout(
      "namespaces", {"run", "--json", "--tier", "landlock", "--", "sh", "-c", "id -u; cat file; echo x > new; ls"},
      {.env = {{"CAISSON_HOME", home.path()}}, .cwd = workspace.path()});
  const nlohmann::json result = output.json();
  ASSERT_TRUE(result.is_object()) << output.describe();
  EXPECT_EQ(result["exit_code"], 0) << output.describe();
  EXPECT_TRUE(contains(result["stdout"], "content\nfile\n")) << output.describe();
  EXPECT_FALSE(exists(workspace / "new"));
  EXPECT_TRUE(contains(result["layers"]["workspace"], "read-only")) << output.describe();
  EXPECT_TRUE(contains(result["warnings"].dump(), "the workspace is read-only")) << output.describe();
}

TEST_F(LandlockTier, HasAPrivateHomeAndTmpdirThatAreRemoved) {
  home.openToAll();
  const std::vector<std::string> arguments{
      "run",
      "--tier",
      "landlock",
      "--workspace",
      ":none",
      "--",
      "sh",
      "-c",
      "pwd; echo $TMPDIR; ls -A $HOME $TMPDIR | grep -v :; stat -c %a $HOME $TMPDIR; echo kept > $HOME/file; "
      "mktemp > /dev/null; cp /bin/true $TMPDIR/program && $TMPDIR/program && ln -s / $HOME/root && mkdir -m 0 "
      "$HOME/d"};
  std::string directories[2];
  for (std::string& directory : directories) {
    const RunOutput output = caissonWithout("namespaces", arguments, {.env = {{"CAISSON_HOME", home.path()}}});
    EXPECT_EQ(output.exit_status, 0) << output.describe();
    directory = output.out.substr(0, output.out.find('\n'));
    EXPECT_TRUE(output.out.ends_with("\n\n\n700\n700\n") || output.out.ends_with("\n\n700\n700\n"))
        << "not empty or not private: " << output.describe();
    EXPECT_TRUE(runsAsRoot() || directory.starts_with(home.path())) << output.describe();
    EXPECT_FALSE(exists(directory)) << directory;
  }
  EXPECT_NE(directories[0], directories[1]);
}

TEST_F(LandlockTier, CleanRemovesThePrivateDirectoriesOfAKilledRun) {
  RunOptions how;
  how.env["CAISSON_HOME"] = home.path();
  std::string directory;
  {
    const BackgroundProgram run(
        {caissonBinary(), "run", "--tier", "landlock", "--workspace", workspace.path() + ":rw", "--", "sh", "-c",
         "echo x > $HOME/file; echo $HOME > place.new; mv place.new place; "
         "sleep 60"},
        how);
    ASSERT_TRUE(eventually([&] { return exists(workspace / "place"); }));
    directory = readFile(workspace / "place");
    directory.pop_back();
    EXPECT_TRUE(exists(directory + "/file")) << directory;
    run.signal(SIGKILL);
  }
  EXPECT_TRUE(exists(directory)) << "the killed run cannot have removed it";
  EXPECT_TRUE(eventually([&] {
    EXPECT_EQ(runCaisson({"clean"}, how).exit_status, 0);
    return !exists(directory);
  })) << directory;
}

TEST_F(LandlockTier, LimitsWhatIsWrittenToPrivateDirectories) {
  const RunOutput output = caissonWithout(
      "namespaces", {"run", "--json", "--tier", "landlock", "--workspace", ":none", "--disk", "40M", "--", "sh", "-c",
                     "for i in 1 2 3 4 5 6 7 8; do head -c 30000000 /dev/zero > $TMPDIR/$i; done; sleep 5; echo end"});
  EXPECT_EQ(output.json().value("outcome", ""), "limit") << output.describe();
  EXPECT_EQ(output.json().value("limit", ""), "disk") << output.describe();
  EXPECT_EQ(output.json().value("stdout", "?"), "") << output.describe();
}

TEST_F(LandlockTier, ShowsProcButNothingOfProcessesOutside) {
  const std::string secret = "secret-of-another-process";
  const BackgroundProgram other({"sleep", "60"}, {.env = {{"SECRET", secret}}});
  const std::string process = "/proc/" + std::to_string(other.pid());
  // The same user can read it outside; as root the payload has another uid anyway.
  ASSERT_TRUE(eventually([&] { return contains(readFile(process + "/environ"), secret); }));
  const RunOutput output = caissonWithout(
      "namespaces",
      {"run", "--tier", "landlock", "--workspace", ":none", "--", "sh", "-c",
       "cd " + process +
           "; cat environ maps auxv mem; ls fd cwd/ root/; readlink exe cwd root; "
           "echo 500 > oom_score_adj; for f in environ maps mem auxv; do cat /proc/$PPID/$f; done; "
           "echo; echo own:; cat /proc/meminfo /proc/cpuinfo /proc/stat /proc/self/status /proc/self/maps "
           "/proc/self/environ /proc/self/mounts > /dev/null && ls /proc/self/fd > /dev/null && "
           "echo readable; (echo through > /dev/stdout) && echo 5 > /proc/sys/kernel/pid_max"});
  EXPECT_TRUE(output.out.ends_with("\nown:\nreadable\nthrough\n")) << output.describe();
  EXPECT_FALSE(contains(output.out, secret)) << output.describe();
  EXPECT_FALSE(contains(output.out, "/")) << "the path of a descriptor or program: " << output.describe();
  EXPECT_EQ(readFile(process + "/oom_score_adj"), readFile("/proc/self/oom_score_adj"));
}

/// Files of /proc/PID that need no right to trace the process, as docs/landlock-tier.md lists them.
constexpr const char* kReadableOfOthers =
    " arch_status attr autogroup cgroup cmdline comm coredump_filter cpuset cpu_resctrl_groups fd fdinfo gid_map "
    "ksm_merging_pages ksm_stat latency limits loginuid mountinfo mounts mountstats net ns oom_adj oom_score "
    "oom_score_adj projid_map "
    "sched schedstat seccomp_cache sessionid setgroups stat statm status task timens_offsets "
    "timerslack_ns uid_map wchan ";

TEST_F(LandlockTier, ShowsOfOtherProcessesOnlyTheDocumentedFiles) {
  const BackgroundProgram other({"sleep", "60"});
  const RunOutput output = caissonWithout(
      "namespaces", {"run", "--tier", "landlock", "--workspace", ":none", "--", "sh", "-c",
                     "cd /proc/" + std::to_string(other.pid()) +
                         "; for f in *; do if [ -d $f ]; then ls $f/ 2>/dev/null | grep -q . && echo $f; else "
                         "head -c 1 $f 2>/dev/null | grep -aqc '' && echo $f; fi; done"});
  EXPECT_TRUE(contains(output.out, "cmdline\n")) << output.describe();
  std::istringstream names(output.out);
  for (std::string name; std::getline(names, name);) {
    EXPECT_TRUE(contains(kReadableOfOthers, " " + name + " ")) << name << " is readable and not documented";
  }
}

TEST_F(LandlockTier, ShowsNothingOfTheHostsConfigurationThatLevelFullHides) {
  const RunOutput output = caissonWithout(
      "namespaces",
      {"run", "--tier", "landlock", "--workspace", ":none", "--", "sh", "-c",
       "for f in /etc/hosts /etc/hostname /etc/resolv.conf /etc/machine-id /etc/fstab /etc/apt/sources.list "
       "/var/log/dpkg.log /sys/kernel/notes; do cat $f 2>/dev/null; done; ls / /etc /home /root /tmp /var /sys /dev "
       "2>/dev/null; id > /dev/null && cat /etc/passwd > /dev/null && date > /dev/null && echo end"});
  EXPECT_EQ(output.out, "end\n") << output.describe();
}

TEST_F(LandlockTier, RefusesAHomeDirectoryUnlessItsSecretsMayBeSeen) {
  files.write(".ssh/id", "the private key\n");
  files.openToAll();
  const auto run = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"run", "--tier", "landlock"});
    options.insert(options.end(), {"--", "cat", files / ".ssh/id"});
    return caissonWithout(
        "namespaces", options,
        {.env = {{"CAISSON_HOME", home.path()}, {"XDG_DATA_HOME", home / "data"}, {"HOME", files.path()}}});
  };
  const std::vector<std::vector<std::string>> shown{{"--workspace", files.path() + ":ro"},
                                                    {"--workspace", files.path() + ":rw"},
                                                    {"--workspace", ":none", "--ro", files.path()}};
  for (std::vector<std::string> options : shown) {
    const RunOutput refused = run(options);
    EXPECT_EQ(refused.exit_status, 125) << refused.describe();
    EXPECT_TRUE(contains(refused.err, "--show-secrets")) << refused.describe();
    EXPECT_EQ(refused.out, "");
  }
  const RunOutput accepted = run({"--workspace", files.path() + ":ro", "--show-secrets"});
  EXPECT_EQ(accepted.out, "the private key\n") << accepted.describe();
}

TEST_F(LandlockTier, DropsACurrentDirectoryThatRootsPayloadMayNotEnter) {
  requireOrSkip(runsAsRoot(), "only the program of a root caller has another user id");
  workspace.write("sub/file", "content\n");
  ASSERT_EQ(::chmod(workspace.path().c_str(), 0700), 0);
  const RunOutput output =
      caissonWithout("namespaces", {"run", "--tier", "landlock", "--", "sh", "-c", "pwd; cat file"},
                     {.env = {{"CAISSON_HOME", home.path()}}, .cwd = workspace / "sub"});
  EXPECT_FALSE(contains(output.out, "content")) << output.describe();
  EXPECT_TRUE(contains(output.out, "/")) << "it did not run: " << output.describe();
  EXPECT_TRUE(contains(output.err, "may not enter the current directory")) << output.describe();
}

TEST_F(LandlockTier, HasNoNetwork) {
  requireOrSkip(hasProgram("python3"), "no python3 here");
  const RunOutput output = caissonWithout(
      "namespaces", {"run", "--tier", "landlock", "--workspace", workspace.path() + ":ro", "--", "python3", "-c",
                     "import socket\nfor f in (socket.AF_INET, socket.AF_INET6):\n try:\n  socket.socket(f); "
                     "print('made')\n except OSError as e: print('refused')"});
  EXPECT_EQ(output.out, "refused\nrefused\n") << output.describe();
}

TEST_F(LandlockTier, IsRefusedWithoutLandlock) {
  expectRefusal(probe("landlock_create_ruleset", {"--tier", "landlock"}), {"Landlock"});
  expectRefusal(probe("landlock_restrict_self", {"--tier", "landlock"}), {"landlock_restrict_self"});
  expectRefusal(probe("namespaces,landlock_create_ruleset:ENOSYS", {"--tier", "landlock"}), {"Landlock"});
  expectRefusal(probe("seccomp", {"--tier", "landlock"}), {"seccomp"});
  expectRefusal(probe("close_range", {"--tier", "landlock"}), {"close_range"});
}

TEST_F(LandlockTier, NamesAnotherUsersDirectoryAsTheCause) {
  requireOrSkip(runsAsRoot(), "only the program of a root caller has another user id");
  ASSERT_EQ(::chmod(workspace.path().c_str(), 0700), 0);
  expectRefusal(probe("namespaces", {"--tier", "landlock"}),
                {"may not enter this directory of root's", "ordinary user"});
}

TEST_F(LandlockTier, ChangesNeitherLimitsNorSchedulingOfOtherProcesses) {
  requireOrSkip(hasProgram("python3"), "no python3");
  const BackgroundProgram other({"sleep", "60"});
  const std::string pid = std::to_string(other.pid());
  const auto scheduling = [&] {
    return runProgram({"python3", "-c",
                       "import os; p = " + pid +
                           "; print(os.sched_getscheduler(p), os.getpriority(os.PRIO_PROCESS, p), "
                           "os.sched_getaffinity(p))"})
        .out;
  };
  const std::string before = scheduling();
  const RunOutput output =
      caissonWithout("namespaces", {"run", "--tier", "landlock", "--workspace", ":none", "--", "python3", "-c",
                                    R"(
import os, resource
def tried(call):
    try: call()
    except PermissionError: return 'denied'
    return 'done'
for n in ()" + pid + R"(, os.getppid(), 0):
    print(tried(lambda: resource.prlimit(n, resource.RLIMIT_CORE, (0, 0))),
          tried(lambda: os.sched_setscheduler(n, os.SCHED_IDLE, os.sched_param(0))),
          tried(lambda: os.sched_setparam(n, os.sched_param(0))),
          tried(lambda: os.sched_setaffinity(n, {min(os.sched_getaffinity(0))})),
          tried(lambda: os.setpriority(os.PRIO_PROCESS, n, 19)))
print(tried(lambda: os.setpriority(os.PRIO_USER, 0, 19)), tried(lambda: os.setpriority(os.PRIO_PGRP, 0, 19)))
)"});
  EXPECT_EQ(output.out,
            "denied denied denied denied denied\ndenied denied denied denied denied\ndone done done done done\n"
            "denied denied\n")
      << output.describe();
  EXPECT_EQ(scheduling(), before);
}

TEST_F(LandlockTier, EndsTheWholeTreeAtATimeOut) {
  const RunOutput output =
      caissonWithout("namespaces", {"run", "--tier", "landlock", "--workspace", ":none", "--timeout", "1s", "--", "sh",
                                    "-c", "setsid sleep 15 & sleep 15"});
  EXPECT_EQ(output.exit_status, 124) << output.describe();
  EXPECT_LT(output.duration, std::chrono::seconds(8)) << output.describe();
}

}  // namespace
}  // namespace caisson::test
