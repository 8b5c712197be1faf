// Which keys of a policy allow more than the same keys of the policy it was made from (P4).
#pragma once

#include "policy/fields.h"

namespace caisson::policy {

/// Whether `field` allows more in `policy` than in `base`. In doubt (a value that only a person can judge) it does.
bool isWider(const Field& field, const Policy& base, const Policy& policy);

/// Every key that is wider in `policy` than in `base`.
std::vector<Widening> wideningsOver(const Policy& base, const Policy& policy);

/// Notes on `policy` where it is wider than `base`; a key noted before keeps what it was first widened from.
void recordWidenings(const Policy& base, Policy& policy);

}  // namespace caisson::policy
