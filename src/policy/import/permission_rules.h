// Rules of Claude Code's settings ("permissions"), which older srt settings have, too.
#pragma once

#include <string_view>

#include "policy/import/builder.h"

namespace caisson::policy {

/// The rules of one list that have a counterpart. Paths are written as in srt's lists: "/x" is one of the host.
struct PermissionRules {
  ImportBuilder::Texts domains, reads, writes;
};

/// Reads the list `key`; rules without a counterpart are reported. `denied`: it is a list of denials.
PermissionRules takePermissionRules(ImportBuilder& in, std::string_view key, bool denied);

}  // namespace caisson::policy
