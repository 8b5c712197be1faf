#include "caisson/policy.h"

#include "approval/owner.h"
#include "base/error.h"
#include "policy/decode/decode.h"
#include "policy/decode/validate.h"
#include "policy/describe/json.h"
#include "policy/fields.h"
#include "policy/profiles/profiles.h"

namespace caisson {

Result<Policy> Policy::profile(std::string_view name) {
  if (auto model = policy::builtin(name)) return Policy(std::move(*model));
  const std::string_view near = policy::nearest(name, policy::builtinNames());
  std::string known;
  for (const std::string_view other : policy::builtinNames()) known += (known.empty() ? "" : ", ") + std::string(other);
  return fail(plainError(Stage::policy, "profile", name, "there is no built-in profile of this name",
                         near.empty() ? "one of " + known : "did you mean \"" + std::string(near) + "\"?"));
}

Result<Policy> Policy::load(const std::string& path) {
  auto owner = approval::loadOwner();
  if (!owner) return fail(owner.error());
  // The owner's ceilings depend on the level, which is in the file: load without ceilings, then check.
  auto model = owner->empty() ? policy::load(path) : policy::load(path, approval::noCeilings());
  if (model && !owner->empty()) {
    if (auto checked = owner->check(*model); !checked) {
      return fail(checked.error());
    }
  }
  if (!model) return fail(model.error());
  return Policy(std::move(*model));
}

std::vector<std::string> Policy::profileNames() {
  const auto names = policy::builtinNames();
  return {names.begin(), names.end()};
}

std::string Policy::schema() { return policy::schema(); }

Result<void> Policy::set(std::string_view key, std::string_view value) { return policy::setKey(*model_, key, value); }

Result<void> Policy::append(std::string_view key, std::string_view value) {
  return policy::appendKey(*model_, key, value);
}

Policy::Policy(policy::Policy model) : model_(std::make_unique<policy::Policy>(std::move(model))) {}
Policy::Policy(const Policy& other) : model_(std::make_unique<policy::Policy>(*other.model_)) {}
Policy& Policy::operator=(const Policy& other) {
  if (this != &other) model_ = std::make_unique<policy::Policy>(*other.model_);
  return *this;
}
Policy::Policy(Policy&&) noexcept = default;
Policy& Policy::operator=(Policy&&) noexcept = default;
Policy::~Policy() = default;

}  // namespace caisson
