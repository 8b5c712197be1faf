#include "mcp/protocol/secret.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>

#include "base/sha256.h"
#include "sys/random_hex.h"
#include "sys/root_dir.h"
#include "sys/state_home.h"

namespace caisson::mcp {
namespace {

constexpr std::size_t kDigits = 64;

}  // namespace

std::string randomDigits(std::size_t count) {
  auto digits = sys::randomHex(count / 2);
  // Without random bytes every id could be forged; getrandom fails only early at boot.
  if (!digits) std::abort();
  return *std::move(digits);
}

Result<std::string> userSecret(std::string_view name) {
  auto opened = sys::openStateDirectory("mcp");
  if (!opened) return std::unexpected(opened.error());
  auto directory = sys::RootDir::adopt(std::move(*opened), {});
  if (!directory) return std::unexpected(directory.error());
  for (int attempt = 0;; ++attempt) {
    auto kept = directory->readFile(name, 4096);
    if (kept && kept->size() == kDigits) return kept;
    if (kept || attempt > 0)
      return std::unexpected(Error{.stage = Stage::state,
                                   .call = "read",
                                   .object = "mcp/" + std::string(name),
                                   .sys_errno = kept ? 0 : kept.error().sys_errno,
                                   .reason = kept ? "invalid secret" : "",
                                   .hint = "remove the file; a new one is made"});
    if (kept.error().sys_errno != ENOENT) return std::unexpected(kept.error());
    // Under a temporary name first: another server may create the secret at the same time, and the first one is used.
    const std::string fresh = std::string(name) + "." + randomDigits(16);
    if (auto written = directory->writeFileAtomic(fresh, randomDigits(kDigits), 0600); !written)
      return std::unexpected(written.error());
    if (auto renamed = directory->rename(fresh, name, false); !renamed) {
      (void)directory->remove(fresh);
      if (renamed.error().sys_errno != EEXIST) return std::unexpected(renamed.error());
    }
  }
}

std::string hmacSha256(std::string_view key, std::string_view text) {
  std::array<std::uint8_t, 64> inner{};
  std::array<std::uint8_t, 64> outer{};
  for (std::size_t at = 0; at < inner.size(); ++at) {
    const auto byte = static_cast<std::uint8_t>(at < key.size() ? key[at] : 0);
    inner[at] = byte ^ 0x36U;
    outer[at] = byte ^ 0x5CU;
  }
  const Digest first = Sha256().add(inner.data(), inner.size()).add(text).finish();
  return hex(Sha256().add(outer.data(), outer.size()).add(first).finish());
}

bool sameSecret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (std::size_t at = 0; at < a.size(); ++at) difference |= static_cast<unsigned char>(a[at] ^ b[at]);
  return difference == 0;
}

}  // namespace caisson::mcp
