// Declared tools: a name, a command with places for values, and the policy it runs under (seed 002, 3.2).
//
//   auto registry = tool::Registry::open();
//   registry->add({.name = "search", .command = {"grep", "-rn", "--", "{pattern}", "."}, .policy = policy});
//   auto tool = registry->find("search");
//
// One JSON file per tool in CAISSON_HOME/tools, private, written atomically. The whole policy is in it, so that a later
// version's profile or a changed policy file does not change what was declared. It is checked against the owner's
// ceilings each time it is read.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "policy/model.h"
#include "sys/root_dir.h"

namespace caisson::tool {

struct Tool {
  std::string name;
  std::string description;
  std::vector<std::string> command;  ///< command_template.h
  policy::Policy policy;
};

/// Letters, digits, `-`, `_` and `.`; not an interpreter's name, which no quarantine could be keyed by.
Result<void> checkName(std::string_view name);

/// A tool from its file's text; `name` is the one it is kept under.
Result<Tool> readTool(std::string_view text, std::string_view name);
std::string writeTool(const Tool& tool);

class Registry {
 public:
  static Result<Registry> open();

  /// A name that is taken is refused.
  Result<void> add(const Tool& tool) const;
  [[nodiscard]] Result<std::optional<Tool>> find(std::string_view name) const;
  /// Sorted. One that can't be read is an error of the tool, not of the list: it is in `damaged`.
  struct Listing {
    std::vector<Tool> tools;
    std::vector<Error> damaged;
  };
  [[nodiscard]] Result<Listing> list() const;
  /// Whether it was there.
  [[nodiscard]] Result<bool> remove(std::string_view name) const;

 private:
  explicit Registry(sys::RootDir directory) : directory_(std::move(directory)) {}
  sys::RootDir directory_;
};

}  // namespace caisson::tool
