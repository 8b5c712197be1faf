// A directory as the root file system: a busybox with its libraries.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "functional/busybox_root.h"
#include "functional/sandbox.h"
#include "functional/tree_state.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

class ImageRoot : public SandboxTest {
 protected:
  void SetUp() override {
    SandboxTest::SetUp();
    if (!IsSkipped()) requireOrSkip(hasBusybox(), "no /bin/busybox on this machine");
  }
  [[nodiscard]] RunOutput in(const TempDir& root, const std::string& text,
                             std::vector<std::string> options = {}) const {
    options.insert(options.begin(), {"--image", root.path()});
    return run(options, {"sh", "-c", text});
  }
  static std::string policyAsRoot(const TempDir& root) {
    return "extends = 'dev'\nisolation.user = 'root'\nfilesystem.root = '" + root.path() + "'\n";
  }
  [[nodiscard]] RunOutput asRoot(const TempDir& root, const std::string& text,
                                 std::vector<std::string> options = {}) const {
    const std::string policy = workspace.write("root.toml", policyAsRoot(root));
    options.insert(options.begin(), {"--policy", policy});
    return run(options, {"sh", "-c", text});
  }
  /// The same with a single id on any host: what is written to the host must be the caller's.
  [[nodiscard]] RunOutput asSingleId(const TempDir& root, const std::string& text) const {
    const TempDir written;
    written.openToAll();
    return asRoot(root, text, {"--rw", written.path()});
  }
  /// A session that is root inside; returns its id.
  [[nodiscard]] std::string makeSession(const TempDir& root, const RunOptions& how) const {
    const std::string policy = workspace.write("root.toml", policyAsRoot(root));
    const RunOutput made = runCaisson({"session", "create", "--policy", policy}, how);
    EXPECT_EQ(made.exit_status, 0) << made.describe();
    return made.out.substr(0, made.out.find('\n'));
  }
};

TEST_F(ImageRoot, ProgramsOfTheDirectoryRunAndTheHostIsInvisible) {
  const TempDir root;
  installBusybox(root);
  const RunOutput output = in(root, "id -u; pwd; ls /; test -e /usr || echo no usr; cat /proc/self/comm");
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_TRUE(output.out.starts_with("1000\n/workspace\n")) << output.describe();
  EXPECT_TRUE(contains(output.out, "no usr\n")) << output.describe();
}

TEST_F(ImageRoot, MergedAndUnmergedLayoutsRunAShell) {
  CONFORMS("R-ROOT-1");
  for (const bool merged : {true, false}) {
    const TempDir root;
    installBusybox(root, merged);
    root.write("usr/share/x", "x");
    EXPECT_EQ(in(root, "echo ran; /bin/echo too").out, "ran\ntoo\n") << merged;
  }
}

TEST_F(ImageRoot, IsReadOnlyAndUnchanged) {
  CONFORMS("R-ROOT-1");
  const TempDir root;
  installBusybox(root);
  const auto before = treeState(root.path());
  const RunOutput output =
      in(root, "touch /new /bin/new; rm /bin/cat; echo x >> /bin/busybox; mkdir /etc/new; echo done");
  EXPECT_EQ(output.out, "done\n") << output.describe();
  EXPECT_EQ(differences(before, treeState(root.path())), "");
  const RunOutput changed = asRoot(root, "touch /new /bin/new && rm /bin/cat && mkdir /opt && ls /bin/new /new");
  EXPECT_EQ(changed.out, "/bin/new\n/new\n") << changed.describe();
  EXPECT_EQ(differences(before, treeState(root.path())), "") << "changes are kept apart";
  EXPECT_EQ(in(root, "ls /bin/cat").out, "/bin/cat\n") << "and discarded";
}

/// Without layers of ours above it, /proc -> /etc and the like would mount over files of the image or of the host.
TEST_F(ImageRoot, LinksAtMountPointsCannotRedirectMounts) {
  CONFORMS("R-ROOT-3");
  const TempDir root, victim;
  installBusybox(root);
  victim.write("file", "untouched\n");
  for (const std::string name : {"proc", "dev", "tmp", "workspace", "home", "run", "var", "etc"}) {
    const bool up = name == "workspace" || name == "var";
    ASSERT_EQ(::symlink((up ? "../../../.." + victim.path() : victim.path()).c_str(), (root / name).c_str()), 0);
  }
  root.openToAll();
  victim.openToAll();
  const auto before = treeState(victim.path());
  workspace.write("mine", "workspace\n");
  for (const bool root_user : {false, true}) {
    const std::string text =
        "cat mine /workspace/mine; echo x > /tmp/x; cat /proc/self/comm; ls /dev/null; "
        "test -h /etc || echo etc; ls " +
        victim.path();
    const RunOutput output = root_user ? asRoot(root, text) : in(root, text);
    EXPECT_EQ(output.out, "workspace\nworkspace\ncat\n/dev/null\netc\n") << root_user << output.describe();
    EXPECT_EQ(differences(before, treeState(victim.path())), "") << root_user;
  }
}

TEST_F(ImageRoot, DevicesOfTheDirectoryAreNotShown) {
  CONFORMS("R-ROOT-3");
  const TempDir root;
  installBusybox(root);
  root.write("dev/sda", "not a device");
  root.write("dev/null", "not a device either");
  root.openToAll();
  const RunOutput output = in(root, "ls /dev/sda; cat /dev/null; echo x > /dev/null && echo null");
  EXPECT_EQ(output.out, "null\n") << output.describe();
}

TEST_F(ImageRoot, DeniedPathsAreHiddenThroughItsLinks) {
  CONFORMS("R-ROOT-4");
  const TempDir root;
  installBusybox(root, true);
  root.write("usr/lib/secret", "hidden-content\n");
  root.write("usr/lib/open", "open\n");
  for (const std::string denied : {"/lib/secret", "/usr/lib/secret"}) {
    const RunOutput output = in(root, "cat /lib/open /usr/lib/open /lib/secret /usr/lib/secret", {"--deny", denied});
    EXPECT_EQ(output.out, "open\nopen\n") << denied << output.describe();
  }
  const RunOutput made =
      asRoot(root, "mkdir -p /opt; echo x > /opt/later; cat /opt/later; echo end", {"--deny", "/opt/later"});
  EXPECT_EQ(made.out, "end\n") << made.describe();
}

TEST_F(ImageRoot, WhatTheWorkspaceHidesIsHiddenInTheRootToo) {
  const TempDir root;
  installBusybox(root);
  root.write("etc/db.conf", "canary-1\n");
  root.write("etc/other.conf", "shown\n");
  root.write("srv/app/.env", "canary-2\n");
  root.write("srv/app/d.dump", "canary-3\n");
  root.openToAll();
  const auto inRoot = [&](const std::string& directory, std::vector<std::string> options, const std::string& files) {
    options.insert(options.begin(), {"--image", root.path(), "--workspace", root / directory});
    return run(options, {"sh", "-c", "cat " + files + " /etc/other.conf"});
  };
  for (const std::string& denied : {std::string("etc/db.conf"), root / "etc/db.conf", std::string("etc/*.con[f]")}) {
    if (denied.ends_with("]")) std::filesystem::remove(root / "etc/other.conf");
    const RunOutput output = inRoot(".", {"--deny", denied}, "/etc/db.conf /workspace/etc/db.conf /srv/app/.env");
    EXPECT_EQ(output.out, denied.ends_with("]") ? "" : "shown\n") << denied << output.describe();
  }
  root.write("etc/other.conf", "shown\n");
  const RunOutput inside = inRoot("srv/app", {"--deny", "*.dump"}, "/workspace/.env /srv/app/.env /srv/app/d.dump");
  EXPECT_EQ(inside.out, "shown\n") << inside.describe();
}

/// Without noexec on the root, the loader would start any program of it.
TEST_F(ImageRoot, OnlyListedProgramsAndTheirLibrariesAreExecutable) {
  CONFORMS("R-ROOT-4");
  const TempDir root;
  installBusybox(root);
  root.makeDir("opt");
  const RunOutput copied = runProgram({"sh", "-c", "cp \"$0/bin/busybox\" \"$0/opt/echo\"", root.path()});
  ASSERT_EQ(copied.exit_status, 0) << copied.describe();
  const std::string listed = workspace.write("listed.toml", "extends = 'dev'\nfilesystem.root = '" + root.path() +
                                                                "'\nprocess.allowed_executables = ['busybox']\n");
  const std::string any = workspace.write("any.toml", "extends = 'dev'\nfilesystem.root = '" + root.path() + "'\n");
  const std::string text =
      "/bin/echo listed; /opt/echo direct; for loader in /lib*/ld-*; do $loader /opt/echo loader; done; "
      "cp /opt/echo /tmp/echo; /tmp/echo copy; echo end";
  EXPECT_EQ(run({"--policy", any}, {"/bin/busybox", "sh", "-c", text}).out, "listed\ndirect\nloader\ncopy\nend\n");
  const RunOutput output = run({"--policy", listed}, {"/bin/busybox", "sh", "-c", text});
  EXPECT_EQ(output.out, "listed\nend\n") << output.describe();
  EXPECT_EQ(run({"--policy", listed}, {"/opt/echo", "x"}).out, "");
}

TEST_F(ImageRoot, HostPathsAndSecretsWorkAsWithoutAnImage) {
  CONFORMS("R-ROOT-4");
  const TempDir root, shown;
  installBusybox(root);
  shown.write("file", "shown\n");
  shown.openToAll();
  workspace.write(".env", "TOKEN=hidden-content\n");
  const RunOutput output = in(root, "cat " + shown / "file" + " .env", {"--ro", shown.path()});
  EXPECT_EQ(output.out, "shown\n") << output.describe();
}

TEST_F(ImageRoot, RootInsideHasNoPowerOverTheKernel) {
  CONFORMS("R-ROOT-5");
  const TempDir root;
  installBusybox(root);
  const std::string attempts =
      "id -u; mount -t tmpfs none /tmp || echo no mount; echo x > /proc/sys/kernel/domainname || echo no setting; "
      "cat /proc/self/status";
  const RunOutput single = asSingleId(root, attempts);
  EXPECT_TRUE(single.out.starts_with("0\nno mount\nno setting\n")) << single.describe();
  EXPECT_TRUE(contains(single.out, "CapEff:\t0000000000000000")) << single.describe();
  EXPECT_TRUE(contains(single.out, "CapBnd:\t0000000000000000")) << single.describe();
  const RunOutput any = asRoot(root, attempts);
  EXPECT_TRUE(any.out.starts_with("0\nno mount\nno setting\n")) << any.describe();
  EXPECT_TRUE(contains(any.out, "NoNewPrivs:\t1")) << any.describe();
}

TEST_F(ImageRoot, RootInsideWithSubordinateIdsHasPowerOverTheseOnly) {
  CONFORMS("R-ROOT-6");
  const TempDir root, home;
  installBusybox(root);
  const RunOutput output =
      run({"--policy", workspace.write("root.toml", policyAsRoot(root)), "--json"},
          {"sh", "-c",
           "touch /f; chown 33:34 /f; chmod 6755 /f; stat -c '%u:%g %a' /f; chown 90000 /f 2>/dev/null "
           "|| echo unmapped; chown 33 /etc/passwd; mkdir -p /closed/deep; chown -R 5 /closed; chmod "
           "-R 700 /closed; mknod /n c 1 3; test -e /n || echo none; cat /proc/self/status"});
  const std::string user = output.json()["layers"]["user"];
  if (!contains(user, "subordinate ids")) GTEST_SKIP() << user;
  const std::string out = output.json()["stdout"];
  EXPECT_TRUE(out.starts_with("33:34 755\nunmapped\nnone\n")) << output.describe();
  for (const char* set : {"CapPrm", "CapEff", "CapBnd"})
    EXPECT_TRUE(contains(out, std::string(set) + ":\t00000000000000eb")) << output.describe();
  EXPECT_TRUE(contains(out, "CapInh:\t0000000000000000")) << output.describe();
  EXPECT_TRUE(contains(out, "NoNewPrivs:\t1")) << output.describe();
}

TEST_F(ImageRoot, FilesOfSubordinateIdsAreRemovedWithTheirSession) {
  CONFORMS("R-ROOT-6");
  const TempDir root, home;
  installBusybox(root);
  const RunOptions how{.env = {{"CAISSON_HOME", home / "state"}}, .cwd = workspace.path()};
  const std::string id = makeSession(root, how);
  const RunOutput made =
      runCaisson({"session", "exec", id, "--", "sh", "-c",
                  "for d in /closed /tmp/closed /workspace/closed; do mkdir -p $d/deep; echo x >$d/deep/f; "
                  "chown -R 5:6 $d; chmod -R 700 $d; done; stat -c %u /closed"},
                 how);
  ASSERT_TRUE(made.out == "5\n" || made.out == "0\n") << made.describe();
  const RunOutput diff = runCaisson({"session", "diff", id}, how);
  EXPECT_TRUE(contains(diff.out, "closed/deep/f")) << diff.describe();
  const auto record = nlohmann::json::parse(readFile(home / ("state/sessions/" + id + "/init.json")));
  ASSERT_EQ(::kill(record["supervisor"]["pid"].get<pid_t>(), SIGKILL), 0);
  const RunOutput destroyed = runCaisson({"session", "destroy", id}, how);
  EXPECT_EQ(destroyed.exit_status, 0) << destroyed.describe();
  EXPECT_EQ(runCaisson({"clean"}, how).exit_status, 0);
  for (const char* name : {"state/stores", "state/runs"}) {
    EXPECT_TRUE(!exists(home / name) || std::filesystem::is_empty(home / name)) << name;
  }
}

TEST_F(ImageRoot, CheckpointsAndForksIncludeTheRoot) {
  CONFORMS("R-ROOT-6");
  const TempDir root, home;
  installBusybox(root);
  root.write("usr/share/gone/file", "x");
  const RunOptions how{.env = {{"CAISSON_HOME", home / "state"}}, .cwd = workspace.path()};
  const std::string id = makeSession(root, how);
  const auto in = [&](const std::string& session, const std::string& text) {
    const RunOutput output = runCaisson({"session", "exec", session, "--", "sh", "-c", text}, how);
    return output.out + output.err.substr(0, output.exit_status == 0 ? 0 : std::string::npos);
  };
  const std::string show = "cat /one; ls /usr/share/gone 2>/dev/null; cat /etc/hosts | tail -n 1";
  (void)in(id, "echo one >/one; rm -r /usr/share/gone; echo 192.0.2.1 changed >>/etc/hosts; echo w >/workspace/w");
  ASSERT_EQ(runCaisson({"session", "checkpoint", id, "first"}, how).exit_status, 0);
  EXPECT_EQ(in(id, show), "one\n192.0.2.1 changed\n");
  (void)in(id, "echo two >/one; mkdir -p /usr/share/gone; touch /usr/share/gone/again");
  const RunOutput forked = runCaisson({"session", "fork", id}, how);
  ASSERT_EQ(forked.exit_status, 0) << forked.describe();
  const std::string fork = forked.out.substr(0, forked.out.find('\n'));
  EXPECT_EQ(in(fork, show), "two\nagain\n192.0.2.1 changed\n");
  (void)in(fork, "echo fork >/one");
  EXPECT_EQ(in(id, "cat /one"), "two\n") << "a fork changes its own root";
  ASSERT_EQ(runCaisson({"session", "restore", id, "first"}, how).exit_status, 0);
  EXPECT_EQ(in(id, show), "one\n192.0.2.1 changed\n");
  EXPECT_FALSE(contains(runCaisson({"session", "diff", id}, how).out, "one")) << "a diff is one of the workspace";
  ASSERT_EQ(runCaisson({"session", "restore", id, "begin"}, how).exit_status, 0);
  EXPECT_EQ(in(id, "ls /one 2>/dev/null; ls /usr/share/gone"), "file\n");
  EXPECT_EQ(in(fork, "cat /one"), "fork\n") << "its layers stay";
  EXPECT_EQ(runCaisson({"session", "destroy", id}, how).exit_status, 0);
  EXPECT_EQ(in(fork, "cat /one"), "fork\n") << "its layers stay";
  EXPECT_EQ(runCaisson({"session", "destroy", fork}, how).exit_status, 0);
}

/// F11 holds for root inside too: no file gets a setuid bit, in the root or in a directory of the host.
TEST_F(ImageRoot, RootInsideSetsModesWithoutSetIdBits) {
  CONFORMS("R-ROOT-5");
  const TempDir root, shared;
  installBusybox(root);
  shared.write("file", "x");
  shared.openToAll();
  const RunOutput output = asRoot(root,
                                  "touch /f; mkdir /d; ln -s f /l; cd /d; chmod 4751 ../f && stat -c %a /f; "
                                  "chmod 2775 /d && stat -c %a /d; chmod 6710 /l && stat -c %a /f; "
                                  "chmod 4755 /absent || echo absent; "
                                  "chmod 4755 /dev/null || echo device; "
                                  "touch own; chmod u+s own; stat -c %a own; cd " +
                                      shared.path() + " && touch own && chmod 4755 own; stat -c %a own",
                                  {"--rw", shared.path()});
  EXPECT_EQ(output.out, "751\n775\n710\nabsent\ndevice\n644\n755\n") << output.describe();
  struct stat status{};
  ASSERT_EQ(::stat((shared / "own").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0755U);
}

TEST_F(ImageRoot, RootInsideSeesFakedChangesOfOwnersAndDevices) {
  CONFORMS("R-ROOT-6");
  const TempDir root;
  installBusybox(root);
  const RunOutput output =
      asSingleId(root,
                 "touch /f; chown 33:33 /f && stat -c %u:%g /f; mknod /n c 1 3 && test -e /n || echo "
                 "none; mknod /p p && test -p /p && echo fifo");
  EXPECT_EQ(output.out, "0:0\nnone\nfifo\n") << output.describe();
}

TEST_F(ImageRoot, SessionKeepsChangesUntilItIsDestroyed) {
  CONFORMS("R-ROOT-6");
  const TempDir root, home;
  installBusybox(root);
  const auto before = treeState(root.path());
  const RunOptions how{.env = {{"CAISSON_HOME", home / "state"}}, .cwd = workspace.path()};
  const std::string id = makeSession(root, how);
  const auto inside = [&](const std::string& text) {
    return runCaisson({"session", "exec", id, "--", "sh", "-c", text}, how).out;
  };
  EXPECT_EQ(inside("echo kept > /kept; rm /bin/mv; chmod 4755 /kept && stat -c %a /kept"), "755\n");
  const auto record = nlohmann::json::parse(readFile(home / ("state/sessions/" + id + "/init.json")));
  ASSERT_EQ(::kill(record["init"]["pid"].get<pid_t>(), SIGKILL), 0);
  (void)inside("true");  // it may still reach the sandbox that was killed
  EXPECT_EQ(inside("cat /kept; test -e /bin/mv || echo removed"), "kept\nremoved\n") << "in a new sandbox";
  EXPECT_EQ(runCaisson({"session", "destroy", id}, how).exit_status, 0);
  EXPECT_FALSE(exists(home / ("state/sessions/" + id)));
  EXPECT_EQ(differences(before, treeState(root.path())), "");
}

TEST_F(ImageRoot, WrongRootsAreRefusedWithTheReason) {
  CONFORMS("R-ROOT-4");
  const TempDir root;
  installBusybox(root);
  root.write("file", "x");
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{"--image", root / "file"}, "not a directory"},
      {{"--image", root / "absent"}, "cannot be opened"},
      {{"--image", "/"}, "the whole host"},
      {{"--image", root.path(), "--level", "process"}, "level full"},
      {{"--image", "a b"}, "an image such as"},
  };
  for (const auto& [options, reason] : cases) {
    const RunOutput output = run(options, {"sh", "-c", "echo ran"});
    EXPECT_EQ(output.exit_status, 125) << output.describe();
    EXPECT_TRUE(contains(output.err, reason)) << reason << output.describe();
  }
}

}  // namespace
}  // namespace caisson::test
