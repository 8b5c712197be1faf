// The policy of a new sandbox: what a caller of the API may choose.
//
// The owner may choose everything that the owner's ceilings allow. A token gets an empty workspace, full isolation, no
// network and nothing of the host beyond its programs; it may change limits within the ceilings and its quotas, the
// environment, and narrow everything else. More needs --allow-workspace or the owner's approval.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "caisson/policy.h"
#include "service/principal.h"

namespace caisson::service {

struct PolicyOptions {
  std::string profile;                             ///< empty: the default profile
  std::string policy_json;                         ///< a policy document in JSON; empty: none
  std::string image;                               ///< an image of the store as root; empty: the policy's
  std::string workspace;                           ///< host directory; empty: an empty workspace
  std::string memory, disk;                        ///< such as "512M"; empty: the policy's
  double cpus = 0;                                 ///< 0: the policy's
  double command_timeout = 0;                      ///< seconds; 0: the default
  std::map<std::string, std::string> environment;  ///< added
  std::vector<std::string> allowed_hosts;          ///< network mode proxy with these
  bool shared = false;  ///< several tokens use it (a template): nothing may be kept between them
};

struct ChosenPolicy {
  Policy policy;
  std::vector<std::string> needs_approval;  ///< what (approval/what.h) the owner must have approved for this caller
  double command_timeout = 120;
};

/// `allowed`: canonical directories of --allow-workspace. EACCES for what no approval can allow.
Result<ChosenPolicy> choosePolicy(const Principal& caller, const PolicyOptions& options,
                                  const std::vector<std::string>& allowed);

}  // namespace caisson::service
