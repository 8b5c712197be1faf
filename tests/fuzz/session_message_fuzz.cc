// Messages between clients and the supervisor of a session: whatever the bytes are, decoding ends, and what was decoded
// is encoded as the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "session/protocol.h"

namespace {

template <class T>
void check(std::string_view bytes) {
  const auto decoded = caisson::session::codec::decode<T>(bytes);
  if (!decoded) return;
  const std::string encoded = caisson::session::codec::encode(*decoded);
  const auto again = caisson::session::codec::decode<T>(encoded);
  if (!again || caisson::session::codec::encode(*again) != encoded) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check<caisson::session::CommandOptions>(bytes);
  check<caisson::session::Welcome>(bytes);
  check<caisson::session::PortOptions>(bytes);
  check<caisson::RunResult>(bytes);
  check<caisson::Error>(bytes);
  return 0;
}
