// Plans network.credentials: a trust file, variables that name it, placeholders.
//
// The broker (src/broker) opens connections to a host with a credential, and presents to the sandbox a certificate that
// the broker's authority signed. Programs inside must trust that authority; the file is filled in at the launch.
#pragma once

#include <map>
#include <string>

#include "plan/plan.h"

namespace caisson::plan {

/// The host's authorities and that of the sandbox's broker.
inline constexpr std::string_view kTrustFile = "/etc/caisson/trust.pem";

/// Whether the policy has credentials and the egress that adds them (mode `proxy`).
bool addsCredentials(const policy::Network& network);

/// If addsCredentials(): adds the steps that create the trust file, still empty, and show it in place of the system's
/// CA bundles.
void addTrustFile(const policy::Policy& policy, Plan& plan);

/// An error if the sandbox would show a secret's file, or cannot have a trust file. Call after the mounts are planned.
Result<void> checkCredentials(const policy::Policy& policy, const HostFacts& host, const Plan& plan);

/// Removes the variables that network.credentials reads secrets from (`secret_env`): the program must never see them.
void dropSecretVariables(const policy::Policy& policy, std::map<std::string, std::string>& environment);
/// Call if addsCredentials(). Sets the variables that programs read a CA file from (SSL_CERT_FILE ...) to the trust
/// file, and each credential's `env` to its placeholder.
void addCredentialVariables(const policy::Policy& policy, std::map<std::string, std::string>& environment);

/// Sets the content of the trust file; nothing if the plan has none.
void putTrust(Plan& plan, std::string certificates);

}  // namespace caisson::plan
