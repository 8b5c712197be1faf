// Messages of a bus, cut anywhere: never read beyond their end, never taken for longer than they are.
#include <cstdlib>

#include "sys/dbus.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  bool broken = false;
  const auto message = caisson::sys::decodeMessage(bytes, broken);
  if (message && (message->size > size || broken)) std::abort();
  if (message && message->text.size() > size) std::abort();
  return 0;
}
