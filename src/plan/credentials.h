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

/// Whether the egress of this policy adds credentials.
bool addsCredentials(const policy::Network& network);

/// Adds the steps that create the trust file, still empty, below the new root.
void addTrustFile(const policy::Policy& policy, Plan& plan);

/// Rejects what would bring a secret into the sandbox, or a sandbox without a trust file.
Result<void> checkCredentials(const policy::Policy& policy, const HostFacts& host, const Plan& plan);

/// Removes the variables that hold secrets from the program's environment.
void dropSecretVariables(const policy::Policy& policy, std::map<std::string, std::string>& environment);
/// Adds the variables that name the trust file, and the placeholders.
void addCredentialVariables(const policy::Policy& policy, std::map<std::string, std::string>& environment);

/// Fills the trust file of a plan that has one.
void putTrust(Plan& plan, std::string certificates);

}  // namespace caisson::plan
