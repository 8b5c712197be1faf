#include "runtime/outer_plan.h"

#include <algorithm>

#include "plan/runtime.h"
#include "runtime/config.h"
#include "runtime/init_descriptors.h"

namespace caisson::runtime {
namespace {

using plan::Bind;
using plan::MakeDirectory;
using plan::MakeFile;
using plan::MakeSymlink;
using plan::Step;

constexpr const char* kContainer = "caisson";

bool below(std::string_view path, std::string_view top) {
  return path == top || (path.starts_with(top) && path.size() > top.size() && path[top.size()] == '/');
}

/// Whether the runtime makes this part of the tree: /proc belongs to the container's pid namespace.
bool isRuntimes(const Step& step) {
  if (const auto* file = std::get_if<plan::CoverFile>(&step)) return below(file->target, "/proc");
  if (const auto* bind = std::get_if<Bind>(&step)) return bind->inside && below(bind->target, "/proc");
  return false;
}

/// The sandbox's tree, up to /proc. Mount points for the runtime come right after the root itself, while it is
/// writable.
void addTree(const plan::Plan& plan, std::vector<Step>& steps) {
  bool first = true;
  for (const Step& step : plan.steps) {
    if (const auto* proc = std::get_if<plan::MountProc>(&step)) {
      if (!plan.layered_root) steps.push_back(MakeDirectory{proc->target});  // else its mount point was made before
      continue;
    }
    if (!isRuntimes(step)) steps.push_back(step);
    if (first && plan.runtime->hasInit()) steps.push_back(MakeFile{std::string(kInitInside), "", 0555});
    first = false;
  }
}

/// The runtime's program, loader and libraries, and the devices it needs.
void addSystem(const plan::RuntimePlan& runtime, bool maps_files, std::vector<Step>& steps) {
  for (const auto& [path, link] : runtime.system) {
    if (link.empty()) {
      steps.push_back(Bind{.source = path, .target = path, .type = plan::SourceType::directory});
    } else {
      steps.push_back(MakeSymlink{path, link});
    }
  }
  const auto shows = [&](const auto& entry) { return below(runtime.path, entry.first); };
  if (std::ranges::none_of(runtime.system, shows)) {
    steps.push_back(Bind{.source = runtime.path,
                         .target = runtime.path,
                         .canonical = true,
                         .type = plan::SourceType::file,
                         .owned = maps_files});
  }
  for (const char* directory : {"/etc", "/dev", "/run", "/tmp", "/sys/fs/cgroup"})
    steps.push_back(MakeDirectory{directory});
  steps.push_back(Bind{.source = "/etc/ld.so.cache",
                       .target = "/etc/ld.so.cache",
                       .executable = false,
                       .optional = true,
                       .type = plan::SourceType::file});
  // crun makes devices in the container's root unless its /dev comes from the runtime's.
  steps.push_back(Bind{.source = std::string(kRootfs) + "/dev",
                       .target = "/dev",
                       .writable = true,
                       .executable = false,
                       .devices = true,
                       .inside = true});
  // runc starts only where it finds one. It can neither read much there nor write: caisson has made the cgroup.
  if (runtime.kind == policy::Runtime::runc) {
    steps.push_back(Bind{.source = "/sys/fs/cgroup",
                         .target = "/sys/fs/cgroup",
                         .executable = false,
                         .optional = true,
                         .type = plan::SourceType::directory});
  }
  steps.push_back(plan::MountProc{.target = "/proc", .shown = {}, .mask = false});
}

ContainerProcess processOf(const plan::Plan& plan, const InitArguments& init) {
  if (!plan.runtime->hasInit()) return {plan.command, plan.environment, plan.working_directory};
  return {{std::string(kInitInside), std::to_string(init.address), std::to_string(init.bytes)}, {}, "/"};
}

void addBundle(const plan::Plan& plan, const InitArguments& init, std::vector<Step>& steps) {
  const std::string bundle(kBundle);
  steps.push_back(MakeFile{bundle + "/config.json", configOf(plan, processOf(plan, init)), 0444});
  if (plan.runtime->hasInit()) steps.push_back(MakeFile{std::string(kInit), init.program, 0555});
  steps.push_back(MakeDirectory{std::string(kCovers)});
  for (const plan::CoverFile& file : coveredProc(plan)) {
    steps.push_back(MakeFile{.target = bundle + file.target, .content = file.content, .mode = 0444, .marked = true});
  }
}

}  // namespace

std::vector<std::string> runtimeCommand(const plan::RuntimePlan& runtime) {
  const std::string bundle(kBundle);
  std::vector<std::string> command{runtime.path};
  const auto add = [&](std::initializer_list<std::string> words) { command.insert(command.end(), words); };
  if (runtime.kind == policy::Runtime::crun) add({"--cgroup-manager=disabled"});
  if (runtime.kind == policy::Runtime::runsc) {
    add({"--rootless", "--network=none", "--ignore-cgroups", "--oci-seccomp", "--host-uds=none", "--overlay2=none"});
  }
  add({"--root", bundle + "/state", "run", "--bundle", bundle});
  if (runtime.hasInit()) add({"--preserve-fds", std::to_string(kPassedDescriptors)});
  add({kContainer});
  return command;
}

plan::Plan outerPlan(const plan::Plan& plan, const InitArguments& init) {
  plan::Plan outer;
  outer.level = plan.level;
  outer.namespaces = plan.namespaces;
  outer.namespaces.ipc = outer.namespaces.uts = false;
  outer.identity = plan.identity;
  outer.hardening = plan.hardening;
  outer.hardening.hide_processes = false;  // the runtime finds its own processes in /proc
  outer.hardening.report_violations = false;
  outer.own_root = true;
  outer.layered_root = plan.layered_root;
  outer.loopback = plan.loopback;
  outer.egress = plan.egress;
  outer.host_ports = plan.host_ports;
  outer.published_ports = plan.published_ports;
  outer.max_connections = plan.max_connections;
  outer.require_time_namespace = plan.require_time_namespace;
  addTree(plan, outer.steps);
  outer.steps.push_back(plan::MoveRoot{std::string(kRootfs)});
  addSystem(*plan.runtime, plan.identity.maps_files, outer.steps);
  addBundle(plan, init, outer.steps);
  outer.drop_capabilities = false;  // those of the user namespace: the runtime mounts
  outer.self_test = false;          // runs in the container
  outer.command = runtimeCommand(*plan.runtime);
  outer.environment = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/run",
                       "XDG_RUNTIME_DIR=/run"};
  outer.working_directory = kBundle;
  return outer;
}

plan::Plan payloadPlan(const plan::Plan& plan) {
  plan::Plan payload = plan;
  payload.steps.clear();
  payload.host_ports.clear();
  return payload;
}

}  // namespace caisson::runtime
