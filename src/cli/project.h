// A project's own policy: `caisson.toml` in the current directory or above it.
//
// A repository is untrusted, and so is the policy it brings: it is used only if the owner consented to exactly this
// content (`caisson policy trust`). When the file changes, the consent is gone. Such a policy can extend built-in
// profiles only, since no other file is covered by the consent; the owner's ceilings hold for it as for any other.
#pragma once

#include <optional>

#include "caisson/policy.h"
#include "cli/verb.h"

namespace caisson::cli {

/// The project's policy if there is one with consent; a file without consent is told about and not used.
Result<std::optional<Policy>> projectPolicy();

extern const Verb kPolicyTrust;

}  // namespace caisson::cli
