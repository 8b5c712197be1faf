// A sandbox beside the small internet of world.sh.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/environment.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace caisson::test {

/// Before a command line: without the variables that name the proxy.
inline constexpr const char* kDirect =
    "env -u http_proxy -u https_proxy -u all_proxy -u HTTP_PROXY -u HTTPS_PROXY -u ALL_PROXY ";

class NetworkTest : public testing::Test {
 protected:
  void SetUp() override;

  /// `caisson run` with network mode proxy and these permitted hosts; `more` are further lines of [network].
  [[nodiscard]] RunOutput run(const std::vector<std::string>& hosts, const std::vector<std::string>& command,
                              const std::string& more = {}, const std::vector<std::string>& options = {}) const;
  /// The same for a script of bash or of Python.
  [[nodiscard]] RunOutput shell(const std::vector<std::string>& hosts, const std::string& script,
                                const std::string& more = {}) const;
  [[nodiscard]] RunOutput python(const std::vector<std::string>& hosts, const std::string& script,
                                 const std::string& more = {}) const;
  /// The same by caisson-weakened, which takes a protection away first. Never as root.
  [[nodiscard]] RunOutput weakened(const std::string& weakness, const std::vector<std::string>& hosts,
                                   const std::string& script, const std::string& more = {}) const;
  /// The policy file that run() uses.
  [[nodiscard]] std::string policyFor(const std::vector<std::string>& hosts, const std::string& more) const;
  /// The result as data.
  [[nodiscard]] nlohmann::json json(const std::vector<std::string>& hosts, const std::vector<std::string>& command,
                                    const std::string& more = {}) const;

  /// Questions that reached the outside so far, one "name type" a line.
  static std::string queries();
  static void forgetQueries();
  /// HTTP requests that reached the servers so far, one "port host path ..." a line.
  static std::string requestsSeen();
  /// The certificate of the servers, readable inside.
  static std::string certificate();

  const TempDir files;
};

/// Whether a denial of this object is in a result.
bool denied(const nlohmann::json& result, const std::string& object, const std::string& operation = {});

bool contains(const std::string& text, const std::string& part);

}  // namespace caisson::test
