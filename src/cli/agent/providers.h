// The model APIs that agents use, and how each takes its key. The key stays outside the sandbox: it becomes a
// credential of the policy, which the broker adds to requests.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "caisson/policy.h"
#include "cli/agent/settings.h"

namespace caisson::cli {

struct Provider {
  std::string_view name;      ///< as typed after --api: "anthropic"
  std::string_view host;      ///< of the API
  std::string_view key_env;   ///< the variable that holds the key
  std::string_view header;    ///< of requests
  std::string_view value;     ///< of the header; `{secret}` is the key
  std::string_view base_env;  ///< the variable that names another server; empty: there is none
  std::string_view also_env;  ///< a second variable that some agents read; it gets the placeholder too
};

/// An agent that is known by the name of its program.
struct KnownAgent {
  std::string_view program;
  std::span<const std::string_view> apis;         ///< provider names; those whose key is set are used
  std::span<const SettingsFile> settings;         ///< what configures it
  std::span<const std::string_view> credentials;  ///< paths below the home that are never copied, for the report
  std::span<const std::string_view> environment;  ///< K=V: no updates and no telemetry, whose hosts are not allowed
};

std::span<const Provider> providers();
std::span<const KnownAgent> knownAgents();
/// By the base name of the program; null if it is unknown.
const KnownAgent* findAgent(std::string_view program);

struct ApiChoice {
  std::vector<std::string> names;  ///< of --api; empty: those of the agent
  std::string ca_file;             ///< authorities that sign for the API's server; empty: the system's
};

/// Adds the API's host and the key's credential to the policy, and network mode `proxy` if it had none. Returns the
/// providers whose key is used. An error for an unknown name, a key named by --api that is not set, or a server
/// without TLS.
Result<std::vector<const Provider*>> addApis(Policy& policy, const KnownAgent* agent, const ApiChoice& choice);

}  // namespace caisson::cli
