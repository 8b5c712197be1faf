// Sessions through the command line only, with a private state directory and workspace.
//
//   SessionCli cli;
//   const std::string id = cli.create("[resources]\nmemory = \"64M\"\n");
//   EXPECT_EQ(cli.exec(id, {"echo", "x"}).out, "x\n");
#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/run.h"
#include "support/temp_dir.h"

namespace caisson::test {

class SessionCli {
 public:
  using Words = std::vector<std::string>;
  using Milliseconds = std::chrono::milliseconds;

  SessionCli();
  /// Kills every sandbox that contains a process with the marker, then runs `caisson clean --all`.
  ~SessionCli();
  SessionCli(const SessionCli&) = delete;
  SessionCli& operator=(const SessionCli&) = delete;

  /// Runs `caisson ARGS...` in the workspace. Kills the whole process group after `timeout`.
  [[nodiscard]] RunOutput caisson(const Words& args, Milliseconds timeout = std::chrono::seconds(20),
                                  const std::string& input = {}) const;
  /// Creates a session with profile bash and these TOML lines as policy; returns its id.
  [[nodiscard]] std::string create(const std::string& policy = {}, const Words& flags = {}) const;
  [[nodiscard]] RunOutput exec(const std::string& id, const Words& command, const Words& flags = {},
                               Milliseconds timeout = std::chrono::seconds(20)) const;
  /// exec() of a shell script.
  [[nodiscard]] RunOutput script(const std::string& id, const std::string& text, const Words& flags = {},
                                 Milliseconds timeout = std::chrono::seconds(20)) const;
  /// `session exec --background`; fails the test on an error.
  void start(const std::string& id, const Words& command) const;

  /// The records of one audit event type, or of all.
  [[nodiscard]] std::vector<nlohmann::json> events(const std::string& name = {}) const;
  /// KiB on disk below the state directory.
  [[nodiscard]] long storedKib() const;
  /// An argument for hostile commands, to find them from outside.
  [[nodiscard]] const std::string& marker() const { return marker_; }
  [[nodiscard]] RunOptions options() const;

  const TempDir home, workspace;

 private:
  std::string marker_;
};

}  // namespace caisson::test
