// What network.credentials mean for a plan: a trust file, variables that point programs at it, placeholders.
//
// Connections to a host with a credential are opened by the broker (src/broker), which shows the sandbox a certificate
// of an authority of its own. Programs inside have to know that authority; the file is filled in at the launch.
#pragma once

#include <map>
#include <string>

#include "plan/plan.h"

namespace caisson::plan {

/// The host's authorities and that of the sandbox's broker.
inline constexpr std::string_view kTrustFile = "/etc/caisson/trust.pem";

/// Whether the egress of this policy adds credentials.
bool addsCredentials(const policy::Network& network);

/// The steps that make the trust file, empty as yet, below the root that is being built.
void addTrustFile(const policy::Policy& policy, Plan& plan);

/// Refuses what would bring a secret into the sandbox, or what has no trust file.
Result<void> checkCredentials(const policy::Policy& policy, const HostFacts& host, const Plan& plan);

/// Takes the variables that hold secrets out of what the program gets.
void dropSecretVariables(const policy::Policy& policy, std::map<std::string, std::string>& environment);
/// Where the trust file is, in every dialect; and the placeholders.
void addCredentialVariables(const policy::Policy& policy, std::map<std::string, std::string>& environment);

/// Fills the trust file of a plan that has one.
void putTrust(Plan& plan, std::string certificates);

}  // namespace caisson::plan
