// Sessions whose commands request unlisted hosts, with a terminal or without one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "network/prompt.h"

namespace caisson::test {

class SessionPrompt : public NetworkTest {
 protected:
  void SetUp() override;
  void TearDown() override;

  /// Only example.org is allowed.
  std::string createSession();
  std::string createSession(const std::string& policy);
  std::string createOfflineSession();
  [[nodiscard]] RunOutput caisson(const std::vector<std::string>& words) const;
  /// Without a terminal.
  [[nodiscard]] RunOutput exec(const std::string& script, const std::vector<std::string>& options = {}) const;
  /// On a terminal.
  [[nodiscard]] std::unique_ptr<Terminal> start(const std::string& script, const std::string& id,
                                                const std::vector<std::string>& options = {}) const;
  [[nodiscard]] std::unique_ptr<Terminal> start(const std::string& script) const { return start(script, id_); }
  /// Starts a background command that writes its output and duration to /tmp/`name` when it has ended.
  void background(const std::string& name, const std::string& script) const;
  [[nodiscard]] std::string outputOf(const std::string& name) const;

  std::string home_, id_;
  std::vector<std::string> made_;
};

}  // namespace caisson::test
