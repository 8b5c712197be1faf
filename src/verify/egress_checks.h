// What `--net proxy` allows and denies, tested with a small internet (fake_internet.h).
#pragma once

#include "verify/check.h"

namespace caisson::verify {

/// An allowed name resolves, another one does not.
Verdict namesResolve(Context& context);
Verdict httpWorks(Context& context);
Verdict httpsWorks(Context& context);
Verdict privateRangesAreBlocked(Context& context);
Verdict metadataIsBlocked(Context& context);
/// A name that resolves to another address after the check is connected at the checked one; a name with a private
/// address among its addresses is denied.
Verdict checkedAddressIsUsed(Context& context);
Verdict redirectsAreCheckedAgain(Context& context);

}  // namespace caisson::verify
