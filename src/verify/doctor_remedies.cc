#include "verify/doctor_remedies.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

#include "base/error.h"
#include "host/user_namespace_refusal.h"

namespace caisson::verify {
namespace {

using host::Engine, host::engineOf;

}  // namespace

bool insideContainer(const host::Probes& probes) { return !probes.obstacles.container_signs.empty(); }

std::string missingInKernel(const host::KernelVersion& kernel) {
  struct Feature {
    int major, minor;
    std::string_view what;
  };
  static constexpr std::array<Feature, 9> kFeatures{{
      {5, 6, "openat2 and pidfd_getfd"},
      {5, 7, "starting a process inside its cgroup"},
      {5, 9, "close_range"},
      {5, 11, "overlay in user namespaces"},
      {5, 12, "mount_setattr and idmapped mounts"},
      {5, 13, "Landlock"},
      {5, 14, "cgroup.kill"},
      {5, 19, "uninterrupted seccomp notifications and Landlock renames"},
      {6, 1, "the fixes to all of these that we test against"},
  }};
  std::string missing;
  for (const Feature& feature : kFeatures) {
    if (kernel.atLeast(feature.major, feature.minor)) continue;
    if (!missing.empty()) missing += ", ";
    missing.append(feature.what).append(" (").append(std::to_string(feature.major)).append(".");
    missing.append(std::to_string(feature.minor)).append(")");
  }
  return missing;
}

std::string containerRemedy(const host::Probes& probes) {
  constexpr std::string_view kWhy =
      "Start the container so that it may create namespaces and mount a fresh /proc; caisson still puts its own filter "
      "on every payload (docs/containers.md has a narrower seccomp profile):\n";
  constexpr std::string_view kOr =
      "\nOr, weaker, use the tier without namespaces:\n"
      "$ caisson run --allow-weaker landlock -- COMMAND";
  switch (engineOf(probes.obstacles.container_signs)) {
    case Engine::podman:
      return std::string(kWhy)
          .append("$ podman run --security-opt seccomp=unconfined --security-opt unmask=ALL IMAGE")
          .append(kOr);
    case Engine::kubernetes:
      return "In the container's securityContext set seccompProfile.type and appArmorProfile.type to Unconfined and "
             "procMount to Unmasked, in the pod hostUsers: false (docs/containers.md has a narrower seccomp profile)." +
             std::string(kOr);
    case Engine::containerd:
      return "Start the container without the engine's seccomp profile and with an open /proc (docs/containers.md has "
             "a "
             "narrower profile):\n"
             "$ nerdctl run --security-opt seccomp=unconfined --security-opt systempaths=unconfined IMAGE" +
             std::string(kOr);
    case Engine::nspawn:
      return "Start the container so that it may create user namespaces:\n"
             "$ systemd-nspawn --private-users=no --system-call-filter='@mount @privileged' -D DIRECTORY" +
             std::string(kOr);
    case Engine::lxc:
      return "Allow nested containers in its configuration:\n$ lxc config set NAME security.nesting true" +
             std::string(kOr);
    case Engine::caisson:
      return "A sandbox of caisson creates no namespaces inside; what it starts is confined by it already." +
             std::string(kOr);
    case Engine::none:
    case Engine::docker:
    case Engine::other: break;
  }
  return std::string(kWhy)
      .append(
          "$ docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined \\\n"
          "$     --security-opt systempaths=unconfined IMAGE")
      .append(kOr);
}

std::string procRemedy(const host::Probes& probes) {
  constexpr std::string_view kRung =
      "Or keep them covered, and let programs see the names and command lines of the processes here:\n"
      "$ caisson run --allow-weaker proc_bound -- COMMAND";
  switch (engineOf(probes.obstacles.container_signs)) {
    case Engine::podman:
      return "Start the container with an open /proc:\n$ podman run --security-opt unmask=ALL IMAGE\n" +
             std::string(kRung);
    case Engine::kubernetes:
      return "Set procMount: Unmasked in the container's securityContext, and hostUsers: false in the pod.\n" +
             std::string(kRung);
    case Engine::docker:
    case Engine::containerd:
      return "Start the container with an open /proc:\n$ docker run --security-opt systempaths=unconfined IMAGE\n" +
             std::string(kRung);
    default: break;
  }
  return "Unmount what covers parts of /proc here.\n" + std::string(kRung);
}

std::string volumeRemedy(const host::Probes& probes) {
  switch (engineOf(probes.obstacles.container_signs)) {
    case Engine::podman:
      return "Keep the state on a volume:\n"
             "$ podman run -v caisson:/var/lib/caisson -e CAISSON_HOME=/var/lib/caisson IMAGE";
    case Engine::kubernetes:
      return "Mount a volume (emptyDir, or a claim) and set CAISSON_HOME to a directory of it in the container's env.";
    case Engine::nspawn:
      return "Keep the state in a directory of the host:\n"
             "$ systemd-nspawn --bind=/var/lib/caisson --setenv=CAISSON_HOME=/var/lib/caisson -D DIRECTORY";
    default: break;
  }
  return "Keep the state on a volume:\n"
         "$ docker run -v caisson:/var/lib/caisson -e CAISSON_HOME=/var/lib/caisson IMAGE";
}

Diagnosis whyNamespacesFail(const host::Probes& probes, int sys_errno) {
  const host::Obstacles& obstacles = probes.obstacles;
  if (engineOf(obstacles.container_signs) == Engine::caisson) {  // its user.max_user_namespaces is the sandbox's
    return {"refused by the caisson sandbox around this program", containerRemedy(probes)};
  }
  if (const auto known = host::explainUserNamespaceRefusal(obstacles, probes.uid, sys_errno)) {
    return {known->cause, known->remedy};
  }
  const bool refused = sys_errno == EPERM || sys_errno == EACCES;
  if (refused && insideContainer(probes)) {
    return {obstacles.seccomp_mode == 2 ? "refused by the container's seccomp filter" : "refused inside the container",
            containerRemedy(probes)};
  }
  if (refused && obstacles.seccomp_mode == 2) {
    return {"refused by a seccomp filter on this process",
            "Run caisson outside the sandbox that set the filter; in a systemd unit remove RestrictNamespaces= and "
            "SystemCallFilter=."};
  }
  if (sys_errno == ENOSYS || sys_errno == EINVAL) {
    return {"not in this kernel",
            "Use a kernel built with CONFIG_USER_NS and the namespaces of CONFIG_NAMESPACES; every distribution kernel "
            "is. If user_namespace.enable=0 stands in /proc/cmdline, remove it."};
  }
  if (sys_errno == ENOSPC || sys_errno == EUSERS) {
    return {"the limit on namespaces is reached, or they are nested too deep",
            "End what holds them, or raise the limit:\n$ sudo sysctl -w user.max_user_namespaces=15000"};
  }
  return {"refused",
          "A security module, a chroot or a filter forbids it: look for the refusal in the kernel's log.\n"
          "$ sudo dmesg | tail"};
}

std::string mountRemedy(const host::Probes& probes, int sys_errno) {
  if (sys_errno == ENODEV) return "The file system is not in this kernel: load its module, or use a kernel with it.";
  if (insideContainer(probes)) return containerRemedy(probes);
  return whyNamespacesFail(probes, sys_errno).remedy;
}

std::string landlockRemedy(const host::Probes& probes) {
  if (probes.landlock.sys_errno == EPERM && insideContainer(probes)) return containerRemedy(probes);
  if (probes.landlock.sys_errno == ENOSYS) {
    return "Use a kernel built with CONFIG_SECURITY_LANDLOCK (Debian 12, Ubuntu 22.04, Fedora 35 and later have it).";
  }
  std::string modules = "landlock";
  for (const std::string& module : probes.obstacles.security_modules) modules.append(",").append(module);
  if (probes.obstacles.security_modules.empty()) modules += ",lockdown,yama,integrity,apparmor,bpf";
  return "It is built in but not switched on. Add lsm=" + modules +
         " to GRUB_CMDLINE_LINUX in /etc/default/grub, then:\n$ sudo update-grub && sudo reboot";
}

std::string cgroupRemedy(const host::Probes& probes) {
  const sys::CgroupProbe& cgroup = probes.cgroup;
  const auto refuses = [](const sys::CgroupHierarchy& one) { return one.make_child.sys_errno == EROFS; };
  const bool read_only = std::ranges::any_of(cgroup.hierarchies, refuses);
  if (insideContainer(probes) && (read_only || cgroup.layout == sys::CgroupLayout::none)) {
    if (engineOf(probes.obstacles.container_signs) == Engine::caisson) {
      return "The caisson sandbox around this program shows no cgroup. Limit that one: --memory, --processes, --cpus.";
    }
    // The engine mounts it read-only, or not at all: no command inside the container changes that.
    const bool podman = engineOf(probes.obstacles.container_signs) == Engine::podman;
    return std::string(
               "The container's cgroup cannot be written. Limit the container itself; caisson's own limits rest "
               "on rlimits and polling:\n$ ") +
           (podman ? "podman" : "docker") + " run --memory 4g --pids-limit 4096 --cpus 2 IMAGE";
  }
  if (cgroup.layout == sys::CgroupLayout::none) {
    return "Mount the unified hierarchy:\n$ sudo mount -t cgroup2 cgroup2 /sys/fs/cgroup";
  }
  if (cgroup.layout != sys::CgroupLayout::v2) {
    return "Give this shell a separate directory in each v1 hierarchy (until the next boot):\n"
           "$ for c in memory pids cpu; do d=/sys/fs/cgroup/$c/caisson-$UID; sudo mkdir -p $d;\n"
           "$     sudo chown -R $UID $d; echo $$ | sudo tee $d/cgroup.procs; done";
  }
  const sys::CgroupHierarchy& own = cgroup.hierarchies.front();
  if (own.make_child.ok() && own.procs_writable) {
    return "Not all controllers are delegated to you. Delegate them, then log in again:\n"
           "$ sudo mkdir -p /etc/systemd/system/user@.service.d\n"
           "$ printf '[Service]\\nDelegate=cpu cpuset io memory pids\\n' \\\n"
           "$     | sudo tee /etc/systemd/system/user@.service.d/caisson.conf\n"
           "$ sudo systemctl daemon-reload";
  }
  if (probes.systemd_user_manager) {
    return "Run caisson in a scope that systemd delegates to you (in a unit file: Delegate=yes):\n"
           "$ systemd-run --user --scope -p Delegate=yes caisson run -- COMMAND";
  }
  if (probes.systemd) {
    return "Start your systemd user manager, log in again, then run caisson in a delegated scope:\n"
           "$ sudo loginctl enable-linger $USER\n"
           "$ systemd-run --user --scope -p Delegate=yes caisson run -- COMMAND";
  }
  return "Ask the administrator to delegate a cgroup to this shell:\n"
         "$ d=/sys/fs/cgroup/caisson-$UID; sudo mkdir $d; sudo chown -R $UID $d\n"
         "$ echo $$ | sudo tee $d/cgroup.procs";
}

}  // namespace caisson::verify
