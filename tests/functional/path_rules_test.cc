// Rules for paths inside of other shown trees: they hold at every path that shows the object. Denied paths win, then
// the deepest path, then `ro`.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <random>

#include "functional/commit.h"
#include "functional/sandbox.h"

namespace caisson::test {
namespace {

namespace fs = std::filesystem;

const std::vector<std::vector<std::string>> kViews = {
    {"--level", "full"}, {"--level", "full", "--same-path"}, {"--level", "process"}};

class PathRules : public SandboxTest {
 protected:
  void SetUp() override {
    SandboxTest::SetUp();
    workspace.write("x/a/b/k", "before\n");
    workspace.write("x/other", "before\n");
  }
  RunOutput attempt(const std::vector<std::string>& view, std::vector<std::string> options, const std::string& text) {
    options.insert(options.begin(), view.begin(), view.end());
    return script(text, options);
  }
  /// Every change of the tree below x/a that a program could try, at the path of the workspace and at its own.
  [[nodiscard]] std::string attack() const {
    return "for top in . " + workspace.path() +
           "; do (cd $top || exit; "
           "echo x >> x/a/b/k; echo x > x/a/new; rm -f x/a/b/k; chmod 777 x/a/b/k; touch -d 2001-01-01 x/a/b/k; "
           "mv x/a/b/k x/k; mv x/a z; mv x z; mkdir -p x/a/b && echo x > x/a/b/k; rm -rf x/a; ln x/a/b/k hard && echo "
           "x > "
           "hard; ln -s x/a/b soft; echo x > soft/k; mount -o remount,rw x/a; rm -rf z soft) 2>/dev/null; done; echo "
           "ran";
  }
  void expectUntouched(const std::string& what) const {
    EXPECT_EQ(readFile(workspace / "x/a/b/k"), "before\n") << what;
    EXPECT_FALSE(exists(workspace / "x/a/new")) << what;
    EXPECT_EQ(fs::last_write_time(workspace / "x/a/b/k") > fs::file_time_type::clock::now() - std::chrono::hours(1),
              true)
        << what;
  }
};

TEST_F(PathRules, AReadOnlyPathInAWritableWorkspaceCannotBeChanged) {
  for (const auto& view : kViews) {
    for (const std::string mode : {"rw", "overlay"}) {
      const RunOutput output = attempt(view, {"--workspace", ".:" + mode, "--ro", "x/a"},
                                       attack() + "; echo y > x/new && cat x/a/b/k x/new");
      EXPECT_EQ(output.out, "ran\nbefore\ny\n") << mode << output.describe();
      expectUntouched(mode + " " + view.back());
      EXPECT_EQ(exists(workspace / "x/new"), mode == "rw") << "beside it is writable";
      unlink((workspace / "x/new").c_str());
      unlink((workspace / "soft").c_str());
    }
  }
}

TEST_F(PathRules, AReadOnlyPathInAWritablePathCannotBeChanged) {
  for (const std::string level : {"full", "process"}) {
    const RunOutput output = script(attack() + "; cd " + workspace.path() + " && echo y > x/new && cat x/a/b/k",
                                    {"--level", level, "--workspace", ":none", "--rw", ".", "--ro", "x/a"});
    EXPECT_TRUE(contains(output.out, "before\n")) << output.describe();
    expectUntouched(level);
    EXPECT_TRUE(exists(workspace / "x/new"));
    unlink((workspace / "x/new").c_str());
    unlink((workspace / "soft").c_str());
  }
}

TEST_F(PathRules, TheSamePathTwiceIsReadOnly) {
  for (const auto& view : kViews) {
    const RunOutput output = attempt(view, {"--workspace", ".:rw", "--ro", "."}, "echo x >> x/other; cat x/other");
    EXPECT_EQ(output.out, "before\n") << output.describe();
  }
  const RunOutput named =
      script("echo x >> " + workspace / "x/other", {"--workspace", ":none", "--rw", "x", "--ro", "x"});
  EXPECT_EQ(readFile(workspace / "x/other"), "before\n") << named.describe();
}

TEST_F(PathRules, AWritablePathInAStricterWorkspaceIsWrittenDirectlyAtEveryPath) {
  workspace.write("x/a/.env", "canary\n");
  for (const auto& view : kViews) {
    for (const std::string mode : {"ro", "overlay"}) {
      const RunOutput output = attempt(view, {"--workspace", ".:" + mode, "--rw", "x/a", "--ro", "x/a/b"},
                                       "echo 1 >> x/a/new; echo 2 >> " + workspace / "x/a/new" +
                                           "; echo x >> x/other; echo x >> x/a/b/k; echo x >> " +
                                           workspace / "x/a/b/k" + "; cat x/a/.env " + workspace / "x/a/.env");
      EXPECT_EQ(readFile(workspace / "x/a/new"), "1\n2\n") << mode << output.describe();
      EXPECT_EQ(readFile(workspace / "x/other"), "before\n");
      EXPECT_EQ(readFile(workspace / "x/a/b/k"), "before\n");
      EXPECT_EQ(output.out, "") << "the secret file stays hidden";
      unlink((workspace / "x/a/new").c_str());
    }
  }
}

TEST_F(PathRules, AWorkspaceInAWritablePathKeepsItsModeThere) {
  workspace.write("x/a/.env", "canary\n");
  for (const std::string mode : {"overlay", "ro"}) {
    const RunOutput output =
        runCaisson({"run", "--workspace", "x/a:" + mode, "--rw", ".", "--", "sh", "-c",
                    "cd " + workspace / "x/a" +
                        "; echo x >> b/k; mv ../../x ../../z; echo x >> /workspace/b/k; cat .env; echo 1 >> ../new"},
                   {.cwd = workspace.path()});
    expectUntouched(mode + output.describe());
    EXPECT_EQ(output.out, "") << "its secret files are hidden there, too";
    EXPECT_EQ(readFile(workspace / "x/new"), "1\n") << "beside it";
    unlink((workspace / "x/new").c_str());
  }
}

TEST_F(PathRules, DeniedPathsWinInsideOfNamedOnes) {
  workspace.write("x/a/denied", "canary\n");
  for (const auto& view : kViews) {
    for (const std::string mode : {"rw", "overlay", "ro"}) {
      for (const std::string rule : {"--ro", "--rw"}) {
        for (const std::string& denied : {std::string("x/a/denied"), workspace / "x/a/denied"}) {
          const RunOutput output = attempt(view, {"--workspace", ".:" + mode, rule, "x/a", "--deny", denied},
                                           "cat x/a/denied " + workspace / "x/a/denied" +
                                               "; cat x/a/b/k; echo y >> x/a/denied; ls x/a >/dev/null; echo ran");
          EXPECT_EQ(output.out, "before\nran\n") << mode << rule << output.describe();
          EXPECT_EQ(readFile(workspace / "x/a/denied"), "canary\n");
        }
      }
    }
  }
}

TEST_F(PathRules, DeniedPatternsWinOverNamedDirectories) {
  workspace.write("docs/page.md", "canary-page\n");
  workspace.write("docs/.env", "canary-env\n");
  workspace.write("top/docs/page.md", "canary-page\n");
  workspace.write("top/docs/.env", "canary-env\n");
  workspace.write(".ssh/keys/one.pem", "canary-pem\n");
  workspace.write(".ssh/keys/two.txt", "two\n");
  const std::pair<std::string, std::string> cases[] = {
      {"docs", "d*"}, {"docs", "*"}, {"docs/page.md", "d*"}, {"top/docs", "t*"}, {"top/docs", "top/d*"}};
  for (const std::string level : {"full", "process"}) {
    for (const auto& [shown, denied] : cases) {
      const RunOutput output = script("cat " + workspace / shown + "/* " + workspace / shown + "/.env " +
                                          workspace / shown + " " + shown + "/* " + shown + "; echo ran",
                                      {"--level", level, "--ro", shown, "--deny", denied});
      EXPECT_EQ(output.out, "ran\n") << level << " --ro " << shown << " --deny " << denied << output.describe();
    }
    const RunOutput inner = script("cat " + workspace / ".ssh/keys" + "/*; echo ran",
                                   {"--level", level, "--ro", ".ssh/keys", "--deny", ".ssh/keys/*.pem"});
    EXPECT_FALSE(contains(inner.out, "canary")) << level << inner.describe();
    EXPECT_TRUE(contains(inner.out, "ran")) << level << inner.describe();
  }
}

TEST_F(PathRules, TheLandlockTierRefusesWhatItCannotEnforce) {
  workspace.openToAll();
  for (const std::vector<std::string>& options :
       {std::vector<std::string>{"--workspace", ".:rw", "--ro", "x/a"},
        std::vector<std::string>{"--workspace", ":none", "--rw", "x", "--ro", "x/a"},
        std::vector<std::string>{"--workspace", "x:ro", "--rw", "."}}) {
    std::vector<std::string> all{"--tier", "landlock"};
    all.insert(all.end(), options.begin(), options.end());
    const RunOutput output = script("echo x >> " + workspace / "x/a/b/k", all);
    EXPECT_EQ(output.exit_status, 125) << output.describe();
    EXPECT_TRUE(contains(output.err, "Landlock cannot take a right away")) << output.describe();
  }
  const RunOutput same =
      script("echo x >> " + workspace / "x/other", {"--tier", "landlock", "--workspace", ".:rw", "--ro", "."});
  EXPECT_EQ(readFile(workspace / "x/other"), "before\n") << same.describe();
}

TEST_F(PathRules, FilesWithOtherNamesAreNamed) {
  ASSERT_EQ(link((workspace / "x/a/b/k").c_str(), (workspace / "other-name").c_str()), 0);
  const RunOutput output = script("true", {"--workspace", ".:rw", "--ro", "x/a"});
  EXPECT_TRUE(contains(output.err, "hard links") && contains(output.err, "x/a/b/k")) << output.describe();
  const RunOutput quiet = script("true", {"--workspace", ".:rw", "--ro", "x/other"});
  EXPECT_FALSE(contains(quiet.err, "hard links")) << quiet.describe();
}

class SessionPathRules : public CommitTest {};

TEST_F(SessionPathRules, AReadOnlyPathOfTheWorkspaceIsNeverCommitted) {
  workspace.write("x/a/b/k", "before\n");
  SessionOptions how = options();
  ASSERT_TRUE(how.policy.append("filesystem.read_only", workspace / "x/a"));
  auto made = store->create(how);
  ASSERT_TRUE(made) << made.error().message();
  (void)exec(
      *made,
      "(echo x > x/a/b/k; mv x z; mv x/a y; rm -rf x/a; mkdir -p x/a/b; echo x > x/a/b/k; rm -rf z y) 2>/dev/null; "
      "echo y > x/n");
  EXPECT_FALSE(made->write("x/a/b/k", "x"));
  EXPECT_EQ(applied(commit(*made)), "x/n\n");
  EXPECT_EQ(readFile(workspace / "x/a/b/k"), "before\n");
}

/// Random nestings in real sandboxes against the documented precedence. CAISSON_TEST_CASES sets how many.
class RandomPathRules : public SandboxTest {
 protected:
  enum Write { kHidden, kFails, kApart, kHost };

  struct Case {
    std::string workspace, mode;
    std::vector<std::string> view, read_only, read_write, denied;
    [[nodiscard]] std::vector<std::string> options() const {
      std::vector<std::string> all = view;
      all.insert(all.end(), {"--workspace", workspace + ":" + mode});
      for (const std::string& path : read_only) all.insert(all.end(), {"--ro", path});
      for (const std::string& path : read_write) all.insert(all.end(), {"--rw", path});
      for (const std::string& path : denied) all.insert(all.end(), {"--deny", path});
      return all;
    }
  };

  void SetUp() override {
    SandboxTest::SetUp();
    objects_ = {workspace.path() + "/t"};
    for (std::size_t at = 0; at < objects_.size(); ++at) {
      if (objects_[at].size() >= workspace.path().size() + 8) continue;
      objects_.push_back(objects_[at] + "/a");
      objects_.push_back(objects_[at] + "/b");
    }
    refill();
  }

  void refill() const {
    for (const std::string& object : objects_)
      workspace.write(object.substr(workspace.path().size() + 1) + "/f", "read\n");
  }

  Case draw(std::mt19937& random) const {
    const auto below = [&](std::size_t limit) { return random() % limit; };
    const std::string modes[] = {"ro", "rw", "overlay"};
    Case made{objects_[below(3)], modes[below(3)], kViews[below(kViews.size())], {}, {}, {}};
    for (std::size_t i = below(4); i > 0; --i) made.read_only.push_back(objects_[below(objects_.size())]);
    for (std::size_t i = below(4); i > 0; --i) {
      const std::string& path = objects_[below(objects_.size())];
      const bool twice = std::ranges::find(made.read_only, path) != made.read_only.end();  // an error of the policy
      if (!twice) made.read_write.push_back(path);
    }
    for (std::size_t i = below(3); i > 0; --i) made.denied.push_back(objects_[3 + below(objects_.size() - 3)]);
    return made;
  }

  static bool isBelow(const std::string& path, const std::string& top) { return (path + "/").starts_with(top + "/"); }

  static Write reference(const Case& one, const std::string& object) {
    for (const std::string& path : one.denied) {
      if (isBelow(object, path)) return kHidden;
    }
    std::size_t deepest = 0;
    Write result = kHidden;
    const auto rule = [&](const std::string& path, Write write) {
      if (!isBelow(object, path) || path.size() < deepest) return;
      if (path.size() > deepest || write < result) result = write;
      deepest = path.size();
    };
    rule(one.workspace, one.mode == "rw" ? kHost : one.mode == "ro" ? kFails : kApart);
    for (const std::string& path : one.read_only) rule(path, kFails);
    for (const std::string& path : one.read_write) rule(path, kHost);
    return result;
  }

  void check(const Case& one) {
    struct Try {
      std::string path, object;
    };
    std::vector<Try> tries;
    std::string text;
    for (const std::string& object : objects_) {
      std::vector<std::string> paths{object};
      if (isBelow(object, one.workspace) && one.view.size() == 2 && one.view[1] == "full")
        paths.push_back("/workspace" + object.substr(one.workspace.size()));
      for (const std::string& path : paths) {
        const std::string id = std::to_string(tries.size());
        text +=
            "grep -q read " + path + "/f && echo r" + id + "; echo " + id + " >> " + path + "/f && echo w" + id + "; ";
        tries.push_back({path, object});
      }
    }
    const RunOutput output = script("exec 2>/dev/null; " + text + "echo end", one.options());
    std::string options;
    for (const std::string& option : one.options()) options += " " + option;
    ASSERT_TRUE(output.out.ends_with("end\n")) << options << output.describe();
    const std::string told = "\n" + output.out;
    for (std::size_t id = 0; id < tries.size(); ++id) {
      const std::string number = std::to_string(id) + "\n";
      const bool read = contains(told, "\nr" + number), wrote = contains(told, "\nw" + number);
      const bool host = contains(readFile(tries[id].object + "/f"), "\n" + number);
      const Write wanted = reference(one, tries[id].object);
      const std::string what = tries[id].path + options;
      // Without the object, a path below /tmp may be a private directory above another shown one.
      EXPECT_EQ(host, wanted == kHost && wrote && read) << what;
      EXPECT_FALSE(wrote && read && wanted == kFails) << what;
      EXPECT_FALSE(read && wanted == kHidden) << what;
      const bool at_workspace = tries[id].path.starts_with("/workspace");
      const bool shown = at_workspace || one.view.size() > 2 || one.view[1] == "process" || read;
      EXPECT_TRUE(read || !shown || wanted == kHidden) << what;
      EXPECT_TRUE(wrote || !read || wanted < kApart) << what;
    }
  }

  std::vector<std::string> objects_;
};

TEST_F(RandomPathRules, FollowTheDocumentedPrecedence) {
  const char* count = std::getenv("CAISSON_TEST_CASES");
  const int cases = count == nullptr ? 24 : std::atoi(count);
  for (int seed = 0; seed < cases && !HasFailure(); ++seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    check(draw(random));
    refill();
  }
}

}  // namespace
}  // namespace caisson::test
