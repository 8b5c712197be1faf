// Declared tools: a name, a command with placeholders, and the policy it runs under.
//
//   auto registry = tool::Registry::open();
//   registry->add({.name = "search", .command = {"grep", "-rn", "--", "{pattern}", "."}, .policy = policy});
//   auto tool = registry->find("search");
//
// One JSON file per tool in CAISSON_HOME/tools, private, written atomically. It contains the whole policy, so that a
// later version's profile or a changed policy file does not change the declared tool. The policy is checked against the
// owner's ceilings at each read.
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

/// At most 64 letters, digits, `-`, `_` and `.`, not beginning with `-` or `.`. Rejects interpreters' names, which
/// cannot be quarantine keys.
Result<void> checkName(std::string_view name);

/// Parses and checks a tool file; `name` is the name it is stored under. Applies the owner's configuration to the
/// policy (Owner::check). An error if the owner's ceilings are exceeded or the policy has network.credentials.
Result<Tool> readTool(std::string_view text, std::string_view name);
/// The content of the tool's file.
std::string writeTool(const Tool& tool);

class Registry {
 public:
  /// Opens CAISSON_HOME/tools; creates it if missing.
  static Result<Registry> open();

  /// Checks and stores a tool. An error if the name exists.
  Result<void> add(const Tool& tool) const;
  /// nullopt if there is no such tool; an error if the name is invalid, its file is damaged or its policy is no longer
  /// allowed.
  [[nodiscard]] Result<std::optional<Tool>> find(std::string_view name) const;
  /// Sorted. An unreadable tool does not fail the list: its error is in `damaged`.
  struct Listing {
    std::vector<Tool> tools;
    std::vector<Error> damaged;
  };
  /// All tools; an error only if the directory cannot be listed.
  [[nodiscard]] Result<Listing> list() const;
  /// Removes the tool's file. Returns whether it existed; an error for an invalid name. Approvals stay: see
  /// dropConsent().
  [[nodiscard]] Result<bool> remove(std::string_view name) const;

 private:
  explicit Registry(sys::RootDir directory) : directory_(std::move(directory)) {}
  sys::RootDir directory_;
};

}  // namespace caisson::tool
