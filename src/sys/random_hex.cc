#include "sys/random_hex.h"

#include <sys/random.h>

#include "base/hex.h"

namespace caisson::sys {

std::optional<std::string> randomHex(std::size_t count) {
  std::string bytes(count, '\0');  // up to 256 bytes come whole, or not at all
  if (::getrandom(bytes.data(), count, 0) != static_cast<ssize_t>(count)) return std::nullopt;
  return hexText(bytes);
}

}  // namespace caisson::sys
