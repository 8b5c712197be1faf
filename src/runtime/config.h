// The configuration of an OCI bundle: config.json of a plan.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"

namespace caisson::runtime {

// Paths in the root in which the runtime runs (outer_plan.h).
inline constexpr std::string_view kBundle = "/bundle";
inline constexpr std::string_view kRootfs = "/bundle/rootfs";
inline constexpr std::string_view kInit = "/bundle/init";
inline constexpr std::string_view kCovers = "/bundle/proc";  ///< files that are mounted over those of /proc
/// The same program in the container.
inline constexpr std::string_view kInitInside = "/.caisson-init";

/// The command of the container: pid 1's, or the payload's own.
struct ContainerProcess {
  std::vector<std::string> arguments;
  std::vector<std::string> environment;
  std::string working_directory = "/";
};

/// The files of /proc that the plan covers and that runtimes let a mount cover; others are masked.
std::vector<plan::CoverFile> coveredProc(const plan::Plan& plan);

/// config.json: process, root, mounts, namespaces, limits of processes and the system-call profile of the plan. The
/// network, cgroup and time namespaces are not listed: the container inherits those in which the runtime was started.
/// Limits are lowered to the caller's own, which an ordinary user cannot raise.
std::string configOf(const plan::Plan& plan, const ContainerProcess& process);

}  // namespace caisson::runtime
