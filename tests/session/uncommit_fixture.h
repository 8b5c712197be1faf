// A workspace with objects of every kind, a session that changes all of them, and uncommit.
#pragma once

#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "functional/commit.h"
#include "session/layers/steps.h"

namespace caisson::test {

class Uncommit : public CommitTest {
 protected:
  /// Everything that uncommit has to restore: type, permissions, time of change, content or target, an attribute.
  static std::map<std::string, std::string> stateOf(const std::string& top) {
    std::map<std::string, std::string> state;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(top)) {
      const std::string path = entry.path();
      struct stat status{};
      EXPECT_EQ(::lstat(path.c_str(), &status), 0) << path;
      std::string text = std::to_string(status.st_mode);
      char note[64];
      const ssize_t size = ::lgetxattr(path.c_str(), "user.note", note, sizeof(note));
      if (size > 0) text += " note " + std::string(note, static_cast<std::size_t>(size));
      if (S_ISREG(status.st_mode)) {
        text += " " + std::to_string(status.st_mtim.tv_sec) + "." + std::to_string(status.st_mtim.tv_nsec) + " " +
                readFile(path);
      } else if (S_ISLNK(status.st_mode)) {
        text += " -> " + std::filesystem::read_symlink(path).string();
      }
      state[path.substr(top.size())] = text;
    }
    return state;
  }
  void fill() const {
    for (const char* name : {"file", "gone", "dir/x", "dir/sub/y", "tree/a", "kind/x", "was_file", "mode/x"}) {
      workspace.write(name, std::string("old ") + name + "\n");
    }
    ASSERT_EQ(::symlink("file", (workspace / "link").c_str()), 0);
    ASSERT_EQ(::symlink("dir", (workspace / "dir/loop").c_str()), 0);
    ASSERT_EQ(::chmod((workspace / "gone").c_str(), 0640), 0);
    ASSERT_EQ(::chmod((workspace / "mode").c_str(), 0755), 0);
    (void)::setxattr((workspace / "file").c_str(), "user.note", "of the host", 11, 0);
    for (const char* name : {"tree", "dir/sub"}) (void)::setxattr((workspace / name).c_str(), "user.note", name, 4, 0);
    ASSERT_EQ(runProgram({"touch", "-d", "2001-02-03", workspace / "file", workspace / "dir/x"}).exit_status, 0);
    letFileTimesSettle();
  }
  void work(Session& session) const {
    output(session,
           "echo new > file; rm gone; rm -r dir tree; mkdir tree; echo b > tree/b; rm -r kind; echo x > kind; rm "
           "was_file; "
           "mkdir -p was_file/deep; echo z > was_file/deep/z; rm link; ln -s gone2 link; echo a > added; mkdir -p n/m; "
           "echo f > n/m/f; chmod 750 mode; touch gone2");
  }
  CommitReport uncommit(const Session& session, bool dry_run = false) {
    auto report = store->uncommit(session.id(), dry_run);
    EXPECT_TRUE(report) << report.error().message();
    return report ? *std::move(report) : CommitReport{};
  }
  /// Runs `work` in a process that is killed at the first step of this name.
  static void dieAt(const char* step, const std::function<void(SessionStore&)>& work) {
    static std::string_view last;
    last = step;
    const pid_t child = ::fork();
    if (child == 0) {
      session::step_observer = [](const char* name) {
        if (name == last) ::kill(::getpid(), SIGKILL);
      };
      auto own = SessionStore::open(std::getenv("CAISSON_BIN"));
      if (own) work(*own);
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << step;
  }
  static std::string conflictsOf(const CommitReport& report) {
    std::string text;
    for (const NotCommitted& one : report.conflicts) text += one.path + ": " + one.reason + "\n";
    return text;
  }
};

}  // namespace caisson::test
