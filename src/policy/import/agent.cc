#include <algorithm>

#include "policy/decode/syntax.h"
#include "policy/import/builder.h"
#include "policy/import/shown_path.h"
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

constexpr std::string_view kFixedHere =
    "always so here: no capabilities, a read-only root, user sandbox, private namespaces, /workspace";

/// Options are written with a colon or an equals sign.
void takeSecurityOption(ImportBuilder& in, std::string_view key, const std::string& option) {
  const std::size_t sign = std::min(option.find_first_of("=:"), option.size());
  const std::string name = option.substr(0, sign);
  const std::string value = option.substr(std::min(sign + 1, option.size()));
  if (weakensSecurity(option)) {
    in.note(NoteKind::unsafe, key,
            name == "seccomp" ? "\"" + option + "\" would let every system call through; the allowlist stays"
                              : "\"" + option + "\": the protection stays");
  } else if (name == "apparmor" && !value.empty()) {
    in.set(key, "isolation.apparmor_profile", value);
    in.widen(key, "isolation.apparmor_profile", "the AppArmor profile " + value + " is used");
  } else if (name == "seccomp" && value.starts_with('/')) {
    in.set(key, "syscalls.oci_profile", value);
    in.widen(key, "syscalls.oci_profile", value + " decides about system calls");
  } else if (name != "no-new-privileges") {
    in.note(NoteKind::lossy, key, option + " is not taken over");
  }
}

/// Volumes are never shown; those that would open the host are reported as such.
void takeVolumes(ImportBuilder& in, const std::string& key) {
  const Node* volumes = in.reader().take(key);
  if (volumes == nullptr) return;
  in.note(NoteKind::lossy, key, "the workspace is the current directory; its mode stays overlay");
  for (const Node& item : volumes->items) {
    const Node* source = item.type == Node::Type::table ? item.find("source") : &item;
    if (source == nullptr || source->type != Node::Type::text) continue;
    const std::string path = source->text.substr(0, source->text.find(':'));
    const auto expanded = expandHome(path);
    if (!expanded || !expanded->starts_with('/')) continue;
    if (const ShownPath judged = judgeShownPath(*expanded, true); !judged.why_not.empty())
      in.note(NoteKind::unsafe, key, path + ": " + judged.why_not);
  }
}

/// What is fixed here: the document may ask for the same, or for what no sandbox gets.
void takeFixed(ImportBuilder& in, const std::string& key) {
  const Node* value = in.reader().take(key);
  if (value == nullptr) return;
  const bool open =
      value->type == Node::Type::boolean ? !value->boolean
      : key.ends_with("user")
          ? isRootUser(value->type == Node::Type::text ? value->text : std::to_string(value->integer))
          : value->text == "host" || value->text.starts_with("container:") || value->text.starts_with("service:");
  in.note(open ? NoteKind::unsafe : NoteKind::lossy, key, std::string(kFixedHere));
}

}  // namespace

void importAgent(ImportBuilder& in) {
  if (const auto mode = in.reader().text("sandbox.bash.defaultNetwork")) {
    if (*mode == "host") {
      in.note(NoteKind::unsafe, "sandbox.bash.defaultNetwork",
              "the host's network needs an owner's approval each time; \"none\" is used");
    } else {
      if (*mode == "proxy")
        in.widen("sandbox.bash.defaultNetwork", "network.mode", "network access through the egress filter by default");
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
    in.set(top + "deploy.resources.limits.cpus", "resources.cpus", formatNumber(*cpus));
  in.takeMemory(top + "deploy.resources.limits.memory");
  if (const auto bytes = in.reader().size(top + "deploy.resources.reservations.memory")) {
    in.set(top + "deploy.resources.reservations.memory", "resources.memory_reservation", std::to_string(*bytes));
  }
  if (const auto count = in.reader().integer(top + "pids_limit"))
    in.set(top + "pids_limit", "process.max_processes", std::to_string(*count));
  if (const auto soft = in.reader().integer(top + "ulimits.nofile.soft"))
    in.set(top + "ulimits.nofile.soft", "resources.open_files", std::to_string(*soft));
  in.lossy(top + "ulimits.nofile.hard", "there is one limit of descriptors, the soft one");
  in.lossy(top + "ulimits.nproc", "processes are limited for the whole sandbox by process.max_processes");
  for (const std::string& option : in.reader().texts(top + "security_opt"))
    takeSecurityOption(in, top + "security_opt", option);
  for (const std::string& mount : in.reader().texts(top + "tmpfs")) takeTmpfs(in, top + "tmpfs", mount);
  takeVolumes(in, top + "volumes");
  for (const char* always : {"cap_drop", "working_dir"}) in.lossy(top + always, std::string(kFixedHere));
  for (const char* name : {"user", "ipc", "pid", "read_only"}) takeFixed(in, top + name);
  if (const auto hostname = in.reader().text(top + "hostname"))
    in.set(top + "hostname", "isolation.hostname", *hostname);
}

}  // namespace caisson::policy
