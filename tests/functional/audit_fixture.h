// A private state directory, and access to its audit log.
#pragma once

#include <sstream>

#include "functional/sandbox.h"

namespace caisson::test {

class AuditTest : public SandboxTest {
 protected:
  [[nodiscard]] RunOptions options() const {
    RunOptions how;
    how.env["CAISSON_HOME"] = home_.path();
    how.cwd = workspace.path();
    return how;
  }

  /// `caisson WORDS...` with that state directory.
  [[nodiscard]] RunOutput caisson(const std::vector<std::string>& words) const { return runCaisson(words, options()); }

  [[nodiscard]] RunOutput audit(std::vector<std::string> words) const {
    words.insert(words.begin(), "audit");
    return caisson(words);
  }

  [[nodiscard]] std::vector<nlohmann::json> events(std::vector<std::string> filter = {}) const {
    filter.insert(filter.begin(), {"show", "--json"});
    std::istringstream lines(audit(filter).out);
    std::vector<nlohmann::json> found;
    for (std::string line; std::getline(lines, line);) found.push_back(nlohmann::json::parse(line, nullptr, false));
    return found;
  }

  [[nodiscard]] std::string log() const { return readFile(home_ / "audit/00000001.jsonl"); }

  const TempDir home_;
};

}  // namespace caisson::test
