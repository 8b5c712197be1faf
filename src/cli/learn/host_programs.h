// Learn mode: files that the host executes or reads as configuration. A payload that may write one of them gets its
// commands executed outside the sandbox, so a proposal contains none of them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "policy/rules/protected_files.h"

namespace caisson::cli {

class HostPrograms {
 public:
  /// Uses HOME, the home of the user database, and PATH.
  HostPrograms();

  /// Why a payload should not write the file, as the end of a sentence ("shells read it when they start"); nothing if
  /// no rule is known. Checks the name as given and the name behind links.
  [[nodiscard]] std::optional<std::string> whyNotFile(const std::string& path) const;
  /// The same for everything below a directory. Also lists what the directory has, within a budget.
  [[nodiscard]] std::optional<std::string> whyNotDirectory(const std::string& directory) const;

 private:
  [[nodiscard]] std::optional<std::string> whyNotName(const std::string& path) const;
  [[nodiscard]] std::optional<std::string> whyNotTree(const std::string& directory) const;

  policy::ProtectedFiles protected_;
  std::vector<std::string> homes_;
  std::vector<std::string> program_directories_;
};

}  // namespace caisson::cli
