#include "base/version.h"

#include <cerrno>

namespace caisson {

std::string_view ownVersion() { return CAISSON_VERSION; }

Error otherVersionError(std::string_view call, std::string_view object, std::string_view reason,
                        std::string_view hint) {
  Error error = sysError(Stage::state, call, object, EPROTONOSUPPORT, hint);
  error.reason = reason;
  return error;
}

bool isOtherVersion(const Error& error) { return error.sys_errno == EPROTONOSUPPORT; }

Error unknownFormat(std::string_view object, const FormatVersion& format, std::string_view hint) {
  std::string writer = format.found > format.newest ? "a newer caisson" : "an older caisson";
  if (!format.written_by.empty()) writer = "caisson " + std::string(format.written_by);
  std::string known = "format " + std::to_string(format.newest);
  if (format.oldest != format.newest)
    known = "formats " + std::to_string(format.oldest) + " to " + std::to_string(format.newest);
  return otherVersionError("read", object,
                           "it has format " + std::to_string(format.found) + ", written by " + writer +
                               "; this caisson (" + std::string(ownVersion()) + ") reads " + known,
                           hint);
}

}  // namespace caisson
