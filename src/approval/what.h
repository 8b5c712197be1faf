// What an owner can approve: each text names exactly one thing.
//
//   level:none                  no isolation at all
//   level:process               less isolation than level full, chosen by a policy file or a model
//   tier:landlock               isolation without namespaces, chosen by a policy file
//   weaker:proc_bound           a weaker rung where the host refuses the usual way, chosen by a policy file
//   audit:off                   a policy file switches the audit log off
//   user:root                   root inside the sandbox, chosen by a model
//   image:debian:12             one image as the root of sandboxes
//   profile:dev                 a profile that allows more than the owner's default, chosen by a model
//   net:host   net:proxy        the host's network; the egress filter instead of no network
//   host:example.org:443        one host (pattern), with a port or without
//   path:/srv/data              one host path
//   commit:/srv/project         writing the changes of sandboxes to this directory
//   tool:NAME                   the requirements of a declared tool: a shell below `full`, network
//   project:SHA256              a project's policy file: its path and exactly this content
//   policy:WORD                 what a policy requires with `approvals.required`
//
// Texts are printable ASCII, so a user reads exactly what is stored: control, bidirectional and zero-width characters
// are rejected.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace caisson::policy {
struct Policy;
}

namespace caisson::approval {

/// All of the above, for help texts and errors.
inline constexpr std::string_view kApprovable =
    "level:none, level:process, tier:landlock, weaker:RUNG, net:host, net:proxy, audit:off, user:root, image:REF, "
    "profile:NAME, "
    "host:NAME[:PORT], path:/PATH, commit:/PATH, tool:NAME, project:SHA256 or policy:WORD";

/// Succeeds if `what` is one of the above and well formed; the error lists what can be approved.
Result<void> checkWhat(std::string_view what);

/// What the user agrees to with a valid `what`, as a sentence without a full stop.
std::string meaning(std::string_view what);

/// Which of level:process, tier:landlock, weaker:RUNG and audit:off `policy` uses: each lowers the protection, which a
/// file or a model cannot decide alone.
std::vector<std::string> loweredProtection(const policy::Policy& policy);

}  // namespace caisson::approval
