// A draft policy: keys with their reasons, and remarks for the reader.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cli/learn/learn.h"

namespace caisson::cli {

/// The beginning of every file that --learn writes.
inline constexpr std::string_view kLearnedMark = "# Proposed by `caisson run --learn`";

class Draft {
 public:
  /// Sets a key; later values for the same key are ignored.
  void set(const std::string& key, const std::string& value, const std::string& reason);
  /// Adds a comment; the same one only once.
  void remark(const std::string& words);
  /// A remark about something that was denied and for which nothing can be proposed.
  void refuse(const std::string& words);
  /// The proposal, as a policy that extends `base`. Call last.
  Proposal finish(const std::string& base);

 private:
  std::set<std::string> keys_, remarks_;
  std::string policy_;
  std::vector<std::string> diff_;
  std::vector<Lesson> lessons_;
  std::vector<std::string> refused_, told_;
};

/// A quoted TOML string. Its content may come from a payload, so it is passed through safeLine().
std::string tomlString(std::string_view text);
/// A TOML array of strings.
std::string listOf(const std::vector<std::string>& names);

// Parts of proposePolicy() in separate files.
void proposeFiles(Draft& draft, const policy::Policy& policy, const RunResult& result);
void proposeHosts(Draft& draft, const policy::Network& network, const RunResult& result);

}  // namespace caisson::cli
