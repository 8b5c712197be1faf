// Verbs for people who write policies.
#pragma once

#include "cli/verb.h"

namespace caisson::cli {

extern const Verb kPolicyInit, kPolicyReference, kPolicyTest;

}  // namespace caisson::cli
