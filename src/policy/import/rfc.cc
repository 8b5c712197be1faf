#include <algorithm>
#include <array>
#include <set>

#include "policy/decode/syntax.h"
#include "policy/import/builder.h"
#include "policy/import/shown_path.h"
#include "policy/rules/secret_files.h"
#include "policy/units.h"

namespace caisson::policy {

namespace {

using NoteKind = ImportNote::Kind;
using Texts = ImportBuilder::Texts;

/// Judges a path as it is named: "~" is the home of this user.
ShownPath judgeNamedPath(const std::string& named, bool writable) {
  return judgeShownPath(expandHome(named).value_or(named), writable);
}

/// Why an imported policy may not show a path: it is a whole home or above one, or usually holds keys. "" if it may.
std::string whyNotShown(const std::string& named) {
  const bool in_own = named.starts_with('~');
  if (in_own && named.find("..") != std::string::npos) return "it leaves the home directory";
  const std::string path = in_own ? "/home/~" + normalPath("/" + named.substr(1)) : normalPath(named);
  const bool in_homes = path.starts_with("/home/");
  const std::size_t end = in_homes ? path.find('/', std::size("/home/") - 1) : std::string::npos;
  const std::string home = isWithin(path, "/root") ? "/root" : in_homes ? path.substr(0, end) : std::string();
  if (path == "/" || path == "/home" || path == home || path == "/home/~/")
    return "a whole home directory is never shown by an import";
  // The home of this user may lie elsewhere. Paths that no policy can show are reported as such.
  const std::string on_host = normalPath(expandHome(named).value_or(named));
  if (on_host.starts_with('/') && !findFlaw(Syntax::shown_path, on_host)) {
    if (const ShownPath judged = judgeShownPath(on_host, false); !judged.why_not.empty()) return judged.why_not;
  }
  for (const SecretPattern& secret : homeSecrets()) {
    if (!home.empty() && isWithin(path, home + "/" + std::string(secret.pattern)))
      return "it usually holds keys or passwords";
  }
  return "";
}

void readFilesystem(ImportBuilder& in) {
  in.lossy("filesystem.rootPath", "the sandbox builds its root in memory");
  for (const std::string& path : in.reader().texts("filesystem.readOnlyPaths")) {
    const std::string normal = normalPath(path);
    const bool system = std::ranges::any_of(std::array{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64"},
                                            [&](const char* top) { return isWithin(normal, top); });
    if (system) {
      in.note(NoteKind::lossy, "filesystem.readOnlyPaths", path + " is always shown, read-only");
    } else if (const std::string why = whyNotShown(path); !why.empty()) {
      in.note(NoteKind::unsafe, "filesystem.readOnlyPaths", path + ": " + why);
    } else {
      in.append("filesystem.readOnlyPaths", "filesystem.read_only",
                pathToShow(path, judgeNamedPath(path, false), in.workspace()));
      in.widen("filesystem.readOnlyPaths", "filesystem.read_only",
               withPlace(path, judgeNamedPath(path, false)) + " of the host is shown");
    }
  }
  for (const std::string& path : in.reader().texts("filesystem.readWritePaths")) {
    if (path == "/tmp" || path == "/var/tmp") {
      in.note(NoteKind::lossy, "filesystem.readWritePaths", path + " is the sandbox's own, in memory");
    } else if (const std::string why = whyNotShown(path); !why.empty()) {
      in.note(NoteKind::unsafe, "filesystem.readWritePaths", path + ": " + why);
    } else if (judgeNamedPath(path, true).only_readable) {
      in.append("filesystem.readWritePaths", "filesystem.read_only",
                pathToShow(path, judgeNamedPath(path, true), in.workspace()));
      in.note(NoteKind::unsafe, "filesystem.readWritePaths",
              path + " is not writable: programs of the host use what is in it");
      in.widen("filesystem.readWritePaths", "filesystem.read_only",
               withPlace(path, judgeNamedPath(path, true)) + " of the host is shown");
    } else {
      in.append("filesystem.readWritePaths", "filesystem.read_write",
                pathToShow(path, judgeNamedPath(path, true), in.workspace()));
      in.widen("filesystem.readWritePaths", "filesystem.read_write",
               withPlace(path, judgeNamedPath(path, true)) + " of the host is changed directly");
    }
  }
  for (const std::string& path : in.reader().texts("filesystem.deniedPaths")) {
    if (path == "/sys") {
      in.note(NoteKind::lossy, "filesystem.deniedPaths", path + " is never in the sandbox");
    } else if (path == "/proc" || path == "/dev") {
      in.note(NoteKind::lossy, "filesystem.deniedPaths",
              path + " is the sandbox's own, with the host's hidden; programs cannot start without");
    } else {
      in.append("filesystem.deniedPaths", "filesystem.denied", path);
    }
  }
  if (const auto bytes = in.reader().size("filesystem.maxFileSize"))
    in.set("filesystem.maxFileSize", "filesystem.max_file_size", std::to_string(*bytes));
  if (const auto bytes = in.reader().size("filesystem.maxTotalSize"))
    in.set("filesystem.maxTotalSize", "filesystem.max_total_size", std::to_string(*bytes));
}

void readProcess(ImportBuilder& in) {
  if (const auto count = in.reader().integer("process.maxProcesses"))
    in.set("process.maxProcesses", "process.max_processes", std::to_string(*count));
  if (const auto fork = in.reader().boolean("process.allowFork"))
    in.set("process.allowFork", "process.allow_fork", *fork ? "true" : "false");
  if (const auto exec = in.reader().boolean("process.allowExec"))
    in.set("process.allowExec", "process.allow_exec", *exec ? "true" : "false");
  const Texts programs = in.reader().texts("process.allowedExecutables");
  if (!programs.empty()) {
    in.setList("process.allowedExecutables", "process.allowed_executables", programs);
  } else if (in.reader().has("process.allowedExecutables")) {
    in.note(NoteKind::lossy, "process.allowedExecutables",
            "an empty list means any program there; here it would mean none, so it is left out");
  }
}

void readResources(ImportBuilder& in) {
  if (const auto milliseconds = in.reader().number("resources.maxCPU"))
    in.set("resources.maxCPU", "resources.cpu_seconds", formatNumber(*milliseconds / 1000));
  in.takeMemory("resources.maxMemory");
  if (const auto count = in.reader().integer("resources.maxFileDescriptors"))
    in.set("resources.maxFileDescriptors", "resources.open_files", std::to_string(*count));
  if (const auto count = in.reader().integer("resources.maxThreads"))
    in.set("resources.maxThreads", "resources.threads", std::to_string(*count));
}

void readSyscalls(ImportBuilder& in) {
  const auto mode = in.reader().text("syscalls.mode");
  const Texts names = in.reader().texts("syscalls.syscalls");
  if (!mode) {
    if (!names.empty()) in.refuse("syscalls.mode", "expected WHITELIST or BLACKLIST beside a list of calls");
    return;
  }
  if (*mode != "WHITELIST" && *mode != "BLACKLIST")
    return in.refuse("syscalls.mode", "expected WHITELIST or BLACKLIST");
  if (*mode == "BLACKLIST") {
    in.widen("syscalls.mode", "syscalls.mode", "all calls but the listed ones, and those that no policy allows");
    in.markReported("syscalls.syscalls", "syscalls.names");
    in.set("syscalls.mode", "syscalls.mode", "denylist");
    return in.setList("syscalls.syscalls", "syscalls.names", names);
  }
  // The profile's list is the minimum with which a program starts; the document's calls are added to it.
  const auto& own = in.policy().syscalls.names;
  std::size_t added = own ? own->size() : 0;
  std::set<std::string> known = own ? std::set(own->begin(), own->end()) : std::set<std::string>();
  std::string more;
  for (const std::string& name : names) {
    if (!known.insert(name).second) {
      --added;
    } else {
      in.append("syscalls.syscalls", "syscalls.names", name);
      more += (more.empty() ? "" : ", ") + name;
    }
  }
  in.widen("syscalls.syscalls", "syscalls.names",
           std::to_string(added) + " calls are added, without which no program starts and ends");
  if (!more.empty()) in.widen("syscalls.syscalls", "syscalls.names", "beyond those of the profile: " + more);
}

void readNetwork(ImportBuilder& in) {
  const bool allowed = in.reader().boolean("network.allowNetwork").value_or(false);
  if (allowed) {
    in.set("network.allowNetwork", "network.mode", "proxy");
    in.widen("network.allowNetwork", "network.mode", "network access through the egress filter");
  }
  const Texts hosts = in.reader().texts("network.allowedHosts");
  const Texts ports = in.reader().texts("network.allowedPorts");
  in.takeHosts("network.allowedHosts", hosts);
  if (in.reader().has("network.allowedPorts")) in.setList("network.allowedPorts", "network.allowed_ports", ports);
  if (allowed && hosts.empty())
    in.note(NoteKind::lossy, "network.allowedHosts", "an empty list means any host there; here it means none");
  if (allowed && ports.empty())
    in.note(NoteKind::lossy, "network.allowedPorts", "an empty list means any port there; here it means none");
  if (const auto count = in.reader().integer("network.maxConnections"))
    in.set("network.maxConnections", "network.max_connections", std::to_string(*count));
}

}  // namespace

void importRfc(ImportBuilder& in) {
  const auto level = in.reader().text("isolationLevel");
  if (level == "LEVEL_0") {
    in.note(NoteKind::unsafe, "isolationLevel",
            "LEVEL_0 means no isolation and needs an owner's approval for each run; LEVEL_2 is used");
  } else if (level == "LEVEL_1") {
    in.widen("isolationLevel", "isolation.level", "LEVEL_1 is level process");
    in.set("isolationLevel", "isolation.level", "process");
  } else if (level && *level != "LEVEL_2") {
    in.refuse("isolationLevel", "expected LEVEL_0, LEVEL_1 or LEVEL_2");
  }
  readFilesystem(in);
  readProcess(in);
  readNetwork(in);
  readResources(in);
  readSyscalls(in);
}

}  // namespace caisson::policy
