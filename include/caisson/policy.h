// A policy: every setting of a sandbox that a user can choose. Start from a profile, then change single keys.
//
//   auto policy = caisson::Policy::profile("bash");
//   policy->set("resources.memory", "256M");
//   policy->set("filesystem.workspace.mode", "ro");
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "caisson/error.h"

namespace caisson {

namespace policy {
struct Policy;
}

class Policy {
 public:
  /// Returns a built-in profile ("bash", "shell", "strict", ...). Reads nothing from disk.
  static Result<Policy> profile(std::string_view name);
  /// Loads and checks a policy file, with the owner's ceilings. The extension selects the format (.toml, .json, .yaml,
  /// .yml).
  static Result<Policy> load(const std::string& path);
  /// The names that `profile` accepts.
  static std::vector<std::string> profileNames();
  /// The JSON Schema of policy files.
  static std::string schema();

  /// Sets one key ("resources.memory") from text ("256M"). On a list key, `set` makes the value the only element ("[]"
  /// empties the list) and `append` adds it; `append` on another key is an error. Unknown keys, wrong types and invalid
  /// values are errors that name the key; ceilings are checked by run().
  Result<void> set(std::string_view key, std::string_view value);
  Result<void> append(std::string_view key, std::string_view value);

  [[nodiscard]] const policy::Policy& model() const { return *model_; }
  policy::Policy& model() { return *model_; }

  explicit Policy(policy::Policy model);
  Policy(const Policy& other);
  Policy& operator=(const Policy& other);
  Policy(Policy&&) noexcept;
  Policy& operator=(Policy&&) noexcept;
  ~Policy();

 private:
  std::unique_ptr<policy::Policy> model_;
};

}  // namespace caisson
