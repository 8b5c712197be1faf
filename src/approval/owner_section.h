// The keys of one section of the machine's or the user's configuration.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "policy/document/document.h"

namespace caisson::approval {

/// About a configuration file, or a place in it.
Error configError(std::string object, std::string_view reason, std::string_view hint = {});

/// Decodes the keys of one section, and rejects unknown keys.
class Section {
 public:
  Section(const policy::Document& document, const policy::Node& table, std::string name)
      : document_(document), table_(table), name_(std::move(name)) {}

  // Each leaves `place` as it is if the key is missing or its value is refused.
  void size(std::string_view key, std::optional<std::uint64_t>& place);
  /// A whole number above 0.
  void count(std::string_view key, std::optional<std::uint64_t>& place);
  void seconds(std::string_view key, std::optional<double>& place) { number(key, place, true); }
  void number(std::string_view key, std::optional<double>& place) { number(key, place, false); }
  void text(std::string_view key, std::optional<std::string>& place);
  /// Absolute paths; `~` is the home directory.
  void paths(std::string_view key, std::vector<std::string>& place);
  void hosts(std::string_view key, std::vector<std::string>& place);
  void texts(std::string_view key, std::vector<std::string>& place);
  void names(std::string_view key, std::string_view expected, bool (*known)(const std::string&),
             std::optional<std::vector<std::string>>& place);
  /// The absolute path of a program and its arguments.
  void command(std::string_view key, std::vector<std::string>& place);
  /// An address that begins with http:// or https://.
  void url(std::string_view key, std::string& place);
  /// A list of texts "LEFT=RIGHT".
  void pairs(std::string_view key, std::string_view expected,
             const std::function<bool(const std::string&, const std::string&)>& add);

  /// Returns the first error, including unknown keys.
  Result<void> finish();

 private:
  const policy::Node* take(std::string_view key);
  void refuse(std::string_view key, const policy::Node& node, std::string_view reason);
  void quantity(std::string_view key, std::optional<std::uint64_t>& place,
                std::expected<std::uint64_t, std::string> (*parse)(std::string_view), std::string_view expected);
  void number(std::string_view key, std::optional<double>& place, bool duration);

  const policy::Document& document_;
  const policy::Node& table_;
  std::string name_;
  std::vector<std::string> known_;
  std::optional<Error> error_;
};

}  // namespace caisson::approval
