// A policy: everything a person may decide about a sandbox. Start from a profile, narrow or widen key by key.
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
  /// A built-in profile ("bash", "shell", "strict", ...). Nothing is read from disk.
  static Result<Policy> profile(std::string_view name);
  /// A file; its format follows the extension (.toml, .json, .yaml, .yml).
  static Result<Policy> load(const std::string& path);
  /// The names `profile` takes.
  static std::vector<std::string> profileNames();
  /// The JSON Schema of policy files.
  static std::string schema();

  /// Sets one key ("resources.memory") from text ("256M"). Lists take the value as their only element;
  /// `append` adds one. Unknown keys, wrong types and impossible values are errors that name the key.
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
