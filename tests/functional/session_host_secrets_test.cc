// Secrets that the host creates or changes while a session exists: nothing that reads the real directory for a client
// gives their content.
#include <filesystem>

#include "functional/commit.h"

namespace caisson::test {
namespace {

namespace fs = std::filesystem;

/// In every secret of these tests, also as a part of a URL.
constexpr const char* kLate = "kL4te9xQz7Wm2";

const std::string kKeyFile = std::string("-----BEGIN OPENSSH PRIVATE KEY-----\n") + kLate + "\n";
const std::string kPassword = std::string("password = ") + kLate + "\n";
const std::string kGitUrl = std::string("[remote \"o\"]\n\turl = https://me:") + kLate + "@host.example/r.git\n";

class SessionHostSecrets : public CommitTest {
 protected:
  /// A session in which names of secrets are taken before the host has any, and a directory is removed.
  Session createAndTakeNames(const SessionOptions& options) {
    workspace.write("app.cfg", "user = me\n");
    workspace.write("notes.txt", "a note\n");
    workspace.write("d/a.txt", "1\n");
    workspace.write(".git/config", "[core]\n\tbare = false\n");
    workspace.openToAll();
    auto made = store->create(options);
    EXPECT_TRUE(made) << made.error().message();
    EXPECT_EQ(
        output(
            *made,
            "for f in .env .npmrc id_rsa; do echo mine >$f; done; rm -rf d; mkdir -p d .ssh; echo mine >.ssh/config; "
            "echo more >>app.cfg; rm notes.txt; mkdir -p .git; echo '# mine' >>.git/config; mkdir dumps; "
            "echo mine >dumps/a.dump; echo done"),
        "done\n");
    return *std::move(made);
  }
  void writeSecrets() const {
    workspace.write(".env", std::string("K=") + kLate + "\n");
    workspace.write(".npmrc", std::string("//registry.example/:_authToken=") + kLate + "\n");
    workspace.write("id_rsa", kKeyFile);
    workspace.write(".ssh/config", std::string("# ") + kLate + "\n");
    workspace.write("d/id_rsa", kKeyFile);
    workspace.write("d/.ssh/named-" + std::string(kLate), kKeyFile);
    workspace.write("app.cfg", "user = me\n" + kPassword);
    workspace.write("notes.txt", std::string("https://me:") + kLate + "@host.example/x\ntoken: ghp_" +
                                     std::string(36, 'a') + kLate + "\n" + kPassword);
    workspace.write(".git/config", kGitUrl);
    workspace.write("dumps/a.dump", std::string(kLate) + "\n");
  }
  static std::vector<FileDiff> diff(Session& session, const DiffOptions& options = {}) {
    std::vector<FileDiff> found;
    const auto done = session.diffFiles(options, [&](const FileDiff& one) {
      found.push_back(one);
      return true;
    });
    EXPECT_TRUE(done) << done.error().message();
    return found;
  }
  static void expectNothingLate(const std::vector<FileDiff>& found) {
    for (const FileDiff& one : found) {
      EXPECT_EQ(one.patch.find(kLate), std::string::npos) << one.patch;
      EXPECT_EQ(one.path.find(kLate), std::string::npos) << one.path;
    }
  }
  static std::string omitted(const std::vector<FileDiff>& found, const std::string& path) {
    for (const FileDiff& one : found)
      if (one.path == path) return one.omitted;
    return "(not in the diff)";
  }
  [[nodiscard]] SessionOptions withDenied() const {
    SessionOptions with = options();
    EXPECT_TRUE(with.policy.append("filesystem.denied", "/workspace/dumps/*.dump"));
    return with;
  }
};

TEST_F(SessionHostSecrets, DiffLeavesOutTheirContent) {
  Session session = createAndTakeNames(withDenied());
  writeSecrets();
  const std::vector<FileDiff> found = diff(session, {.binary = true});
  expectNothingLate(found);
  for (const char* path :
       {".env", ".npmrc", "id_rsa", ".ssh/config", "d/id_rsa", "app.cfg", "notes.txt", ".git/config", "dumps/a.dump"}) {
    const std::string why = omitted(found, path);
    EXPECT_TRUE(why == "hidden on the host") << path << ": " << why;
  }
  for (const FileDiff& one : found) {
    if (one.omitted == "hidden on the host") {
      EXPECT_EQ(one.old_size, 0U) << one.path;
    }
  }
}

TEST_F(SessionHostSecrets, DiffStillShowsOrdinaryFilesOfTheHost) {
  Session session = createAndTakeNames(options());
  workspace.write("notes.txt", "a new note\n");
  workspace.write("d/b.txt", "of the host\n");
  std::string patches;
  for (const FileDiff& one : diff(session)) patches += one.patch;
  EXPECT_NE(patches.find("-a new note"), std::string::npos) << patches;
  EXPECT_NE(patches.find("-of the host"), std::string::npos) << patches;
  EXPECT_NE(patches.find("+mine"), std::string::npos) << patches;
}

TEST_F(SessionHostSecrets, ShownFilesAreInTheDiff) {
  SessionOptions with = options();
  ASSERT_TRUE(with.policy.append("filesystem.workspace.show_files", "/workspace/.env"));
  Session session = createAndTakeNames(with);
  writeSecrets();
  std::string patch;
  for (const FileDiff& one : diff(session))
    if (one.path == ".env") patch = one.patch;
  EXPECT_NE(patch.find(kLate), std::string::npos) << patch;
}

TEST_F(SessionHostSecrets, CommandLineLeavesThemOut) {
  Session session = createAndTakeNames(withDenied());
  writeSecrets();
  for (const std::vector<std::string>& command : {std::vector<std::string>{"diff", "-p", session.id()},
                                                  {"diff", "-p", "--json", session.id()},
                                                  {"diff", "--stat", session.id()},
                                                  {"export", session.id()},
                                                  {"export", session.id(), "--format", "tar"},
                                                  {"commit", "--dry-run", "--json", session.id()}}) {
    const RunOutput shown = cli(command);
    EXPECT_NE(shown.out, "") << shown.describe();
    EXPECT_EQ((shown.out + shown.err).find(kLate), std::string::npos) << shown.describe();
  }
}

TEST_F(SessionHostSecrets, ForksLeaveThemOut) {
  Session session = createAndTakeNames(withDenied());
  auto forked = session.fork({});
  ASSERT_TRUE(forked) << forked.error().message();
  writeSecrets();
  expectNothingLate(diff(*forked));
}

TEST_F(SessionHostSecrets, HostFilesBelowACheckpointAreNotExported) {
  Session session = createAndTakeNames(withDenied());
  ASSERT_TRUE(session.checkpoint("names"));
  ASSERT_TRUE(session.restore("begin"));
  writeSecrets();
  std::string archive;
  const auto report = session.exportTar("names", [&](std::string_view bytes) {
    archive += bytes;
    return true;
  });
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_EQ(archive.find(kLate), std::string::npos);
  EXPECT_TRUE(std::ranges::any_of(report->left_out, [](const LeftOut& one) { return one.path == "app.cfg"; }));
  expectNothingLate(diff(session, {.checkpoint = "names"}));
}

TEST_F(SessionHostSecrets, RenamesAreNotFoundFromTheirContent) {
  workspace.write("app.cfg", "user = me\n");
  workspace.openToAll();
  Session session = create();
  output(session, "rm app.cfg; printf 'user = me\\npassword = " + std::string(kLate) + "\\n' >guess.txt");
  workspace.write("app.cfg", "user = me\n" + kPassword);
  for (const FileDiff& one : diff(session)) EXPECT_FALSE(one.renamed()) << one.old_path << " -> " << one.path;
}

TEST_F(SessionHostSecrets, ListOfChangesDoesNotConfirmAGuess) {
  Session session = create();
  output(session, std::string("echo K=") + kLate + " >.env");
  workspace.write(".env", std::string("K=") + kLate + "\n");
  fs::permissions(workspace / ".env", fs::perms(0644));
  const auto changes = session.diff();
  ASSERT_TRUE(changes);
  EXPECT_EQ(changes->size(), 1U);
  const CommitReport planned = commit(session, {.paths = {".env"}, .dry_run = true});
  EXPECT_EQ(paths(planned.conflicts), ".env\n") << "the commit says that both files are the same";
}

TEST_F(SessionHostSecrets, MergeDoesNotReadThem) {
  workspace.write("app.cfg", "a = 1\nb = 2\nc = 3\nd = 4\ne = 5\n");
  workspace.openToAll();
  Session session = create();
  output(session, "sed -i 's/a = 1/a = 0/' app.cfg");
  ASSERT_EQ(paths(commit(session).conflicts), "");
  ASSERT_TRUE(session.checkpoint("base"));
  output(session, "sed -i 's/a = 0/a = 7/' app.cfg");
  workspace.write("app.cfg", "a = 0\nb = 2\nc = 3\nd = 4\n" + kPassword);
  const CommitReport planned = commit(session, {.dry_run = true, .merge = {"app.cfg"}});
  EXPECT_EQ(applied(planned), "") << "the digest of the merged file tells what is in it";
  ASSERT_EQ(paths(planned.conflicts), "app.cfg\n");
  EXPECT_NE(planned.conflicts[0].reason.find("hidden"), std::string::npos) << planned.conflicts[0].reason;
}

TEST_F(SessionHostSecrets, FilesThatChangeWhileADiffIsReadAreJudgedAgain) {
  for (int i = 0; i < 10; ++i) workspace.write("f" + std::to_string(i) + ".cfg", "user = me\n");
  workspace.openToAll();
  Session session = create();
  output(session, "for f in *.cfg; do echo more >>$f; done");
  std::string patches;
  const auto done = session.diffFiles({}, [&](const FileDiff& one) {
    // The reader holds the first entry back while the host writes.
    if (one.path == "f0.cfg") {
      for (int i = 1; i < 10; ++i) workspace.write("f" + std::to_string(i) + ".cfg", kPassword);
    }
    patches += one.patch;
    return true;
  });
  ASSERT_TRUE(done) << done.error().message();
  EXPECT_NE(patches.find("f9.cfg"), std::string::npos) << patches;
  EXPECT_EQ(patches.find(kLate), std::string::npos) << patches;
}

class SessionClosedPaths : public CommitTest {
 protected:
  Session createWith(const std::string& key, const std::string& value) {
    workspace.openToAll();
    SessionOptions with = options();
    EXPECT_TRUE(with.policy.append(key, value));
    auto made = store->create(with);
    EXPECT_TRUE(made) << made.error().message();
    return *std::move(made);
  }
};

TEST_F(SessionClosedPaths, CommitHoldsBackWhatIsBelowDeniedPaths) {
  workspace.write("priv/key", "k");
  Session session = createWith("filesystem.denied", "/workspace/pri*");
  output(session, "mkdir -p priv PRIV; echo x >priv/run.sh; echo x >PRIV/run.sh; echo x >ok.txt");
  for (const bool by_model : {false, true}) {
    const CommitReport planned = commit(session, {.dry_run = true, .ordinary_files_only = by_model});
    EXPECT_EQ(applied(planned), "ok.txt\n");
    EXPECT_TRUE(isHeld(planned, "priv/run.sh")) << paths(planned.held);
    EXPECT_TRUE(isHeld(planned, "PRIV/run.sh")) << paths(planned.held);
  }
  EXPECT_EQ(applied(commit(session, {.paths = {"priv/run.sh"}, .dry_run = true, .ordinary_files_only = true})), "");
  const CommitReport named = commit(session, {.paths = {"priv/run.sh"}, .dry_run = true});
  EXPECT_NE(applied(named).find("priv/run.sh"), std::string::npos) << "the owner may name it";
  for (const ManifestEntry& entry : named.applied) {
    if (entry.path == "priv/run.sh") {
      EXPECT_TRUE(entry.held_unless_named);
    }
  }
}

TEST_F(SessionClosedPaths, NamesThatAreNotUtf8AreClosedToo) {
  workspace.openToAll();
  workspace.write("a\377b", "canary-denied\n");
  workspace.write("r\377o/file", "ordinary\n");
  workspace.write("s\377h.env", "shown\n");
  workspace.write("t\377h.env", "canary-hidden\n");
  SessionOptions with = options();
  ASSERT_TRUE(with.policy.append("filesystem.denied", "/workspace/a\377b"));
  ASSERT_TRUE(with.policy.append("filesystem.read_only", workspace / "r\377o"));
  ASSERT_TRUE(with.policy.append("filesystem.workspace.show_files", "/workspace/s\377h.env"));
  auto session = store->create(with);
  ASSERT_TRUE(session) << session.error().message();
  const std::string text = output(*session, "cat a* s*h.env t*h.env r*o/file; touch r*o/new || echo no");
  EXPECT_EQ(text, "shown\nordinary\nno\n");
}

TEST_F(SessionClosedPaths, CommitHoldsBackWhatIsBelowReadOnlyPaths) {
  workspace.write("lib/vendor/a.txt", "1\n");
  Session session = createWith("filesystem.read_only", workspace / "lib/vendor");
  // The sandbox shows it read-only, too: only another spelling can be written.
  output(session, "echo x >ok.txt; echo x >lib/vendor/b.txt || mkdir lib/Vendor && echo x >lib/Vendor/b.txt");
  const CommitReport planned = commit(session, {.dry_run = true, .ordinary_files_only = true});
  EXPECT_EQ(applied(planned), "ok.txt\n") << "a file system without case finds the read-only directory";
  EXPECT_TRUE(isHeld(planned, "lib/Vendor/b.txt")) << paths(planned.held);
}

TEST_F(SessionClosedPaths, ModelCommitsNothingToAWorkspaceInAReadOnlyPath) {
  const TempDir outer;
  fs::create_directories(outer / "v/w/x");
  outer.openToAll();
  SessionOptions with = options();
  ASSERT_TRUE(with.policy.set("filesystem.workspace.path", outer / "v/w/x"));
  ASSERT_TRUE(with.policy.append("filesystem.read_only", outer / "v/w"));
  auto session = store->create(with);
  ASSERT_TRUE(session) << session.error().message();
  output(*session, "echo x >a.txt");
  EXPECT_EQ(applied(commit(*session, {.paths = {"a.txt"}, .dry_run = true, .ordinary_files_only = true})), "");
  EXPECT_EQ(applied(commit(*session, {.dry_run = true})), "a.txt\n") << "the owner chose this workspace";
}

}  // namespace
}  // namespace caisson::test
