// What `--net proxy` allows and denies, tested with a small internet (small_internet.h).
#pragma once

#include "verify/check.h"

namespace caisson::verify {

Verdict namesResolve(Context& context);
Verdict httpWorks(Context& context);
Verdict httpsWorks(Context& context);
Verdict privateRangesAreBlocked(Context& context);
Verdict metadataIsBlocked(Context& context);
Verdict checkedAddressIsUsed(Context& context);
Verdict redirectsAreCheckedAgain(Context& context);

}  // namespace caisson::verify
