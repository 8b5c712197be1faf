#include "runtime/config.h"

#include <sys/resource.h>

#include <algorithm>

#include "base/json_writer.h"
#include "runtime/seccomp.h"

namespace caisson::runtime {
namespace {

/// runc refuses mounts on other files of /proc.
constexpr std::string_view kCoverable[] = {"/proc/cpuinfo", "/proc/loadavg", "/proc/meminfo", "/proc/stat",
                                           "/proc/uptime"};
using Options = std::vector<std::string_view>;

void writeMount(JsonWriter& json, std::string_view destination, std::string_view type, std::string_view source,
                const Options& options) {
  json.beginObject().key("destination").string(destination).key("type").string(type);
  json.key("source").string(source).key("options").strings(options).end();
}

/// Where the plan mounts below /dev.
std::vector<std::string> deviceMounts(const plan::Plan& plan) {
  std::vector<std::string> targets;
  for (const plan::Step& step : plan.steps) {
    std::string target;
    if (const auto* bind = std::get_if<plan::Bind>(&step)) target = bind->target;
    if (const auto* tmpfs = std::get_if<plan::MountTmpfs>(&step)) target = tmpfs->target;
    if (const auto* pts = std::get_if<plan::MountDevpts>(&step)) target = pts->target;
    if (target.starts_with("/dev/")) targets.push_back(target);
  }
  return targets;
}

void writeMounts(JsonWriter& json, const plan::Plan& plan) {
  json.key("mounts").beginArray();
  Options proc{"nosuid", "nodev", "noexec"};
  if (plan.runtime->hasInit()) proc.emplace_back("hidepid=2");
  writeMount(json, "/proc", "proc", "proc", proc);
  // The sandbox's, complete: runtimes add devices of their own unless they find this mount. In a user namespace crun
  // 1.8 leaves out the mounts below it, so they follow.
  writeMount(json, "/dev", "bind", "/dev", {"rbind"});
  if (plan.runtime->kind == policy::Runtime::crun) {
    for (const std::string& target : deviceMounts(plan)) writeMount(json, target, "bind", target, {"bind"});
  }
  for (const plan::CoverFile& file : coveredProc(plan)) {
    writeMount(json, file.target, "bind", std::string(kBundle) + file.target,
               {"bind", "ro", "nosuid", "nodev", "noexec"});
  }
  if (plan.runtime->hasInit()) writeMount(json, kInitInside, "bind", kInit, {"bind", "ro", "nosuid", "nodev"});
  json.end();
}

std::string limitName(std::string_view name) {
  std::string text = "RLIMIT_";
  for (const char letter : name) text += static_cast<char>(letter - 'a' + 'A');
  return text;
}

void writeLimits(JsonWriter& json, const plan::Plan& plan) {
  json.key("rlimits").beginArray();
  for (const plan::ResourceLimit& limit : plan.rlimits) {
    // Threads of the runtime would count; pid 1 sets this one.
    if (limit.resource == RLIMIT_NPROC) continue;
    rlimit own{};
    std::uint64_t value = limit.value;
    if (::getrlimit(static_cast<__rlimit_resource>(limit.resource), &own) == 0)
      value = std::min<std::uint64_t>(value, own.rlim_max);
    json.beginObject().key("type").string(limitName(limit.name));
    json.key("soft").number(value).key("hard").number(value).end();
  }
  json.end();
}

void writeProcess(JsonWriter& json, const plan::Plan& plan, const ContainerProcess& process) {
  json.key("process").beginObject().key("terminal").boolean(false);
  json.key("user").beginObject().key("uid").number(plan.identity.inside_uid);
  json.key("gid").number(plan.identity.inside_gid).end();
  json.key("args").strings(process.arguments).key("env").strings(process.environment);
  json.key("cwd").string(process.working_directory);
  json.key("capabilities").beginObject();
  for (const char* set : {"bounding", "effective", "inheritable", "permitted", "ambient"})
    json.key(set).beginArray().end();
  json.end();
  writeLimits(json, plan);
  json.key("noNewPrivileges").boolean(plan.no_new_privileges).end();
}

void writeMapping(JsonWriter& json, std::string_view key, std::uint32_t id) {
  json.key(key).beginArray().beginObject().key("containerID").number(id).key("hostID").number(id);
  json.key("size").number(1).end().end();
}

void writeLinux(JsonWriter& json, const plan::Plan& plan) {
  json.key("linux").beginObject().key("namespaces").beginArray();
  for (const char* type : {"user", "pid", "mount", "ipc", "uts"}) json.beginObject().key("type").string(type).end();
  json.end();
  writeMapping(json, "uidMappings", plan.identity.inside_uid);
  writeMapping(json, "gidMappings", plan.identity.inside_gid);
  json.key("maskedPaths").strings(plan.runtime->masked_proc);
  json.key("readonlyPaths").beginArray().string("/proc/sys").end();
  if (const auto filter = filterOf(plan)) {
    json.key("seccomp");
    writeSeccomp(json, *filter, plan.runtime->hasInit() ? ArgumentRules::by_init : ArgumentRules::in_profile);
  }
  json.end();
}

}  // namespace

std::vector<plan::CoverFile> coveredProc(const plan::Plan& plan) {
  std::vector<plan::CoverFile> covered;
  for (const plan::Step& step : plan.steps) {
    const auto* file = std::get_if<plan::CoverFile>(&step);
    if (file != nullptr && std::ranges::find(kCoverable, file->target) != std::end(kCoverable))
      covered.push_back(*file);
  }
  return covered;
}

std::string configOf(const plan::Plan& plan, const ContainerProcess& process) {
  JsonWriter json(JsonWriter::Layout::indented);
  json.beginObject().key("ociVersion").string("1.0.2");
  writeProcess(json, plan, process);
  json.key("root").beginObject().key("path").string("rootfs").key("readonly").boolean(!plan.root_writable).end();
  json.key("hostname").string(plan.hostname);
  writeMounts(json, plan);
  writeLinux(json, plan);
  json.end();
  return json.text() + "\n";
}

}  // namespace caisson::runtime
