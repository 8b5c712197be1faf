#include "mcp/protocol/secret.h"

#include <cstdlib>

#include "sys/random_hex.h"
#include "sys/state_secret.h"

namespace caisson::mcp {
std::string randomDigits(std::size_t count) {
  auto digits = sys::randomHex(count / 2);
  // Without random bytes every id could be forged; getrandom fails only early at boot.
  if (!digits) std::abort();
  return *std::move(digits);
}

Result<std::string> userSecret(std::string_view name) { return sys::stateSecret("mcp", name); }

}  // namespace caisson::mcp
