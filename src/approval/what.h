// What an owner can approve: exactly one thing each (SPEC A1, A2).
//
//   level:none                  no isolation at all
//   net:host   net:proxy        the host's network; the egress filter instead of no network
//   host:example.org:443        one host (pattern), with a port or without
//   path:/srv/data              one host path
//   commit:/srv/project         what sandboxes changed is written to this directory
//   tool:NAME                   what a declared tool asks for: a shell below `full`, network
//   project:SHA256              a project's policy file with exactly this content
//   policy:WORD                 what a policy asks for with `approvals.required`
//
// Texts are printable ASCII, so what a person reads is what is stored: control, bidirectional and zero-width characters
// cannot be in one.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace caisson::approval {

/// Nothing if `what` is one of the above and well formed; else an error that says what can be approved.
Result<void> checkWhat(std::string_view what);

/// What a person agrees to, as a sentence without its full stop.
std::string meaning(std::string_view what);

}  // namespace caisson::approval
