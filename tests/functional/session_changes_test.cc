// The content of changes: diff -p, --stat, --json, export as patch and as archive, info, checkpoints. git applies
// patches and tar unpacks archives; then the trees must be equal.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>

#include "functional/session.h"

namespace caisson::test {
namespace {

namespace fs = std::filesystem;

std::string gitMode(const struct stat& status) {
  if (S_ISLNK(status.st_mode)) return "link ";
  return (status.st_mode & 0100) != 0 ? "executable " : "file ";
}

/// The files and links of a tree by path, as git tracks them: with the executable bit and content.
std::map<std::string, std::string> tracked(const std::string& root) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    struct stat status{};
    const std::string path = entry.path().string();
    if (::lstat(path.c_str(), &status) != 0 || S_ISDIR(status.st_mode)) continue;
    const std::string content = S_ISLNK(status.st_mode) ? fs::read_symlink(entry.path()).string() : readFile(path);
    files[path.substr(root.size() + 1)] = gitMode(status) + content;
  }
  return files;
}

class SessionChanges : public SessionTest {
 protected:
  /// The workspace as the session sees it, copied out by tar inside.
  std::map<std::string, std::string> inside(Session& session) {
    const auto result = session.exec({.command = {"tar", "-cf", "-", "."}});
    EXPECT_TRUE(result && exitStatus(*result) == 0);
    const TempDir copy;
    const RunOutput unpacked = runProgram({"tar", "-xf", "-", "-C", copy.path()}, {.stdin_data = result->out.data});
    EXPECT_EQ(unpacked.exit_status, 0) << unpacked.describe();
    return tracked(copy.path());
  }
  /// The real workspace after `git apply`.
  std::map<std::string, std::string> applied(const std::string& patch) {
    const TempDir copy;
    EXPECT_EQ(runProgram({"cp", "-a", workspace.path() + "/.", copy.path()}).exit_status, 0);
    const RunOutput done = runProgram({"git", "apply", "-v", "-"}, {.stdin_data = patch, .cwd = copy.path()});
    EXPECT_EQ(done.exit_status, 0) << done.describe() << patch;
    return tracked(copy.path());
  }
  void fillWorkspace() {
    std::string lines;
    for (int i = 0; i < 200; ++i) lines += "line " + std::to_string(i) + "\n";
    workspace.write("src/long.txt", lines);
    workspace.write("src/moved.txt", lines + "moved\n");
    workspace.write("with space.txt", "a\nb\n");
    workspace.write("no newline", "last");
    workspace.write("mode.sh", "#!/bin/sh\n");
    workspace.write("gone/one", "1\n");
    workspace.write("gone/deep/two", "2\n");
    workspace.write("kind", "a file\n");
    workspace.write("becomes-dir", "a file\n");
    workspace.write("dir-becomes-file/x", "x\n");
    workspace.write("README", "case\nonly\nrename\n");
    workspace.write("binary", std::string("\0\1\2 old", 7));
    workspace.write("empty", "");
    ASSERT_EQ(::symlink("old-target", (workspace / "link").c_str()), 0);
  }
};

const char* const kEverything =
    "sed -i -e 's/line 7$/seven/' -e '/line 100$/d' -e 's/line 150$/line 150\\nnew/' src/long.txt; "
    "mv src/moved.txt 'src/moved away.txt'; echo more >> 'src/moved away.txt'; "
    "echo c >> 'with space.txt'; printf 'last\\nnow' > 'no newline'; chmod +x mode.sh; rm -r gone; "
    "rm kind; ln -s link kind; rm becomes-dir; mkdir becomes-dir; echo y > becomes-dir/y; "
    "rm -r dir-becomes-file; echo file > dir-becomes-file; mv README readme; "
    "printf '\\000\\003new' > binary; printf '\\000\\377' > binary2; echo full > empty; : > empty2; "
    "ln -sfn new-target link; mkdir -p new/deep; echo n > new/deep/n; "
    "printf 'x\\n' > \"$(printf 'two\\nlines')\"; printf 'q' > 'quote\"back\\slash'; "
    "printf 'b\\n' > \"$(printf 'bidi\\342\\200\\256txt')\"; printf 'e\\n' > \"$(printf 'esc\\033[31m')\"; "
    "printf 'i\\n' > \"$(printf 'latin\\351')\"; printf 't\\n' > \"$(printf 'tab\\there')\"; echo s > ' lead'; "
    "echo h > hard1; ln hard1 hard2; echo dash > -p";

TEST_F(SessionChanges, PatchAppliesWithGitAndGivesSameTree) {
  fillWorkspace();
  Session session = create();
  output(session, kEverything);
  const RunOutput exported = cli({"export", session.id()});
  EXPECT_EQ(exported.exit_status, 0) << exported.err;
  EXPECT_EQ(applied(exported.out), inside(session));
  EXPECT_NE(exported.out.find("rename from README\nrename to readme\n"), std::string::npos);
  EXPECT_NE(exported.out.find("rename from src/moved.txt\nrename to src/moved away.txt\n"), std::string::npos);
  EXPECT_NE(exported.out.find("GIT binary patch\n"), std::string::npos);
}

TEST_F(SessionChanges, DiffWithoutBinaryContentAppliesToo) {
  fillWorkspace();
  Session session = create();
  output(session, kEverything);
  output(session, "rm binary2; cat /workspace/empty2 > empty2; printf '\\000\\1\\2 old' > binary");
  const RunOutput diff = cli({"diff", session.id(), "-p"});
  EXPECT_EQ(diff.exit_status, 0) << diff.err;
  EXPECT_EQ(applied(diff.out), inside(session));
}

TEST_F(SessionChanges, ArchiveGivesSameChangedFiles) {
  fillWorkspace();
  Session session = create();
  output(session, kEverything);
  output(session,
         "mkdir -m 700 private; echo p > private/p; chmod 600 private/p; mkdir hollow; "
         "n=$(printf 'long%.0s' $(seq 40)); echo l > $n; mkdir -p $n-d/$n; echo l > $n-d/$n/$n; ln -s $n$n lnk");
  const RunOutput exported = cli({"export", session.id(), "--format", "tar"});
  EXPECT_EQ(exported.exit_status, 0) << exported.err;
  EXPECT_NE(exported.err.find("deleted paths are not in the archive"), std::string::npos) << exported.err;
  // Unpacked over the workspace, with the deletions that it cannot hold.
  const TempDir copy;
  ASSERT_EQ(runProgram({"cp", "-a", workspace.path() + "/.", copy.path()}).exit_status, 0);
  ASSERT_EQ(runProgram({"rm", "-r", "gone", "src/moved.txt", "README", "kind", "becomes-dir", "dir-becomes-file"},
                       {.cwd = copy.path()})
                .exit_status,
            0);
  const RunOutput unpacked = runProgram({"tar", "-xf", "-", "-C", copy.path()}, {.stdin_data = exported.out});
  EXPECT_EQ(unpacked.exit_status, 0) << unpacked.describe();
  EXPECT_EQ(tracked(copy.path()), inside(session));
  struct stat status{};
  ASSERT_EQ(::stat((copy / "private/p").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
  EXPECT_TRUE(fs::is_directory(copy / "hollow"));
}

TEST_F(SessionChanges, SparseFilesCostNothingAndStaySparse) {
  Session session = create();
  const TempDir host;
  host.write("huge", "");
  fs::resize_file(host / "huge", 900ULL << 30);  // the policy limits programs inside
  ASSERT_TRUE(session.copyIn(host / "huge", "huge"));
  output(session, "echo end > edge; truncate -s 10M edge; printf tail >> edge");
  const RunOutput patch = cli({"export", session.id()}, {.timeout = std::chrono::seconds(20)});
  EXPECT_EQ(patch.exit_status, 1) << "a patch that lacks a file says so";
  EXPECT_NE(patch.err.find("not in the patch: huge: it is larger than 16 MiB"), std::string::npos) << patch.err;
  const RunOutput tar = cli({"export", session.id(), "--format", "tar"}, {.timeout = std::chrono::seconds(20)});
  EXPECT_EQ(tar.exit_status, 0) << tar.err;
  EXPECT_LT(tar.out.size(), 1U << 20);
  const TempDir copy;
  const RunOutput unpacked = runProgram({"tar", "-xf", "-", "-C", copy.path()}, {.stdin_data = tar.out});
  EXPECT_EQ(unpacked.exit_status, 0) << unpacked.describe();
  EXPECT_EQ(fs::file_size(copy / "huge"), 900ULL << 30);
  const std::string edge = readFile(copy / "edge");
  EXPECT_EQ(edge.size(), (10U << 20) + 4);
  EXPECT_TRUE(edge.starts_with("end\n") && edge.ends_with("tail"));
}

TEST_F(SessionChanges, StatCountsLines) {
  workspace.write("a", "1\n2\n3\n");
  workspace.write("b", "x\n");
  Session session = create();
  output(session, "printf '1\\n3\\n4\\n5\\n' > a; rm b; printf '\\000' > c; mkdir d; echo new > d/n");
  EXPECT_EQ(cli({"diff", "--stat", session.id()}).out,
            " a   | 3 ++-\n b   | 1 -\n c   | 0 -> 1 bytes\n d/n | 1 +\n"
            " 4 paths changed, 3 lines added(+), 2 lines removed(-)\n");
}

TEST_F(SessionChanges, NamesThatLookLikeMarksAreQuoted) {
  Session session = create();
  output(session, "touch 'run.sh (mode 0755 -> 0644)' 'y | 3 +++' 'plain name'");
  const std::string listed = cli({"diff", session.id()}).out;
  EXPECT_NE(listed.find("A $'run.sh (mode 0755 -> 0644)'\nA $'y | 3 +++'\n"), std::string::npos) << listed;
  EXPECT_NE(listed.find("A plain name\n"), std::string::npos) << listed;
  const std::string counted = cli({"diff", "--stat", session.id()}).out;
  EXPECT_NE(counted.find(" $'y | 3 +++' "), std::string::npos) << counted;
  const std::string planned = cli({"commit", "--dry-run", session.id()}).out;
  EXPECT_NE(planned.find("A $'run.sh (mode 0755 -> 0644)'\n"), std::string::npos) << planned;
}

TEST_F(SessionChanges, NamesThatLookLikeOthersAreQuoted) {
  workspace.write("main.c", "int main;\n");
  workspace.write("Zo\u00eb", "");
  Session session = create();
  output(session,
         "printf x > m$(printf '\\320\\260')in.c; touch Zoe$(printf '\\314\\210') $(printf '\\320\\276\\320\\275')");
  const std::string listed = cli({"diff", session.id()}).out;
  EXPECT_EQ(listed, "A $'Zoe\\314\\210'\nA $'m\\320\\260in.c'\nA \u043e\u043d\n");
  EXPECT_NE(cli({"commit", "--dry-run", session.id()}).out.find("A $'m\\320\\260in.c'\n"), std::string::npos);
  EXPECT_EQ(cli({"commit", session.id(), "m\u0430in.c"}).exit_status, 0);
  EXPECT_EQ(readFile(workspace.path() + "/m\u0430in.c"), "x");
  EXPECT_EQ(readFile(workspace.path() + "/main.c"), "int main;\n");
}

TEST_F(SessionChanges, JsonCarriesPatchesNamesAndCounts) {
  workspace.write("old", "same\ncontent\n");
  Session session = create();
  output(session, "mv old new; printf 'l\\351\\n' > latin; printf x > \"$(printf 'n\\351')\"; mkfifo pipe");
  const auto json = cli({"diff", "-p", "--json", session.id()}).json();
  ASSERT_TRUE(json.is_object());
  std::map<std::string, nlohmann::json> changes;
  for (const auto& one : json["changes"]) changes[one["path"].get<std::string>()] = one;
  EXPECT_EQ(changes["new"]["change"], "renamed");
  EXPECT_EQ(changes["new"]["old_path"], "old");
  EXPECT_EQ(changes["latin"]["patch_encoding"], "base64") << "bytes that are not UTF-8 are marked";
  EXPECT_EQ(changes["latin"]["added_lines"], 1);
  EXPECT_EQ(changes["buk="]["path_encoding"], "base64");
  EXPECT_EQ(changes["pipe"]["omitted"], "a patch holds no FIFO");
  EXPECT_EQ(changes["pipe"]["patch"], "");
  EXPECT_FALSE(changes.contains("old"));
}

TEST_F(SessionChanges, DiffSinceCheckpointShowsOnlyLaterChanges) {
  workspace.write("f", "1\n");
  Session session = create();
  output(session, "echo 2 >> f; echo x > g");
  ASSERT_TRUE(session.checkpoint("one"));
  output(session, "echo 3 >> f");
  EXPECT_EQ(cli({"diff", "-p", session.id(), "one"}).out,
            "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,2 +1,3 @@\n 1\n 2\n+3\n");
  EXPECT_EQ(cli({"diff", "-p", session.id(), "nowhere"}).exit_status, 125);
}

TEST_F(SessionChanges, TouchedFilesAndAttributesAreNotChanges) {
  workspace.write("same", "s\n");
  workspace.write("mode", "m\n", 0644);
  Session session = create();
  output(session,
         "touch same; cat same > t; cat t > same; rm t; chmod 600 mode; setfattr -n user.note -v x same || true");
  EXPECT_EQ(cli({"diff", "-p", session.id()}).out, "");
  const RunOutput exported = cli({"export", session.id()});
  EXPECT_EQ(exported.out, "");
  EXPECT_EQ(exported.exit_status, 1);
  EXPECT_NE(exported.err.find("permissions changed from 0644 to 0600"), std::string::npos) << exported.err;
}

TEST_F(SessionChanges, PipesDevicesAndUnreadableFilesNeverBlock) {
  workspace.write("was-file", "content\n");
  Session session = create();
  output(session, "mkfifo pipe; rm was-file; mkfifo was-file; echo s > secret; chmod 000 secret");
  const RunOutput diff = cli({"diff", "-p", session.id()}, {.timeout = std::chrono::seconds(10)});
  EXPECT_FALSE(diff.timed_out);
  EXPECT_NE(diff.out.find("deleted file mode 100644\n--- a/was-file\n"), std::string::npos) << diff.out;
  const RunOutput tar = cli({"export", session.id(), "--format", "tar"}, {.timeout = std::chrono::seconds(10)});
  EXPECT_FALSE(tar.timed_out);
  EXPECT_EQ(tar.exit_status, 1);
  EXPECT_NE(tar.err.find("not in the archive: pipe: a FIFO is not exported"), std::string::npos) << tar.err;
}

TEST_F(SessionChanges, DirectoryThatCannotBeReadIsShownAndNamed) {
  if (::geteuid() == 0) GTEST_SKIP() << "root can read every directory";
  workspace.write("f", "old\n");
  Session session = create();
  output(session, "echo new > f; mkdir -p a/b; echo 1 > a/b/inside; chmod 300 a/b");
  const std::string note = "a/b: what is in it cannot be read";
  RunOutput out = cli({"diff", session.id()});
  EXPECT_EQ(out.exit_status, 0) << out.describe();
  EXPECT_EQ(out.out, "A a/\nA a/b/\nM f\n");
  EXPECT_NE(out.err.find(note), std::string::npos) << out.err;
  out = cli({"diff", "--json", session.id()});
  EXPECT_NE(out.json()["changes"][1]["omitted"].get<std::string>().find("cannot be read"), std::string::npos);
  out = cli({"diff", "-p", session.id()});
  EXPECT_NE(out.out.find("-old\n+new\n"), std::string::npos) << out.out;
  EXPECT_NE(out.err.find(note), std::string::npos) << out.err;
  EXPECT_NE(cli({"diff", "--stat", session.id()}).out.find("cannot be read"), std::string::npos);
  out = cli({"export", session.id()});
  EXPECT_EQ(out.exit_status, 1);
  EXPECT_NE(out.err.find("not in the patch: " + note), std::string::npos) << out.err;
  out = cli({"export", session.id(), "--format", "tar"});
  EXPECT_EQ(out.exit_status, 1);
  EXPECT_NE(out.err.find("not in the archive: " + note), std::string::npos) << out.err;
  EXPECT_EQ(runProgram({"tar", "-tf", "-"}, {.stdin_data = out.out}).out, "a/\na/b/\nf\n");
}

TEST_F(SessionChanges, DeletedDirectoryThatCannotBeReadIsShownAndNamed) {
  if (::geteuid() == 0) GTEST_SKIP() << "root can read every directory";
  Session session = create();
  output(session, "mkdir -p a/b; echo 1 > a/b/inside; chmod 0 a/b");
  ASSERT_TRUE(session.checkpoint("closed"));
  output(session, "chmod 700 a/b; rm -r a; echo 1 > f");
  const RunOutput out = cli({"diff", "-p", session.id(), "closed"});
  EXPECT_EQ(out.exit_status, 0) << out.describe();
  EXPECT_NE(out.out.find("+++ b/f\n"), std::string::npos) << out.out;
  EXPECT_NE(out.err.find("a/b: what is in it cannot be read"), std::string::npos) << out.err;
}

TEST_F(SessionChanges, DiffEndsWhileProcessReplacesFilesByPipes) {
  Session session = create();
  output(session, "for i in $(seq 200); do echo $i > f$i; done");
  const auto attack = session.start({.command = {"sh", "-c",
                                                 "while :; do for i in $(seq 200); do rm -f f$i; mkfifo f$i "
                                                 "2>/dev/null; rm -f f$i; ln -s /etc/passwd f$i; rm -f "
                                                 "f$i; echo $i > f$i; done; done"}});
  ASSERT_TRUE(attack);
  for (int round = 0; round < 5; ++round) {
    const RunOutput diff = cli({"diff", "-p", session.id()}, {.timeout = std::chrono::seconds(20)});
    EXPECT_FALSE(diff.timed_out);
    EXPECT_EQ(diff.out.find("root:"), std::string::npos) << "a link was followed";
    const RunOutput tar = cli({"export", session.id(), "--format", "tar"}, {.timeout = std::chrono::seconds(20)});
    EXPECT_FALSE(tar.timed_out);
    EXPECT_EQ(runProgram({"tar", "-tf", "-"}, {.stdin_data = tar.out}).exit_status, 0);
  }
  ASSERT_TRUE(session.stop(*attack));
}

TEST_F(SessionChanges, InfoShowsThePropertiesOfTheSession) {
  workspace.write("f", "1\n");
  const RunOutput made = cli({"create", "--name", "shown", "--ttl", "2h"});
  ASSERT_EQ(made.exit_status, 0) << made.describe();
  auto before = cli({"info", "shown", "--json"}).json();
  EXPECT_EQ(before["uncommitted_changes"], false);
  EXPECT_EQ(before["ttl_seconds"], 7200);
  EXPECT_EQ(before["expired"], false);
  EXPECT_EQ(before["workspace"], fs::canonical(workspace.path()).string());
  EXPECT_EQ(before["network"], "none");
  ASSERT_EQ(cli({"exec", "shown", "--", "sh", "-c", "echo 2 > f"}).exit_status, 0);
  ASSERT_EQ(cli({"checkpoint", "shown", "works"}).exit_status, 0);
  const auto after = cli({"info", "shown", "--json"}).json();
  EXPECT_EQ(after["uncommitted_changes"], true);
  EXPECT_EQ(after["checkpoints"], nlohmann::json::array({"works"}));
  const std::string text = cli({"info", "shown"}).out;
  EXPECT_NE(text.find("name          shown\n"), std::string::npos) << text;
  EXPECT_NE(text.find("checkpoints   works\n"), std::string::npos) << text;
  ASSERT_EQ(cli({"commit", "shown"}).exit_status, 0);
  EXPECT_EQ(cli({"info", "shown", "--json"}).json()["uncommitted_changes"], false);
  EXPECT_EQ(cli({"info", "unknown"}).exit_status, 125);
}

TEST_F(SessionChanges, CheckpointsAreListedOldestFirst) {
  Session session = create();
  EXPECT_EQ(cli({"checkpoints", session.id()}).out, "");
  ASSERT_TRUE(session.checkpoint("first"));
  ASSERT_TRUE(session.checkpoint("second"));
  const std::string text = cli({"checkpoints", session.id()}).out;
  EXPECT_TRUE(text.find("Z  first\n") < text.find("Z  second\n")) << text;
  const auto json = cli({"checkpoints", session.id(), "--json"}).json();
  ASSERT_EQ(json["checkpoints"].size(), 2U);
  EXPECT_EQ(json["checkpoints"][1]["name"], "second");
  EXPECT_GT(json["checkpoints"][1]["created"], 1'600'000'000);
}

TEST_F(SessionChanges, DiffOfTenThousandFilesTakesAtMostTwiceAsLongAsGit) {
  const TempDir copy;
  for (int i = 0; i < 10'000; ++i) {
    const std::string directory = "d" + std::to_string(i / 100);
    const std::string name = directory + "/f" + std::to_string(i);
    if (i % 100 == 0) {
      workspace.makeDir(directory);
      copy.makeDir("now/" + directory);
    }
    std::ofstream(workspace / name) << "header\nvalue " << i << "\nfooter\n";
    std::ofstream(copy / ("now/" + name)) << "header\nchanged " << i << "\nfooter\n";
  }
  Session session = create();
  output(session, "sed -i 's/value/changed/' d*/f*");
  std::chrono::milliseconds ours{1 << 30}, git{1 << 30};
  for (int round = 0; round < 3; ++round) {
    const RunOutput mine = cli({"diff", "-p", session.id()});
    ASSERT_EQ(mine.exit_status, 0) << mine.err;
    const RunOutput theirs = runProgram({"git", "diff", "--no-index", workspace.path(), copy / "now"});
    ASSERT_EQ(theirs.exit_status, 1) << theirs.err;
    ours = std::min(ours, mine.duration);
    git = std::min(git, theirs.duration);
  }
  RecordProperty("caisson_ms", std::to_string(ours.count()));
  RecordProperty("git_ms", std::to_string(git.count()));
  std::printf("session diff -p: %lld ms, git diff --no-index: %lld ms\n", static_cast<long long>(ours.count()),
              static_cast<long long>(git.count()));
  EXPECT_LE(ours, git * 2);
}

}  // namespace
}  // namespace caisson::test
