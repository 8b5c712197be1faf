#include "peers.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>

namespace bench {
namespace {

using Arguments = std::vector<std::string>;

constexpr std::array<std::string_view, 4> kUsual{"crun", "firejail", "podman", "runc"};
constexpr const char* kTrue = "/usr/bin/true";

/// A bundle that runs `true` on the host's /usr, rootless: the minimum that an OCI runtime accepts.
std::string bundleConfig() {
  const std::string uid = std::to_string(geteuid());
  const std::string gid = std::to_string(getegid());
  return R"({"ociVersion":"1.0.2","root":{"path":"rootfs","readonly":true},"hostname":"sandbox","process":{"terminal":false,)"
         R"("user":{"uid":0,"gid":0},"args":["true"],"env":["PATH=/usr/bin"],"cwd":"/","noNewPrivileges":true},)"
         R"("mounts":[{"destination":"/usr","type":"bind","source":"/usr","options":["bind","ro","nosuid","nodev"]},)"
         R"({"destination":"/proc","type":"proc","source":"proc"},)"
         R"({"destination":"/dev","type":"tmpfs","source":"tmpfs","options":["nosuid","mode=755"]},)"
         R"({"destination":"/tmp","type":"tmpfs","source":"tmpfs","options":["nosuid","nodev"]}],)"
         R"("linux":{"uidMappings":[{"containerID":0,"hostID":)" +
         uid + R"(,"size":1}],"gidMappings":[{"containerID":0,"hostID":)" + gid +
         R"(,"size":1}],"namespaces":[{"type":"user"},{"type":"pid"},{"type":"mount"},{"type":"network"},)"
         R"({"type":"ipc"},{"type":"uts"},{"type":"cgroup"}]}})";
}

std::string prepareBundle(const Scratch& scratch) {
  const std::string rootfs = scratch.path("bundle/rootfs");
  std::error_code error;
  std::filesystem::create_directories(rootfs, error);
  for (const char* name : {"bin", "sbin", "lib", "lib64"}) {
    std::filesystem::create_directory_symlink(std::string("usr/") + name, rootfs + "/" + name, error);
  }
  for (const char* name : {"usr", "proc", "dev", "tmp"}) std::filesystem::create_directory(rootfs + "/" + name, error);
  writeFile(scratch.path("bundle/config.json"), bundleConfig());
  return scratch.path("bundle");
}

Arguments podman(const std::string& program, const Scratch& scratch) {
  return {program,
          "--root",
          scratch.path("podman/root"),
          "--runroot",
          scratch.path("podman/run"),
          "--tmpdir",
          scratch.path("podman/tmp"),
          "--cgroup-manager",
          "cgroupfs",
          "--events-backend",
          "file",
          "--runtime",
          findProgram("runc").value_or("crun")};
}

void append(Arguments& to, const Arguments& more) { to.insert(to.end(), more.begin(), more.end()); }

}  // namespace

std::span<const std::string_view> usualPeers() { return kUsual; }

bool isPeer(std::string_view name) {
  return name == "nsjail" || std::find(kUsual.begin(), kUsual.end(), name) != kUsual.end();
}

Row peerRow(const std::string& name, const std::string& path, const Scratch& scratch) {
  Row row{Contender::peer, name, {{}, scratch.workspace(), cleanEnvironment(scratch)}, "", "", {}, 0};
  const auto program = findProgram(path);
  if (!program) {
    row.absent = "not installed";
    return row;
  }
  Arguments& argv = row.command.argv;
  argv = {*program};
  if (name == "firejail") {
    append(argv, {"--quiet", "--noprofile", "--net=none", "--private", "--private-dev", "--private-tmp",
                  "--caps.drop=all", "--seccomp", "--nonewprivs", "--noroot", "--", kTrue});
    row.open =
        "set-up runs setuid root, the host's root stays visible, no Landlock, no memory limit, seccomp is a denylist";
  } else if (name == "nsjail") {
    append(argv, {"-Mo", "--really_quiet", "--user", "1000", "--group", "1000", "--bindmount_ro", "/usr", "--symlink",
                  "/usr/bin:/bin", "--symlink", "/usr/lib:/lib", "--symlink", "/usr/lib64:/lib64", "--tmpfsmount",
                  "/tmp", "--", kTrue});
    row.open = "no seccomp unless a policy is given, no Landlock, no cgroup, /proc not masked";
  } else if (name == "podman") {
    argv = podman(*program, scratch);
    row.after = {argv, scratch.workspace(), cleanEnvironment(scratch)};
    append(row.after.argv, {"system", "migrate"});  // ends the process that keeps its user namespace
    append(argv, {"run", "--rm", "--network", "none", "--read-only", "--volume", "/usr:/usr:ro", "--rootfs",
                  prepareBundle(scratch) + "/rootfs", "true"});
    row.open = "helpers run setuid root, an extra process stays, no Landlock, no overlay here";
  } else {
    append(argv, {"--root", scratch.path(name), "run", "--bundle", prepareBundle(scratch), "caisson-bench"});
    row.open = "this bundle has no seccomp, no masked paths, no limits; no Landlock";
  }
  return row;
}

}  // namespace bench
