// A project's policy: `caisson.toml` in the current directory or above it.
//
// A repository is untrusted, and so is its policy: it is used only if the owner consented to exactly this content in
// this place (`caisson policy trust`). A changed file needs a new consent, and until then commands are refused: the
// policy may deny more than the default. Such a policy can extend built-in profiles only, since the consent covers no
// other file; the owner's ceilings apply to it as to any other.
#pragma once

#include <optional>
#include <string>

#include "caisson/policy.h"
#include "cli/verb.h"

namespace caisson::cli {

struct ProjectLookup {
  std::string directory;  ///< where the search begins; empty: the current directory
  bool trust = false;     ///< the caller's flag is the consent, which is recorded
};

/// Returns the project's policy if the owner consented to it, and none if there is no file. For an unreadable file or
/// one without consent, prints a notice and returns none. An error if the owner consented to another content of the
/// file, or to a file further up that it would replace.
struct ProjectPolicy {
  Policy policy;
  std::string directory;  ///< of the file, canonical; paths below /workspace mean paths in it
};
Result<std::optional<ProjectPolicy>> projectPolicy(const ProjectLookup& lookup = {});

extern const Verb kPolicyTrust;

}  // namespace caisson::cli
