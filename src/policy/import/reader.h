// Reads a foreign document key by key; keys that no rule read are an error at the end.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "policy/document/document.h"

namespace caisson::policy {

class ImportReader {
 public:
  explicit ImportReader(const Document& document) : document_(document) {}

  /// Returns the value at "sandbox.bash.resources", or null, and marks it and everything below as known.
  const Node* take(std::string_view path);
  [[nodiscard]] bool has(std::string_view path) const { return find(path) != nullptr; }

  /// Typed values; nullopt if the document has none, or one of a wrong type, which finish() reports.
  std::optional<std::string> text(std::string_view path);
  std::optional<std::int64_t> integer(std::string_view path);  ///< not negative
  std::optional<double> number(std::string_view path);         ///< also from a text such as '1.0'
  std::optional<bool> boolean(std::string_view path);
  std::vector<std::string> texts(std::string_view path);  ///< numbers become texts; empty instead of nullopt
  /// Bytes: a number, or a text such as "512m", "10GB".
  std::optional<std::uint64_t> size(std::string_view path);
  /// Seconds: a whole number, or a text such as "300s".
  std::optional<double> seconds(std::string_view path);

  /// Call at the end: returns the first value of a wrong type, or the first key that no call read, as an error.
  Result<void> finish();

 private:
  /// As take(), without marking it as known.
  [[nodiscard]] const Node* find(std::string_view path) const;
  /// Records a value of a wrong type, if it is the first error.
  void refuse(std::string_view path, const Node& node, std::string_view expected);
  /// Records the first unread key of `table`, whose path is `prefix`, as the error.
  void refuseUnknown(const Node& table, const std::string& prefix);

  const Document& document_;
  std::set<std::string, std::less<>> known_;  ///< paths that were read
  std::optional<Error> error_;
};

}  // namespace caisson::policy
