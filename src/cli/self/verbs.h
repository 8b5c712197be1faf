// The verbs of `caisson self`.
#pragma once

#include "cli/verb.h"

namespace caisson::cli {

inline constexpr Option kSelfKey{
    .name = "key", .value = "FILE", .help = "Check the signature with this public key (PEM, Ed25519)."};
inline constexpr Option kSelfJson{.name = "json", .help = "Print one JSON object."};

extern const Verb kSelfVerify;

}  // namespace caisson::cli
