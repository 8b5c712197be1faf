// caisson's own configuration and state: whatever a session writes at their places stays in the session.
#include <filesystem>
#include <optional>
#include <string>

#include "functional/commit.h"

namespace caisson::test {
namespace {

/// Sets a variable of this process for one test.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    ::setenv(name, value.c_str(), 1);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { old_ ? ::setenv(name_, old_->c_str(), 1) : ::unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> old_;
};

class CommitOwnPlaces : public CommitTest {
 protected:
  /// Commits everything, then these paths by name, and returns what was applied.
  static std::string commitNamed(Session& session, const std::vector<std::string>& names) {
    std::string all = applied(commit(session));
    all += applied(commit(session, {.paths = names}));
    return all + applied(commit(session, {.paths = names, .ordinary_files_only = true}));
  }
  static constexpr const char* kWrite =
      "mkdir -p conf/caisson; echo '[alerts]' > conf/caisson/config.toml; echo x > ok";
};

TEST_F(CommitOwnPlaces, ConfigurationThatDoesNotExistYetIsLeftOutAlsoIfNamed) {
  const Variable config("XDG_CONFIG_HOME", workspace / "conf");
  workspace.makeDir("conf");
  workspace.openToAll();
  Session session = create();
  output(session, kWrite);
  EXPECT_EQ(commitNamed(session, {"conf/caisson", "conf/caisson/config.toml"}), "ok\n");
  EXPECT_EQ(paths(commit(session).skipped), "conf/caisson\nconf/caisson/config.toml\n");
  EXPECT_FALSE(exists(workspace / "conf/caisson"));
}

TEST_F(CommitOwnPlaces, ConfigurationThatIsHiddenInsideIsLeftOut) {
  const Variable config("XDG_CONFIG_HOME", workspace / "conf");
  workspace.write("conf/caisson/other", "x\n");
  workspace.openToAll();
  Session session = create();
  output(session, kWrite);
  EXPECT_EQ(commitNamed(session, {"conf/caisson/config.toml"}), "ok\n");
  EXPECT_FALSE(exists(workspace / "conf/caisson/config.toml"));
}

TEST_F(CommitOwnPlaces, ConfigurationBehindALinkIsLeftOut) {
  const TempDir elsewhere;
  workspace.makeDir("dot");
  workspace.openToAll();
  ASSERT_EQ(::symlink((workspace / "dot").c_str(), (elsewhere / "link").c_str()), 0);
  const Variable config("XDG_CONFIG_HOME", elsewhere / "link");
  Session session = create();
  output(session, "mkdir -p dot/caisson; echo x > dot/caisson/config.toml");
  EXPECT_EQ(commitNamed(session, {"dot/caisson/config.toml"}), "");
  EXPECT_FALSE(exists(elsewhere / "link/caisson"));
}

TEST_F(CommitOwnPlaces, LinksThatWouldMakeTheConfigurationAreLeftOut) {
  const Variable config("XDG_CONFIG_HOME", workspace / "conf/user");
  Session session = create();
  output(session, "mkdir -p a/user/caisson; echo x > a/user/caisson/config.toml; ln -s a conf");
  EXPECT_EQ(commit(session, {.paths = {"conf"}}).applied.size(), 0U) << "above the place";
  output(session, "rm conf; mkdir conf; ln -s ../a/user conf/user");
  EXPECT_EQ(commitNamed(session, {"conf/user"}).find("conf/user"), std::string::npos);
  output(session, "rm conf/user; mkdir conf/user; ln -s ../../a/user/caisson conf/user/caisson");
  EXPECT_EQ(commitNamed(session, {"conf/user/caisson"}).find("conf/user/caisson"), std::string::npos);
  EXPECT_FALSE(exists(workspace / "conf/user/caisson/config.toml"));
}

TEST_F(CommitOwnPlaces, LinksThatLeadToTheConfigurationStay) {
  const TempDir real;
  real.makeDir("caisson");
  ASSERT_EQ(::symlink(real.path().c_str(), (workspace / "conf").c_str()), 0);
  const Variable config("XDG_CONFIG_HOME", workspace / "conf");
  Session session = create();
  output(session, "rm conf; mkdir conf; echo x > conf/y");
  EXPECT_EQ(commitNamed(session, {"conf", "conf/y"}), "");
  EXPECT_TRUE(std::filesystem::is_symlink(workspace / "conf"));
}

TEST_F(CommitOwnPlaces, RemovedDirectoryAboveTheConfigurationIsLeftOut) {
  const Variable config("XDG_CONFIG_HOME", workspace / "conf");
  workspace.makeDir("conf/caisson");
  workspace.openToAll();
  Session session = create();
  output(session, "rm -r conf; echo x > conf");
  EXPECT_EQ(commitNamed(session, {"conf"}), "");
  EXPECT_TRUE(exists(workspace / "conf/caisson"));
}

TEST_F(CommitOwnPlaces, DefaultStateIsLeftOutBesideAnother) {
  const Variable data("XDG_DATA_HOME", workspace / "data");
  Session session = create();
  output(session, "mkdir -p data/caisson/sessions/x; echo x > data/caisson/sessions/x/meta.json; echo x > ok");
  // The host's `data` was made when the session began, for the registry of written directories.
  EXPECT_EQ(commitNamed(session, {"data/caisson/sessions/x/meta.json"}), "ok\n");
  EXPECT_FALSE(exists(workspace / "data/caisson/sessions"));
}

}  // namespace
}  // namespace caisson::test
