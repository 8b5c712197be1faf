// Common obstacles, recognised by the probe results, each with the commands that remove it. Pure.
#pragma once

#include <string>

#include "host/probe.h"

namespace caisson::verify {

/// The oldest supported kernel.
inline constexpr int kMinimumMajor = 6;
inline constexpr int kMinimumMinor = 1;

/// What a kernel before 6.1 lacks, with versions: "mount_setattr (5.12), Landlock (5.13), ...".
std::string missingInKernel(const host::KernelVersion& kernel);

/// Why a namespace (or its id map) failed, in one line, and what to do.
struct Diagnosis {
  std::string cause;
  std::string remedy;
};
Diagnosis whyNamespacesFail(const host::Probes& probes, int sys_errno);

std::string mountRemedy(const host::Probes& probes, int sys_errno);
std::string landlockRemedy(const host::Probes& probes);
std::string cgroupRemedy(const host::Probes& probes);
/// How to start the container that caisson runs in: flags for Docker or Podman, settings for Kubernetes. Call it only
/// if insideContainer().
std::string containerRemedy(const host::Probes& probes);
/// How to open the covered parts of /proc, or to do without.
std::string procRemedy(const host::Probes& probes);
/// How to give the container a volume for the state.
std::string volumeRemedy(const host::Probes& probes);

bool insideContainer(const host::Probes& probes);

}  // namespace caisson::verify
