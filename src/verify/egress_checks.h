// What `--net proxy` allows and denies, tested with a small internet (small_internet.h).
#pragma once

#include "verify/check.h"

namespace caisson::verify {

Verdict namesResolve(Context& context);
Verdict httpWorks(Context& context);
Verdict httpsWorks(Context& context);
Verdict privateRangesAreBlocked(Context& context);   // INV-S3
Verdict metadataIsBlocked(Context& context);         // INV-S4
Verdict checkedAddressIsUsed(Context& context);      // INV-S8
Verdict redirectsAreCheckedAgain(Context& context);  // INV-S9

}  // namespace caisson::verify
