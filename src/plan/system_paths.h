// The parts of the host's root that a sandbox may see. A table, so that it is easy to review.
#pragma once

#include <span>
#include <string_view>

#include "plan/plan.h"

namespace caisson::plan {

struct SystemPath {
  std::string_view path;
  SourceType type;
};

/// Directories of programs and libraries, read-only. On merged-/usr systems all but the first are links.
inline constexpr std::string_view kSystemDirectories[] = {"/usr",   "/bin",   "/sbin",  "/lib",
                                                          "/lib32", "/lib64", "/libx32"};

/// Files and directories of /etc that programs need to start and that reveal nothing about this host or its users.
std::span<const SystemPath> etcPaths();

/// Files and directories of /etc that the landlock tier shows beside etcPaths(), since it cannot hide that they exist:
/// they describe the system's release, its shells and users, and hold no secrets. Of those that are generated elsewhere
/// it leaves out the ones about the network: hosts, hostname, resolv.conf.
std::span<const std::string_view> hostEtcPaths();

/// Files of /etc that are generated for the sandbox.
inline constexpr std::string_view kGeneratedEtc[] = {"/etc/passwd",      "/etc/group",         "/etc/hosts",
                                                     "/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/hostname"};

/// Links of /etc that are copied as links.
inline constexpr std::string_view kEtcLinks[] = {"/etc/localtime", "/etc/os-release"};

inline constexpr std::string_view kDevices[] = {"/dev/null",   "/dev/zero",    "/dev/full",
                                                "/dev/random", "/dev/urandom", "/dev/tty"};

}  // namespace caisson::plan
