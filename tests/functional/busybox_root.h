// A small root file system: busybox with the libraries that it needs.
#pragma once

#include "support/temp_dir.h"

namespace caisson::test {

bool hasBusybox();

/// Puts busybox and links for its applets into /bin of the root. `merged`: /bin and /lib are links to /usr.
void installBusybox(const TempDir& root, bool merged = false);

}  // namespace caisson::test
