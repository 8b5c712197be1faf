// Directories in which a transaction makes and removes names, compared before and after it: what the host does in one
// during the transaction is not the session's work.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "session/commit/journal.h"
#include "session/commit/real_tree.h"

namespace caisson::session {

/// A digest of the owner, the access lists and the attributes of a directory; empty if they cannot be read.
std::string attributesDigest(RealTree& tree, const std::string& directory);
/// The same of an open directory; O_PATH is enough.
std::string attributesDigest(int directory, const std::string& path);

class DirectoryWatch {
 public:
  DirectoryWatch(RealTree& tree, const std::vector<Action>& actions);

  /// Before the transaction. Nothing if there is no such directory, or if it changed since `changed_ns`, when it was
  /// examined; 0: not compared.
  [[nodiscard]] std::optional<KnownDirectory> begin(const std::string& directory, std::int64_t changed_ns) const;

  /// Whether the name of an action is as the transaction left it.
  using IsLeft = std::function<bool(std::size_t index)>;
  /// The directory as it is now, if only the transaction changed it.
  [[nodiscard]] std::optional<sys::FileInfo> end(const KnownDirectory& directory, const IsLeft& is_left) const;
  /// The same for a directory that the transaction made.
  [[nodiscard]] std::optional<sys::FileInfo> endMade(const std::string& directory, const IsLeft& is_left) const;

 private:
  /// The action that changes the permissions of a directory, if there is one.
  [[nodiscard]] std::optional<std::size_t> modeChangeOf(const std::string& directory) const;
  [[nodiscard]] bool areLeft(const std::string& directory, const IsLeft& is_left) const;
  /// A digest of the names that are not the transaction's, and of the attributes. Nothing if it cannot be read.
  [[nodiscard]] std::optional<std::string> othersIn(const std::string& directory) const;

  RealTree& tree_;
  const std::vector<Action>& actions_;
  std::unordered_map<std::string, std::vector<std::size_t>> in_;  ///< by directory
  std::unordered_map<std::string, std::size_t> changed_modes_;    ///< by directory: the action that changes its mode
};

}  // namespace caisson::session
