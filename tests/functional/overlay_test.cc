// Real tools on an overlay of a real tree. Tests the differences to a plain directory: renaming a directory of the
// lower tree gives EXDEV. The host's tree stays the same, byte for byte.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "functional/sandbox.h"
#include "functional/tree_state.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

class Overlay : public SandboxTest {
 protected:
  void SetUp() override {
    SandboxTest::SetUp();
    workspace.write("dir/file", "content\n");
    workspace.write("dir/sub/deep", "deep\n");
    workspace.write("file", "content\n");
    workspace.write("script.sh", "#!/bin/sh\necho ran\n", 0755);
    workspace.write("closed", "x\n", 0400);
    ASSERT_EQ(symlink("dir/file", (workspace / "link").c_str()), 0);
    ASSERT_EQ(link((workspace / "file").c_str(), (workspace / "hard").c_str()), 0);
  }
  void remember() { before_ = treeState(workspace.path()); }
  void TearDown() override {
    if (before_.empty()) return;
    EXPECT_EQ(differences(before_, treeState(workspace.path())), "") << "the host's tree changed";
  }
  /// Runs the script with `set -e`; its output must be exactly this.
  void expectOutput(const std::string& text, const std::string& expected) {
    if (before_.empty()) remember();
    const RunOutput output = script("set -e\n" + text);
    EXPECT_EQ(output.exit_status, 0) << output.describe();
    EXPECT_EQ(output.out, expected) << output.describe();
  }

  std::map<std::string, std::string> before_;
};

#define requireProgram(program) requireOrSkip(systemHas(program), std::string(program) + " is not installed below /usr")

TEST_F(Overlay, FilesAreChangedReplacedAndRemoved) {
  expectOutput(R"sh(
    echo more >> file; cat file; echo new > dir/file; cat link; : > dir/sub/deep; stat -c %s dir/sub/deep
    rm script.sh; test ! -e script.sh; echo again > script.sh; cat script.sh; chmod 600 file; stat -c %a file
    mv file moved; cat moved; ln -sf moved link; cat link; truncate -s 3 moved; cat moved; echo
    touch -d 2001-01-01 moved; date -r moved +%Y)sh",
               "content\nmore\nnew\n0\nagain\n600\ncontent\nmore\ncontent\nmore\ncon\n2001\n");
}

TEST_F(Overlay, DirectoriesOfTheLowerTreeAreMovedByMv) {
  expectOutput(
      "mv dir moved; cat moved/file moved/sub/deep; test ! -e dir; mkdir dir; ls -A dir | wc -l; mv moved dir/back; "
      "cat dir/back/file",
      "content\ndeep\n0\ncontent\n");
}

TEST_F(Overlay, RenamingALowerDirectoryIsTheOneDocumentedDifference) {
  requireProgram("python3");
  expectOutput(R"sh(/usr/bin/python3 -c '
import errno, os, shutil
try: os.rename("dir", "moved"); print("renamed")
except OSError as e: print(errno.errorcode[e.errno])
os.mkdir("own"); os.rename("own", "own2"); print("own renamed")
os.rename("dir/file", "dir/file2"); print("file renamed")
shutil.move("dir", "moved"); print(sorted(os.listdir("moved")))')sh",
               "EXDEV\nown renamed\nfile renamed\n['file2', 'sub']\n");
}

TEST_F(Overlay, RemovedDirectoriesStayRemovedAndComeBackEmpty) {
  expectOutput(
      "rm -r dir; test ! -e dir; ls | tr '\\n' ' '; mkdir dir; ls -A dir | wc -l; echo x > dir/file; cat dir/*; find . "
      "-name deep | wc -l; "
      "find . -type c | wc -l",
      "closed file hard link script.sh 0\nx\n0\n0\n");
}

TEST_F(Overlay, HardLinksModesAndTimesLookAsOnTheHost) {
  struct stat host{};
  ASSERT_EQ(stat((workspace / "dir/file").c_str(), &host), 0);
  expectOutput(
      "stat -c '%a %s %Y' dir/file; stat -c %h hard; ./script.sh; stat -c '%U %G' dir/file; stat -c %a closed; cat "
      "closed",
      "644 8 " + std::to_string(host.st_mtim.tv_sec) + "\n2\nran\nsandbox sandbox\n400\nx\n");
}

TEST_F(Overlay, ToolsThatReplaceFilesInPlace) {
  expectOutput(R"sh(
    sed -i s/content/edited/ file; cat file; perl -pi -e 's/deep/deeper/' dir/sub/deep; cat dir/sub/deep
    tar cf /tmp/t.tar dir; rm -r dir; tar xf /tmp/t.tar; cat dir/file; cp -a dir copy; diff -r dir copy && echo same
    install -m 700 script.sh dir/s; dir/s; printf 'x\n' | tee dir/file; find . -name '*.sh' -delete; ls | tr '\n' ' ')sh",
               "edited\ndeeper\ncontent\nsame\nran\nx\nclosed copy dir file hard link ");
}

TEST_F(Overlay, MakeRebuildsOnlyWhatChanged) {
  requireProgram("make");
  workspace.write("Makefile", "out: dir/file\n\t@cp dir/file out; echo built\n");
  ASSERT_EQ(onHost("make -s").out, "built\n");
  expectOutput("make -s out; sleep 0.02; touch dir/file; make -s out; make -s out", "built\n");
}

TEST_F(Overlay, GitWorksOnTheHostsRepository) {
  requireProgram("git");
  const RunOutput made = onHost(R"sh(set -e
    git init -q; git config user.email a@example.org; git config user.name A; git add -A; git commit -qm one
    git checkout -qb other; git rm -qr dir; echo other > file; git commit -qam other; git checkout -q -; git gc -q)sh");
  ASSERT_EQ(made.exit_status, 0) << made.describe();
  expectOutput(R"sh(
    git status --porcelain; git checkout -q other; test ! -e dir; cat file; git checkout -q -; cat dir/file
    echo x > untracked; git stash -qu; test ! -e untracked; git stash pop -q > /dev/null; cat untracked; git clean -fdq
    echo y >> added; git add -A; git commit -qm two; git rebase -q other; git log -1 --format=%s; cat file; git reset -q --hard ORIG_HEAD~1
    git mv dir/file dir/renamed; git commit -qm renamed; git gc -q; git fsck --no-dangling --no-progress 2>&1; git status --porcelain; git log -1 --format=%s)sh",
               "other\ncontent\nx\ntwo\nother\nrenamed\n");
}

TEST_F(Overlay, NpmReplacesAnInstalledPackage) {
  requireProgram("npm");
  workspace.write("dep/package.json", R"({"name": "dep", "version": "1.0.0", "main": "i.js"})");
  workspace.write("dep/i.js", "module.exports = 1;\n");
  workspace.write("app/package.json", R"({"name": "app", "version": "1.0.0"})");
  const RunOutput made = onHost(
      "set -e; cd dep; npm pack --silent >/dev/null; cd ../app; npm install --silent --no-audit --no-fund --offline "
      "../dep/dep-1.0.0.tgz",
      {.env = {{"npm_config_cache", workspace / "cache"}, {"HOME", workspace.path()}}});
  ASSERT_EQ(made.exit_status, 0) << made.describe();
  expectOutput(R"sh(
    cd app; node -p "require('dep')"; cd ../dep
    sed -i s/1.0.0/2.0.0/ package.json; echo 'module.exports = 2;' > i.js; npm pack --silent >/dev/null; cd ../app
    npm install --silent --no-audit --no-fund --offline ../dep/dep-2.0.0.tgz; node -p "require('dep')"
    npm uninstall --silent --no-audit --no-fund --offline dep; ls node_modules | wc -l)sh",
               "1\n2\n0\n");
}

TEST_F(Overlay, CargoContinuesFromTheHostsTarget) {
  requireProgram("cargo");
  workspace.write("crate/Cargo.toml", "[package]\nname = \"c\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
  workspace.write("crate/src/main.rs", "fn main() { println!(\"one\"); }\n");
  const RunOutput made = onHost("cd crate && /usr/bin/cargo build -q --offline",
                                {.env = {{"CARGO_HOME", workspace / "cargo"}, {"PATH", "/usr/bin:/bin"}}});
  requireOrSkip(made.exit_status == 0, "cargo does not build on the host: " + made.describe());
  expectOutput(
      "cd crate; ./target/debug/c; sed -i s/one/two/ src/main.rs; cargo build -q --offline; ./target/debug/c; cargo "
      "clean -q 2>/dev/null || cargo clean 2>/dev/null; test ! -e target",
      "one\ntwo\n");
}

TEST_F(Overlay, SqliteInPlace) {
  requireProgram("python3");
  const RunOutput made = onHost(R"sh(/usr/bin/python3 -c '
import sqlite3
d = sqlite3.connect("a.db"); d.execute("create table t(x)"); d.execute("insert into t values (1)"); d.commit()')sh");
  ASSERT_EQ(made.exit_status, 0) << made.describe();
  expectOutput(R"sh(/usr/bin/python3 -c '
import sqlite3
d = sqlite3.connect("a.db"); d.execute("pragma journal_mode=wal"); d.execute("insert into t values (2)"); d.commit(); d.execute("vacuum")
print(sqlite3.connect("a.db").execute("select sum(x) from t").fetchone()[0])')sh",
               "3\n");
}

TEST_F(Overlay, MaskedSecretsAreNeitherVisibleNorChanged) {
  workspace.write(".env", "hidden-content\n");
  expectOutput(
      "test ! -e .env; ls -A | grep -c env || :; echo mine > .env; cat .env; rm .env; test ! -e .env; mkdir .env; "
      "rmdir .env; find . -type c | wc -l",
      "0\nmine\n0\n");
  EXPECT_EQ(readFile(workspace / ".env"), "hidden-content\n");
}

TEST_F(Overlay, FileNameThatIsNotUtf8Works) {
  workspace.write("special\xFFname", "x\n");
  expectOutput("cat special*; mv special* plain; cat plain", "x\nx\n");
}

TEST_F(Overlay, EveryRunStartsFromTheHostsTree) {
  CONFORMS("R-FILES-19");
  expectOutput("rm -r dir; echo gone > file", "");
  expectOutput("cat file dir/file", "content\ncontent\n");
}

TEST_F(Overlay, ChangesOfTheHostMadeBetweenRunsAreSeen) {
  EXPECT_EQ(script("cat file").out, "content\n");
  workspace.write("file", "changed\n");
  EXPECT_EQ(script("cat file").out, "changed\n");
}

TEST_F(Overlay, WorksOnEveryKindOfHostFileSystem) {
  for (const std::string directory : {"/dev/shm", "/tmp", "/var/tmp"}) {
    std::string pattern = directory + "/caisson-overlay-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) continue;
    const RunOutput output = run({"--workspace", pattern}, {"sh", "-c", "echo x > f; cat f"});
    EXPECT_EQ(output.out, "x\n") << directory << output.describe();
    EXPECT_EQ(rmdir(pattern.c_str()), 0) << "not empty";
  }
}

}  // namespace
}  // namespace caisson::test
