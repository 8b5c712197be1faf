// What this program is.
#pragma once

#include <string>
#include <string_view>

namespace caisson::cli {

/// The commit that this was built from, with "+changes" if files differed from it; "unknown" without git. Generated at
/// build time (packaging/dist/commit.sh).
extern const std::string_view kCommit;

/// For example "0.2.0".
std::string_view programVersion();
/// "caisson VERSION" and a line break.
std::string versionLine();

}  // namespace caisson::cli
