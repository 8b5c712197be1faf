#include "mcp/http/token.h"

#include <cerrno>
#include <cstdlib>

#include "mcp/log.h"
#include "mcp/protocol/secret.h"
#include "sys/root_dir.h"
#include "sys/state_home.h"

namespace caisson::mcp {
namespace {

constexpr std::size_t kLeastToken = 32;

}  // namespace

Result<std::string> bearerToken() {
  auto opened = sys::openStateDirectory("mcp");
  if (!opened) return std::unexpected(opened.error());
  auto directory = sys::RootDir::adopt(std::move(*opened), {});
  if (!directory) return std::unexpected(directory.error());
  writeLog(LogLevel::info, "clients need the bearer token", {{"file", sys::stateHome() + "/mcp/token"}});
  auto kept = directory->readFile("token", 4096);
  if (kept) {
    while (!kept->empty() && (kept->back() == '\n' || kept->back() == '\r')) kept->pop_back();
    if (kept->size() >= kLeastToken) return kept;
    return std::unexpected(Error{.stage = Stage::state,
                                 .call = "read",
                                 .object = "mcp/token",
                                 .reason = "the token is too short to be safe",
                                 .hint = "remove the file; a new one is made"});
  }
  if (kept.error().sys_errno != ENOENT) return std::unexpected(kept.error());
  const std::string token = randomDigits(64);
  if (auto written = directory->writeFileAtomic("token", token + "\n", 0600); !written)
    return std::unexpected(written.error());
  return token;
}

}  // namespace caisson::mcp
