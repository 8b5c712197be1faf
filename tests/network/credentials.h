// Runs with a secret that the egress adds to requests. STATE/seen lists the requests that arrived at the servers.
#pragma once

#include "network/network.h"

namespace caisson::test {

inline constexpr const char* kSecret = "s3cr3t-8d1f-token";

class CredentialsTest : public NetworkTest {
 protected:
  void SetUp() override;

  /// Lines for policyFor(): a credential for `host` with the secret in the variable TOKEN, trusting `authority` of the
  /// fake internet; `more` are additional lines for it.
  static std::string credential(const std::string& host, const std::string& more = {},
                                const std::string& authority = "server");
  [[nodiscard]] RunOutput run(const std::string& network, const std::vector<std::string>& command,
                              const std::vector<std::string>& options = {}) const;
  [[nodiscard]] RunOutput shell(const std::string& network, const std::string& script,
                                const std::vector<std::string>& options = {}) const;
  [[nodiscard]] RunOutput caisson(const std::vector<std::string>& words) const { return runCaisson(words, how()); }
  /// With the secret in the caller's environment, and a private state directory.
  [[nodiscard]] RunOptions how() const;
  [[nodiscard]] std::string policy(const std::string& network) const;

  /// "443 example.org /path ['Bearer ...'] None", one request per line.
  static std::string seen();
  /// Whether a request for `path` arrived, with exactly the secret in its Authorization field.
  static bool arrivedWithSecret(const std::string& path);
  /// Whether one arrived without the secret.
  static bool arrivedWithout(const std::string& path);

  std::vector<std::string> hosts{"example.org", "www.example.org"};
  std::string home;
};

/// Processes with `word` in their command line and the parent `parent` (0: any).
std::vector<pid_t> processes(const std::string& word, pid_t parent);

}  // namespace caisson::test
