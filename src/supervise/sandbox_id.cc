#include "supervise/sandbox_id.h"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>

#include "sys/fd.h"

namespace caisson::supervise {

std::string newSandboxId() {
  unsigned char bytes[16];
  std::size_t have = 0;
  while (have < sizeof(bytes)) {
    const ssize_t got = ::getrandom(bytes + have, sizeof(bytes) - have, 0);
    if (got < 0 && errno != EINTR) break;
    if (got > 0) have += static_cast<std::size_t>(got);
  }
  if (have < sizeof(bytes)) {  // a filter around us blocks the call; the device is equivalent
    const sys::Fd device(::open("/dev/urandom", O_RDONLY | O_CLOEXEC));
    if (::read(device.get(), bytes, sizeof(bytes)) != static_cast<ssize_t>(sizeof(bytes))) return {};
  }
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string id = "cs-";
  for (const unsigned char byte : bytes) {
    id += kDigits[byte >> 4];
    id += kDigits[byte & 15];
  }
  return id;
}

}  // namespace caisson::supervise
