// Writes nested JSON objects for keys such as "filesystem.workspace.mode", given in an order that keeps each
// table's keys together.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace caisson::policy {

class JsonTree {
 public:
  /// The beginning and the end of every table's object.
  struct Frame {
    std::string before;  ///< e.g. `"type": "object", "properties": {`
    std::string after;
  };

  explicit JsonTree(Frame frame = {}) : frame_(std::move(frame)) { text_ = "{" + frame_.before; }

  /// Adds `value`, which is already JSON, under the dotted `key`.
  void add(std::string_view key, std::string_view value);
  /// Returns the whole text; nothing can be added afterwards.
  std::string finish();

 private:
  /// Begins the object of a table inside the current one.
  void enter(std::string_view name);
  /// Ends the innermost object.
  void leave();
  /// Writes the comma, if needed, and the name of the next member.
  void startMember(std::string_view name);

  Frame frame_;
  std::string text_;
  std::vector<std::string> open_;  ///< names of the open tables, outermost first
  bool empty_ = true;              ///< whether the innermost table has no member yet
};

}  // namespace caisson::policy
