// A sandbox beside the fake internet of world.sh.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "support/environment.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace caisson::test {

/// Command prefix that removes the proxy variables.
inline constexpr const char* kDirect =
    "env -u http_proxy -u https_proxy -u all_proxy -u HTTP_PROXY -u HTTPS_PROXY -u ALL_PROXY ";

class NetworkTest : public testing::Test {
 protected:
  void SetUp() override;

  /// Runs `caisson run` with network mode proxy and these allowed hosts; `more` are additional lines of [network].
  [[nodiscard]] RunOutput run(const std::vector<std::string>& hosts, const std::vector<std::string>& command,
                              const std::string& more = {}, const std::vector<std::string>& options = {}) const;
  /// Same, for a bash or Python script.
  [[nodiscard]] RunOutput shell(const std::vector<std::string>& hosts, const std::string& script,
                                const std::string& more = {}) const;
  [[nodiscard]] RunOutput python(const std::vector<std::string>& hosts, const std::string& script,
                                 const std::string& more = {}) const;
  /// Same, with caisson-weakened, which removes a protection first. Never as root.
  [[nodiscard]] RunOutput weakened(const std::string& weakness, const std::vector<std::string>& hosts,
                                   const std::string& script, const std::string& more = {}) const;
  /// The policy file that run() uses.
  [[nodiscard]] std::string policyFor(const std::vector<std::string>& hosts, const std::string& more) const;
  /// The result as JSON.
  [[nodiscard]] nlohmann::json json(const std::vector<std::string>& hosts, const std::vector<std::string>& command,
                                    const std::string& more = {}) const;

  /// DNS queries that reached the outside so far, one "name type" per line.
  static std::string queries();
  static void forgetQueries();
  /// HTTP requests that reached the servers so far, one "port host path ..." per line.
  static std::string requestsSeen();
  /// What the clients of early.example.org sent.
  static std::string sentToEarly();
  /// How many connections the servers accepted on this port so far.
  static std::size_t connectionsSeen(std::uint16_t port);
  /// Local ports that closed connections to this port of the servers still occupy.
  static std::size_t lingeringPorts(std::uint16_t port);
  /// The certificate of the servers, readable inside.
  static std::string certificate();

  const TempDir files;
};

/// Whether a result contains a denial of this object.
bool denied(const nlohmann::json& result, const std::string& object, const std::string& operation = {});

bool contains(const std::string& text, const std::string& part);

}  // namespace caisson::test
