#include <algorithm>

#include "policy/import/builder.h"
#include "policy/units.h"

namespace caisson::policy {

namespace {

using NoteKind = ImportNote::Kind;

/// Imports the size of a mount such as "/tmp:size=100M,mode=1777".
void takeTmpfs(ImportBuilder& in, std::string_view key, const std::string& mount) {
  const std::size_t colon = mount.find(':');
  const std::size_t size = mount.find("size=");
  if (colon == std::string::npos || size == std::string::npos)
    return in.note(NoteKind::lossy, key, mount + " has no size");
  const std::size_t end = std::min(mount.find(',', size), mount.size());
  const auto bytes = parseSize(mount.substr(size + 5, end - size - 5));
  if (!bytes) return in.note(NoteKind::lossy, key, mount + " has a size that cannot be read");
  in.resizeTmpfs(key, mount.substr(0, colon), *bytes);
}

}  // namespace

void importAgent(ImportBuilder& in) {
  if (const auto mode = in.reader().text("sandbox.bash.defaultNetwork")) {
    if (*mode == "host") {
      in.note(NoteKind::unsafe, "sandbox.bash.defaultNetwork",
              "the host's network needs an owner's approval each time; \"none\" is used");
    } else {
      if (*mode == "proxy")
        in.note(NoteKind::widening, "sandbox.bash.defaultNetwork",
                "network access through the egress filter by default");
      in.set("sandbox.bash.defaultNetwork", "network.mode", *mode);
    }
  }
  in.takeHosts("sandbox.bash.proxyAllowlist", in.reader().texts("sandbox.bash.proxyAllowlist"));
  in.takeMemory("sandbox.bash.resources.memory");
  if (const auto milliseconds = in.reader().number("sandbox.bash.resources.timeout")) {
    in.set("sandbox.bash.resources.timeout", "resources.wall_seconds", formatNumber(*milliseconds / 1000));
  }
  in.lossy("sandbox.images", "images are chosen with filesystem.root; the host's system is used");
}

void importCompose(ImportBuilder& in) {
  in.lossy("version", "the version of another format");
  const std::string top = "services.sandbox.";
  in.lossy(top + "image", "images are chosen with filesystem.root; the host's system is used");
  if (const auto mode = in.reader().text(top + "network_mode"); mode && *mode != "none") {
    in.note(NoteKind::unsafe, top + "network_mode",
            "only \"none\" is taken over; name hosts and use the mode \"proxy\"");
  }
  if (const auto cpus = in.reader().number(top + "deploy.resources.limits.cpus"))
    in.set(top, "resources.cpus", formatNumber(*cpus));
  in.takeMemory(top + "deploy.resources.limits.memory");
  if (const auto bytes = in.reader().size(top + "deploy.resources.reservations.memory")) {
    in.set(top, "resources.memory_reservation", std::to_string(*bytes));
  }
  if (const auto count = in.reader().integer(top + "pids_limit"))
    in.set(top, "process.max_processes", std::to_string(*count));
  if (const auto soft = in.reader().integer(top + "ulimits.nofile.soft"))
    in.set(top, "resources.open_files", std::to_string(*soft));
  in.lossy(top + "ulimits.nofile.hard", "there is one limit of descriptors, the soft one");
  in.lossy(top + "ulimits.nproc", "processes are limited for the whole sandbox by process.max_processes");
  for (const std::string& option : in.reader().texts(top + "security_opt")) {
    if (option == "seccomp:unconfined") {
      in.note(NoteKind::unsafe, top + "security_opt",
              "\"seccomp:unconfined\" would let every system call through; the allowlist stays");
    } else if (option == "apparmor:unconfined" || option.starts_with("label:disable") ||
               option == "systempaths:unconfined") {
      in.note(NoteKind::unsafe, top + "security_opt", "\"" + option + "\": the protection stays");
    } else if (option.starts_with("apparmor:")) {
      in.set(top, "isolation.apparmor_profile", option.substr(9));
    } else if (option.starts_with("seccomp:/")) {
      in.set(top, "syscalls.oci_profile", option.substr(8));
      in.note(NoteKind::widening, top + "security_opt", option.substr(8) + " decides about system calls");
    } else if (option != "no-new-privileges:true") {
      in.note(NoteKind::lossy, top + "security_opt", option + " is not taken over");
    }
  }
  for (const std::string& mount : in.reader().texts(top + "tmpfs")) takeTmpfs(in, top + "tmpfs", mount);
  in.lossy(top + "volumes", "the workspace is the current directory; its mode stays overlay");
  for (const char* always : {"cap_drop", "read_only", "user", "working_dir", "ipc", "pid"}) {
    in.lossy(top + always,
             "always so here: no capabilities, a read-only root, user sandbox, private namespaces, /workspace");
  }
  if (const auto hostname = in.reader().text(top + "hostname")) in.set(top, "isolation.hostname", *hostname);
}

}  // namespace caisson::policy
