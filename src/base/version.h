// The version of this caisson, and the error for state of a version that it does not understand.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/error.h"

namespace caisson {

/// "0.1.0"
std::string_view ownVersion();

/// An error about state or a running session of a version of caisson that this one does not understand.
Error otherVersionError(std::string_view call, std::string_view object, std::string_view reason, std::string_view hint);
bool isOtherVersion(const Error& error);

/// A format number as it was found, and those that this program reads.
struct FormatVersion {
  std::int64_t found = 0;
  std::int64_t oldest = 1, newest = 1;
  std::string_view written_by = {};  ///< the version of caisson that wrote it; empty: not known

  [[nodiscard]] bool isKnown() const { return found >= oldest && found <= newest; }
};

/// The error (isOtherVersion) for a format that is not known. `hint`: how to keep what the file holds.
Error unknownFormat(std::string_view object, const FormatVersion& format, std::string_view hint);

}  // namespace caisson
