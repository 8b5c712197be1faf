// The plan that is kept beside a session: whatever its bytes are, reading ends, and what is read is written as the
// same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "session/plan_codec.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto read = caisson::session::decodePlan(bytes);
  if (!read) return 0;
  const std::string written = caisson::session::encodePlan(*read);
  const auto again = caisson::session::decodePlan(written);
  if (!again || caisson::session::encodePlan(*again) != written) std::abort();
  return 0;
}
