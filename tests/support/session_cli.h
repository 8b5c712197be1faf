// Sessions through the command line only, on a state directory and a workspace of the test's own.
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
  /// Kills every sandbox in which a process with the marker runs, then `caisson clean --all`.
  ~SessionCli();
  SessionCli(const SessionCli&) = delete;
  SessionCli& operator=(const SessionCli&) = delete;

  /// `caisson ARGS...` in the workspace. The whole process group is killed after `timeout`.
  [[nodiscard]] RunOutput caisson(const Words& args, Milliseconds timeout = std::chrono::seconds(20),
                                  const std::string& input = {}) const;
  /// Creates a session whose policy is profile bash and these TOML lines; returns its id.
  [[nodiscard]] std::string create(const std::string& policy = {}, const Words& flags = {}) const;
  [[nodiscard]] RunOutput exec(const std::string& id, const Words& command, const Words& flags = {},
                               Milliseconds timeout = std::chrono::seconds(20)) const;
  [[nodiscard]] RunOutput script(const std::string& id, const std::string& text, const Words& flags = {},
                                 Milliseconds timeout = std::chrono::seconds(20)) const;
  /// `session exec --background`; fails the test if it is refused.
  void start(const std::string& id, const Words& command) const;

  /// The records of one audit event, or of all.
  [[nodiscard]] std::vector<nlohmann::json> events(const std::string& name = {}) const;
  /// KiB on disk below the state directory.
  [[nodiscard]] long storedKib() const;
  /// An argument for hostile commands, by which they are found from outside.
  [[nodiscard]] const std::string& marker() const { return marker_; }
  [[nodiscard]] RunOptions options() const;

  const TempDir home, workspace;

 private:
  std::string marker_;
};

}  // namespace caisson::test
