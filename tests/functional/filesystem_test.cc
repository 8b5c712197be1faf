// The program's view of the host's files: the workspace in its modes, and a private root.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "functional/sandbox.h"
#include "functional/tree_state.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;

class Workspace : public SandboxTest {};
class Secrets : public SandboxTest {};
class Root : public SandboxTest {};

TEST_F(Workspace, IsTheCurrentDirectoryAsAnOverlayByDefault) {
  CONFORMS("R-FILES-9");
  workspace.write("file", "before\n");
  const auto before = treeState(workspace.path());
  const RunOutput output = script("pwd; cat file; echo after > file; cat file; touch new; rm file; ls");
  EXPECT_EQ(output.out, "/workspace\nbefore\nafter\nnew\n") << output.describe();
  EXPECT_EQ(differences(before, treeState(workspace.path())), "");
}

TEST_F(Workspace, SaysHowManyChangesWereDiscardedAndHowToKeepThem) {
  CONFORMS("R-FILES-22");
  workspace.write("changed", "x");
  workspace.write("removed", "x");
  const std::string work = "echo y > changed; rm removed; touch new";
  const RunOutput output = script(work);
  EXPECT_TRUE(contains(output.err, "3 changed files")) << output.describe();
  EXPECT_TRUE(contains(output.err, ":rw")) << output.describe();
  const json result = script(work, {"--json"}).json();
  EXPECT_TRUE(contains(result.dump(), "3 changed files")) << result.dump();
  EXPECT_FALSE(contains(script("cat changed").err, "discarded"));
}

TEST_F(Workspace, ReadOnly) {
  CONFORMS("R-FILES-9");
  workspace.write("file", "content\n");
  const auto before = treeState(workspace.path());
  const RunOutput output = script(
      "cat file; touch new || echo no; echo x >> file || echo no; rm -f file || echo no; mkdir d || echo no; "
      "chmod 777 file || echo no; mv file x || echo no",
      {"--workspace", ".:ro"});
  EXPECT_EQ(output.out, "content\nno\nno\nno\nno\nno\nno\n") << output.describe();
  EXPECT_EQ(differences(before, treeState(workspace.path())), "");
}

TEST_F(Workspace, RwWritesToHost) {
  CONFORMS("R-FILES-9");
  workspace.write("file", "before\n");
  const RunOutput output =
      script("echo after > file; mkdir d; echo new > d/f; chmod 750 d/f; ln -s f d/l; mv file renamed",
             {"--workspace", workspace.path() + ":rw"});
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_EQ(readFile(workspace / "renamed"), "after\n");
  EXPECT_EQ(readFile(workspace / "d/l"), "new\n");
  struct stat status{};
  ASSERT_EQ(stat((workspace / "d/f").c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, geteuid()) << "files belong to the user who started caisson";
  EXPECT_EQ(status.st_gid, getegid());
  EXPECT_EQ(status.st_mode & 07777U, 0750U);
  EXPECT_FALSE(contains(output.err, "discarded"));
}

TEST_F(Workspace, NoneIsEmpty) {
  CONFORMS("R-FILES-9");
  for (const std::string& argument : {std::string(":none"), workspace.path() + ":none"}) {
    workspace.write("file", "x");
    const RunOutput output = script("pwd; ls -A /workspace 2>/dev/null | wc -l", {"--workspace", argument});
    EXPECT_EQ(output.exit_status, 0) << argument << output.describe();
    EXPECT_TRUE(output.out.ends_with("\n0\n")) << argument << output.describe();
  }
}

TEST_F(Workspace, InOtherDirectoriesAndThroughLinks) {
  workspace.write("dir/file", "x\n");
  ASSERT_EQ(symlink("dir", (workspace / "link").c_str()), 0);
  for (const std::string& name : {std::string("dir"), std::string("./dir/"), std::string("link"), workspace / "dir",
                                  std::string("dir:overlay")}) {
    EXPECT_EQ(run({"--workspace", name}, {"cat", "/workspace/file"}).out, "x\n") << name;
  }
}

TEST_F(Workspace, NamesWithSpacesQuotesColonsCommasAndBackslashesWork) {
  for (const std::string name :
       {"with space", "quote'\"", "a:b", "comma,comma", "back\\slash", "\xC3\xA4", "\xFF\xFE", "-dash", "$HOME"}) {
    workspace.write(name + "/file", "x\n");
    for (const std::string mode : {"overlay", "ro", "rw"}) {
      const RunOutput output = run({"--workspace", "./" + name + ":" + mode, "--json"}, {"cat", "file"});
      ASSERT_FALSE(output.json().is_discarded()) << name << " " << mode << output.describe();
      EXPECT_EQ(output.json()["stdout"], "x\n") << name << " " << mode << output.describe();
    }
    EXPECT_EQ(run({}, {"cat", "file"}, {.cwd = workspace / name}).out, "x\n") << name;
  }
}

TEST_F(Workspace, HomeDirectoriesAndTheirAncestorsAreNeverTheDefault) {
  CONFORMS("R-FILES-22");
  const std::string home = workspace.makeDir("parent/home");
  workspace.write("parent/home/private", "x");
  workspace.write("parent/home/project/file", "x\n");
  for (const std::string& directory : {std::string("/"), home, workspace / "parent"}) {
    const RunOutput output =
        run({}, {"sh", "-c", "pwd; ls -A /workspace 2>/dev/null | wc -l"}, {.env = {{"HOME", home}}, .cwd = directory});
    EXPECT_EQ(output.exit_status, 0) << directory << output.describe();
    EXPECT_TRUE(output.out.ends_with("\n0\n")) << directory << output.describe();
    EXPECT_TRUE(contains(output.err, "--workspace")) << "a notice says why " << output.describe();
  }
  EXPECT_EQ(run({}, {"cat", "file"}, {.env = {{"HOME", home}}, .cwd = home + "/project"}).out, "x\n")
      << "below home is fine";
}

TEST_F(Workspace, HomeOfTheUserDatabaseCountsWhateverTheVariable) {
  const passwd* user = getpwuid(geteuid());
  requireOrSkip(user != nullptr && exists(user->pw_dir), "this user has no home directory");
  const std::string home = user->pw_dir;
  const RunOutput output =
      run({}, {"sh", "-c", "ls -A /workspace 2>/dev/null | wc -l"}, {.env = {{"HOME", workspace.path()}}, .cwd = home});
  EXPECT_EQ(output.out, "0\n") << output.describe();
}

TEST_F(Workspace, ManyFilesAndDeepTreesAreNoProblem) {
  const RunOutput made = onHost(
      "mkdir -p many; cd many; seq 1 3000 | xargs touch; p=deep; for i in $(seq 60); do p=$p/aaaaaaaaaaaaaaaaaaaa; "
      "done; "
      "mkdir -p $p; echo bottom > $p/f");
  ASSERT_EQ(made.exit_status, 0);
  EXPECT_EQ(script("ls many | wc -l; find many -name f | xargs cat").out, "3001\nbottom\n");
}

TEST_F(Workspace, AnOverlayIsBounded) {
  CONFORMS("R-FILES-16");
  const json result = script("for i in 1 2 3; do dd if=/dev/zero of=f$i bs=1M count=600 2>/dev/null || exit 9; done",
                             {"--profile", "bash", "--json", "--timeout", "100s"})
                          .json();
  EXPECT_TRUE(result["exit_code"] == 9 || result["limit"] == "disk" || result["limit"] == "memory")
      << result.dump().substr(0, 1500);
}

TEST_F(Secrets, AreMaskedByDefaultInEveryMode) {
  const std::vector<std::string> names{".env",   ".env.local", ".env.production", ".npmrc",
                                       ".netrc", "id_rsa",     "id_ed25519"};
  for (const std::string& name : names) workspace.write(name, "hidden-content\n");
  workspace.write(".gitignore", "open\n");
  for (const std::string mode : {"overlay", "ro", "rw"}) {
    for (const std::string& name : names) {
      const RunOutput output =
          script("cat .gitignore; cat " + name + "; cp " + name + " /tmp/x; cat /tmp/x", {"--workspace", ".:" + mode});
      EXPECT_EQ(output.out, "open\n") << mode << " " << name << output.describe();
    }
  }
  for (const std::string& name : names) EXPECT_EQ(readFile(workspace / name), "hidden-content\n");
}

TEST_F(Secrets, AreShownWithTheFlag) {
  workspace.write(".env", "content\n");
  for (const std::string mode : {"overlay", "ro", "rw"}) {
    EXPECT_EQ(run({"--show-secrets", "--workspace", ".:" + mode}, {"cat", ".env"}).out, "content\n") << mode;
  }
}

TEST_F(Secrets, HiddenFileThatWasReadIsReported) {
  workspace.write(".env", "content\n");
  const RunOutput output = script("cat .env", {"--json"});
  EXPECT_TRUE(contains(
      output.json()["notices"].dump() + output.json()["warnings"].dump() + output.json()["denials"].dump(), ".env"))
      << "a program that misses its .env should be explainable " << output.describe();
}

TEST_F(Secrets, OfTheHomeDirectoryAreNeverThere) {
  CONFORMS("R-FILES-15");
  const TempDir home;
  home.write(".ssh/id_rsa", "hidden-content\n");
  home.write(".bash_history", "hidden-content\n");
  home.write("project/file", "x\n");
  const RunOutput output = run({},
                               {"sh", "-c",
                                "cat ~/.ssh/id_rsa " + home / ".ssh/id_rsa" + " " + home / ".bash_history" +
                                    " ../.ssh/id_rsa; ls -A ~ | wc -l; cat file"},
                               {.env = {{"HOME", home.path()}}, .cwd = home / "project"});
  EXPECT_EQ(output.out, "0\nx\n") << output.describe();
}

/// Files in temporary directories, System V objects and processes of one run do not exist in the next.
TEST_F(Root, NothingOfOneRunIsVisibleInTheNext) {
  CONFORMS("R-FILES-19");
  const std::string look =
      "ls -A /tmp /var/tmp /home/sandbox /run /dev/shm /dev/mqueue 2>/dev/null | grep -c leaked; "
      "ipcs | grep -c 0x00001234; set -- /proc/[0-9]*; echo $#";
  const RunOutput before = script(look);
  EXPECT_TRUE(before.out.starts_with("0\n0\n")) << before.describe();
  const RunOutput left = script(
      "for d in /tmp /var/tmp /home/sandbox /run /dev/shm; do echo x > $d/leaked; done; "
      "python3 -c 'import ctypes; print(ctypes.CDLL(None).shmget(0x1234, 4096, 0o1600) >= 0)'; "
      "setsid sleep 300 > /dev/null 2>&1 & ls /tmp /var/tmp /home/sandbox /run /dev/shm | grep -c leaked; "
      "ipcs | grep -c 0x00001234");
  EXPECT_EQ(left.out, "True\n5\n1\n") << left.describe();
  EXPECT_EQ(script(look).out, before.out);
}

/// Directories that are kept on disk show their path below CAISSON_HOME: the kernel prints the root of each mount.
TEST_F(Root, MountTableShowsNeitherTheWorkspacesNorTheStoresPath) {
  const TempDir state;
  const RunOptions how{.env = {{"CAISSON_HOME", state.path()}, {"PATH", "/usr/bin:/bin"}}};
  const std::string bash = script("cat /proc/self/mountinfo", {"--profile", "bash"}, how).out;
  EXPECT_TRUE(contains(bash, " /workspace ")) << bash;
  EXPECT_FALSE(contains(bash, workspace.path())) << bash;
  EXPECT_FALSE(contains(bash, state.path())) << bash;
  std::istringstream dev(script("cut -d' ' -f4,5 /proc/self/mountinfo", {"--profile", "dev"}, how).out);
  for (std::string root, point; dev >> root >> point;) {
    EXPECT_FALSE(contains(root, workspace.path())) << root;
    const bool on_disk = point == "/tmp" || point == "/home/sandbox" || point == "/cache";
    EXPECT_TRUE(on_disk || !contains(root, state.path())) << root << " at " << point;
  }
}

/// The one place that lasts is the cache, and only where the policy has one.
TEST_F(Root, OnlyTheCacheOfThePolicyOutlivesARun) {
  CONFORMS("R-FILES-19");
  const TempDir state;
  const RunOptions how{.env = {{"CAISSON_HOME", state.path()}}};
  const auto leave = [&](const std::string& profile) {
    return script("echo x > /cache/leaked && echo written", {"--profile", profile}, how).out;
  };
  const std::string look = "find / -xdev -name leaked 2>/dev/null; find /cache /tmp /home -name leaked 2>/dev/null";
  EXPECT_EQ(leave("bash"), "") << "it has no cache";
  EXPECT_EQ(script(look, {"--profile", "bash"}, how).out, "");
  EXPECT_EQ(leave("dev"), "written\n");
  EXPECT_EQ(script(look, {"--profile", "dev"}, how).out, "/cache/leaked\n");
  EXPECT_EQ(script(look, {"--profile", "bash"}, how).out, "");
}

TEST_F(Root, TemporaryDirectoriesAreBounded) {
  CONFORMS("R-FILES-7");
  const RunOutput output = script(
      "for d in /tmp /var/tmp /home/sandbox /run; do dd if=/dev/zero of=$d/f bs=1M count=150 2>&1 | grep -o 'No space "
      "left on device'; "
      "stat -c %s $d/f; rm $d/f; done",
      {"--profile", "bash"});
  EXPECT_EQ(output.out,
            "No space left on device\n104857600\nNo space left on device\n52428800\n"
            "No space left on device\n67108864\nNo space left on device\n16777216\n")
      << output.describe();
}

TEST_F(Root, TemporaryDirectoriesHaveAnInodeLimit) {
  CONFORMS("R-FILES-7");
  // Files and directories that the kernel allows in each, and one of them filled.
  const RunOutput output = script(
      "for d in /tmp /var/tmp /home/sandbox /run /dev/shm; do stat -f -c \"$d %c\" $d; done; "
      "mkdir /run/d && cd /run/d && seq 1 9000 | xargs touch 2>&1 | grep -o -m1 'No space left on device'",
      {"--profile", "bash"});
  EXPECT_EQ(output.out,
            "/tmp 65536\n/var/tmp 32768\n/home/sandbox 32768\n/run 8192\n/dev/shm 8192\nNo space left on device\n")
      << output.describe();
}

TEST_F(Root, ExecutionIsPossibleOnlyWhereDocumented) {
  CONFORMS("R-FILES-8");
  const RunOutput output = script(
      "for d in /workspace /tmp /home/sandbox /var/tmp /run /dev/shm; do cp /bin/true $d/t; $d/t 2>/dev/null; echo $d "
      "$?; done");
  EXPECT_EQ(output.out, "/workspace 0\n/tmp 0\n/home/sandbox 0\n/var/tmp 126\n/run 126\n/dev/shm 126\n")
      << output.describe();
  workspace.write("noexec.toml", "[filesystem]\nworkspace_exec = false\n");
  const RunOutput closed = script("cp /bin/true t; ./t 2>/dev/null; echo $?", {"--policy", "noexec.toml"});
  EXPECT_EQ(closed.out, "126\n") << closed.describe();
}

TEST_F(Root, IsReadOnly) {
  CONFORMS("R-FILES-1");
  const RunOutput output = script(
      "for f in / /usr /usr/bin /etc /bin /lib /var /dev /proc /proc/sys/kernel /home; do touch $f/intruder "
      "2>/dev/null && echo $f; done; "
      "mkdir /new 2>/dev/null && echo new; rm -f /etc/passwd 2>/dev/null; test -e /etc/passwd && echo kept");
  EXPECT_EQ(output.out, "kept\n") << output.describe();
}

TEST_F(Root, RootsHomeIsInaccessible) {
  CONFORMS("R-FILES-4");
  // Without toolchains of root, which are shown below its home.
  EXPECT_EQ(
      script("ls /root 2>/dev/null; cd /root 2>/dev/null || echo closed; chmod 777 /root 2>/dev/null || echo still", {},
             {.env = {{"PATH", "/usr/bin:/bin"}}})
          .out,
      "closed\nstill\n");
}

/// Root may name a part of its home; the rest of it stays out of reach.
TEST_F(Root, OnlyNamedPathsOfRootsHomeAreReached) {
  CONFORMS("R-FILES-4");
  if (!runsAsRoot()) GTEST_SKIP() << "only root has its home in /root";
  std::string made = "/root/caisson-test-XXXXXX";
  ASSERT_NE(::mkdtemp(made.data()), nullptr);
  std::filesystem::create_directory(made + "/shown");
  std::ofstream(made + "/shown/file") << "shown\n";
  std::ofstream(made + "/hidden") << "hidden\n";
  for (const std::string& path : {made, made + "/shown"}) ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
  const RunOutput output = script("cat " + made + "/shown/file; cat " + made + "/hidden; ls /root; ls " + made +
                                      "; touch /root/new " + made + "/new; chmod 777 /root; echo end",
                                  {"--ro", made + "/shown"}, {.env = {{"PATH", "/usr/bin:/bin"}}});
  EXPECT_TRUE(output.out.starts_with("shown\n")) << output.describe();
  EXPECT_TRUE(output.out.ends_with("end\n")) << output.describe();
  EXPECT_FALSE(contains(output.out, "hidden")) << output.describe();
  EXPECT_FALSE(exists("/root/new"));
  EXPECT_FALSE(exists(made + "/new"));
  std::filesystem::remove_all(made);  // caisson could write nothing there
}

TEST_F(Root, EtcIsSanitised) {
  CONFORMS("R-FILES-2");
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  const std::set<std::string> generated{"passwd",   "group",         "hosts",     "resolv.conf",
                                        "hostname", "nsswitch.conf", "gitconfig", "localtime"};
  const std::set<std::string> copied{"os-release",      "ld.so.cache",     "alternatives", "ssl",   "pki",
                                     "protocols",       "services",        "mime.types",   "fonts", "perl",
                                     "java-17-openjdk", "java-21-openjdk", "maven"};
  std::istringstream entries(script("ls -A /etc").out);
  std::set<std::string> found;
  for (std::string entry; entries >> entry;) {
    found.insert(entry);
    EXPECT_TRUE(generated.contains(entry) || copied.contains(entry)) << entry << " is not known to be harmless";
  }
  for (const std::string& entry : generated) {
    EXPECT_TRUE(found.contains(entry) || entry == "localtime") << entry;
  }
  EXPECT_EQ(script("ls -A /etc/ssl /etc/pki 2>/dev/null | grep -v '^\\(/.*:\\|certs\\|openssl.cnf\\|tls\\|\\)$'").out,
            "");
  EXPECT_EQ(script("ls -A /etc/maven 2>/dev/null | grep -v '^\\(m2.conf\\|logging\\)$'").out, "")
      << "settings.xml may hold passwords";
  const RunOutput output = script("cat /etc/passwd /etc/group /etc/hosts /etc/hostname /etc/resolv.conf");
  EXPECT_EQ(output.out,
            "root:x:0:0:root:/root:/usr/sbin/nologin\nsandbox:x:1000:1000:sandbox:/home/sandbox:/bin/bash\n"
            "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
            "root:x:0:\ntty:x:5:\nsandbox:x:1000:\nnogroup:x:65534:\n"
            "127.0.0.1 localhost sandbox\n::1 localhost sandbox\nsandbox\n# no network: nothing resolves here\n")
      << output.describe();
  const std::string host = name.data();
  if (host.size() > 3 && host != "localhost" && host != "sandbox") {
    EXPECT_FALSE(contains(output.out, host)) << output.describe();
  }
  if (exists("/etc/ssl/certs/ca-certificates.crt")) {
    EXPECT_EQ(script("test -s /etc/ssl/certs/ca-certificates.crt && echo there").out, "there\n");
  }
}

TEST_F(Root, HasNoSysAndAMinimalDev) {
  CONFORMS("R-FILES-3");
  const RunOutput output = script(
      "ls -d /sys 2>/dev/null; ls /dev | tr '\\n' ' '; echo; echo x > /dev/null; head -c 3 /dev/zero | wc -c; head -c "
      "3 /dev/urandom | wc -c; "
      "echo x > /dev/full || echo full; mknod /tmp/sda b 8 0 2>/dev/null || echo refused");
  EXPECT_EQ(output.out, "fd full null ptmx pts random shm stderr stdin stdout tty urandom zero \n3\n3\nfull\nrefused\n")
      << output.describe();
}

TEST_F(Root, ProcShowsNothingOfTheHost) {
  CONFORMS("R-FILES-3");
  const RunOutput output = script(
      "for f in kcore kmsg keys kallsyms sysrq-trigger timer_list config.gz cmdline; do test -s /proc/$f && head -c 1 "
      "/proc/$f >/dev/null 2>&1 && echo $f; done; "
      "echo 1 2>/dev/null > /proc/sys/kernel/core_pattern; echo b 2>/dev/null > /proc/sysrq-trigger; cat "
      "/proc/sys/kernel/hostname");
  EXPECT_EQ(output.out, "sandbox\n") << output.describe();
}

TEST_F(Root, SetuidAndCapabilitiesCannotBePlanted) {
  CONFORMS("R-FILES-17");
  const RunOutput output = script(
      "cp /bin/true t; chmod u+s t 2>/dev/null; chmod g+s t 2>/dev/null; stat -c %a t; install -m 4755 t t2 "
      "2>/dev/null; find . -perm /6000 | wc -l",
      {"--workspace", ".:rw"});
  EXPECT_TRUE(output.out.ends_with("\n0\n")) << output.describe();
  EXPECT_EQ(onHost("find . -perm /6000 | wc -l").out, "0\n");
}

}  // namespace
}  // namespace caisson::test
