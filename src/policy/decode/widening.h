// Which keys of a policy allow more than the same keys of its base.
#pragma once

#include "policy/fields.h"

namespace caisson::policy {

/// Whether `field` allows more in `policy` than in `base`. If undecidable, returns true.
bool isWider(const Field& field, const Policy& base, const Policy& policy);

/// Every key that is wider in `policy` than in `base`.
std::vector<Widening> wideningsOver(const Policy& base, const Policy& policy);

/// Adds to Policy::widenings where `policy` is wider than `base`. A key that is recorded already keeps its original
/// `from` and gets the new `to`; no entry is removed.
void recordWidenings(const Policy& base, Policy& policy);

}  // namespace caisson::policy
