#include "sys/state_secret.h"

#include <cerrno>

#include "sys/random_hex.h"
#include "sys/root_dir.h"
#include "sys/state_home.h"

namespace caisson::sys {
namespace {

constexpr std::size_t kSecretDigits = 64;

}  // namespace

Result<std::string> stateSecret(const std::string& directory, std::string_view name) {
  auto opened = openStateDirectory(directory);
  if (!opened) return fail(opened.error());
  auto state = RootDir::adopt(std::move(*opened), {});
  if (!state) return fail(state.error());
  const std::string shown = directory + "/" + std::string(name);
  for (int attempt = 0;; ++attempt) {
    auto kept = state->readFile(name, 4096);
    if (kept && kept->size() == kSecretDigits) return kept;
    if (kept)
      return fail(plainError(Stage::state, "read", shown, "invalid secret", "remove the file; a new one is made"));
    if (kept.error().sys_errno != ENOENT || attempt > 0) return fail(kept.error());
    const auto digits = randomHex(kSecretDigits / 2);
    const auto suffix = randomHex(8);
    if (!digits || !suffix) return fail(sysError(Stage::state, "getrandom", shown, errno));
    // Under a temporary name first: another process may create the secret at the same time, and the first one is used.
    const std::string fresh = std::string(name) + "." + *suffix;
    if (auto written = state->writeFileAtomic(fresh, *digits, 0600); !written) return fail(written.error());
    if (auto renamed = state->rename(fresh, name, false); !renamed) {
      (void)state->remove(fresh);
      if (renamed.error().sys_errno != EEXIST) return fail(renamed.error());
    }
  }
}

}  // namespace caisson::sys
