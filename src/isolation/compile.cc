#include "isolation/compile.h"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <variant>

#include "isolation/compile_parts.h"
#include "plan/syscalls.h"
#include "sys/raw_syscall.h"

namespace caisson::isolation {
namespace {

constexpr std::uint64_t kFewProcesses = 64;
constexpr std::size_t kForAlignment = 16 * 1024;

/// The paths to try for the command: the program itself, or its name in each directory of the payload's PATH if it has
/// no slash.
std::vector<std::string> candidates(const plan::Plan& plan) {
  if (plan.command.empty()) return {};  // a session's sandbox: its commands come later, each with a block
  const std::string& program = plan.command.front();
  if (program.find('/') != std::string::npos) return {program};
  std::string path = "/usr/bin:/bin";
  for (const std::string& variable : plan.environment) {
    if (variable.starts_with("PATH=")) path = variable.substr(5);
  }
  std::vector<std::string> result;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    if (end > begin) result.push_back(path.substr(begin, end - begin) + "/" + program);
    begin = end + 1;
  }
  return result;
}

/// Puts a fresh secret into the rule that recognises the payload's one permitted exec.
Result<void> drawExecToken(plan::SyscallFilter& filter, Block& block) {
  std::uint32_t token[2];
  if (::getrandom(token, sizeof(token), 0) != sizeof(token))
    return fail(sysError(Stage::seccomp, "getrandom", "", errno));
  block.exec_token_first = token[0];
  block.exec_token_second = token[1];
  for (plan::SyscallRule& rule : filter.rules) {
    if (rule.number != SYS_execveat) continue;
    for (plan::Branch& branch : rule.branches) {
      for (plan::ArgumentTest& test : branch.tests) {
        if (test.half == plan::ArgumentTest::Half::high) test.want = test.argument == 0 ? token[0] : token[1];
      }
    }
  }
  return {};
}

}  // namespace

Result<PreparedBlock> prepareBlock(const plan::Plan& plan) {
  PreparedBlock prepared;
  if (plan.builtin_syscalls) {
    prepared.program = plan::builtinProgram();
  } else if (plan.syscalls) {
    plan::SyscallFilter filter = *plan.syscalls;
    if (plan.single_exec) {
      if (auto drawn = drawExecToken(filter, prepared.facts); !drawn) return fail(drawn.error());
    }
    auto compiled = plan::compile(filter);
    if (!compiled) return fail(compiled.error());
    prepared.adapted = std::move(*compiled);
    prepared.program = prepared.adapted;
  }
  prepared.programs = candidates(plan);
  std::size_t bytes = sizeof(Block) + kForAlignment + prepared.program.size() * sizeof(sock_filter) +
                      textBytes(plan.command) + textBytes(plan.environment) + textBytes(prepared.programs) +
                      plan.rlimits.size() * sizeof(FlatLimit);
  for (const plan::Step& step : plan.steps) bytes += stepBytes(step);
  if (plan.egress) bytes += kEgressBytes;
  bytes += plan.host_ports.size() * sizeof(std::uint16_t);
  for (const plan::LandlockRule& rule : plan.landlock.rules) bytes += sizeof(FlatRule) + rule.path.size() + 8;
  prepared.bytes = bytes;
  return prepared;
}

namespace {

void fillNamespaces(const plan::Plan& plan, Arena& arena, Block& block) {
  block.own_user_namespace = plan.namespaces.user;
  block.own_mounts = plan.namespaces.mount;
  block.own_root = plan.own_root;
  block.own_network = plan.namespaces.network;
  block.own_uts = plan.namespaces.uts;
  block.own_cgroup_namespace = plan.namespaces.cgroup;
  block.own_time = plan.namespaces.time;
  block.require_time = plan.require_time_namespace;
  block.may_keep_hostname = plan.may_keep_hostname;
  block.loopback = plan.loopback;
  block.subreaper = !plan.namespaces.pid;
  block.parent_writes_maps = plan.namespaces.user && (plan.identity.parent_writes_maps || plan.identity.usesHelpers());
  block.change_user = plan.identity.change_user || plan.identity.usesHelpers();
  block.open_sources_first = plan.identity.change_user && !plan.identity.maps_files;
  block.inside_uid = plan.namespaces.user ? plan.identity.inside_uid : plan.identity.outside_uid;
  block.inside_gid = plan.namespaces.user ? plan.identity.inside_gid : plan.identity.outside_gid;
  block.uid_map =
      arena.text(std::to_string(plan.identity.inside_uid) + " " + std::to_string(plan.identity.outside_uid) + " 1");
  block.gid_map =
      arena.text(std::to_string(plan.identity.inside_gid) + " " + std::to_string(plan.identity.outside_gid) + " 1");
  block.hostname = arena.text(plan.hostname);
  for (const plan::Step& step : plan.steps) {
    const auto* proc = std::get_if<plan::MountProc>(&step);
    if (proc == nullptr || !proc->may_be_bound) continue;
    block.supervisor_environment = arena.text("/proc/" + std::to_string(::getpid()) + "/environ");
  }
  block.children_path = arena.text("/proc/thread-self/children");
}

void fillHardening(const plan::Plan& plan, Block& block) {
  block.hide_init = plan.hardening.hide_init;
  block.close_descriptors = plan.hardening.close_descriptors;
  block.new_session = plan.hardening.new_session;
  block.new_keyring = plan.hardening.new_keyring;
  block.hide_processes = plan.hardening.hide_processes;
  block.guard_links = plan.hardening.guard_links;
}

void fillLandlock(const plan::Plan& plan, Arena& arena, Block& block) {
  block.landlock_abi = plan.landlock.abi;
  block.handled_fs = plan.landlock.handled_fs;
  block.handled_net = plan.landlock.handled_net;
  block.scoped = plan.landlock.scoped;
  FlatRule* rules = arena.array<FlatRule>(plan.landlock.rules.size());
  for (std::size_t i = 0; i < plan.landlock.rules.size(); ++i) {
    const plan::LandlockRule& rule = plan.landlock.rules[i];
    rules[i] = {arena.text(rule.path), rule.access, rule.optional, expectedFile(rule.opened)};
  }
  block.rules = rules;
  block.rule_count = static_cast<std::uint32_t>(plan.landlock.rules.size());
}

void fillLimits(const plan::Plan& plan, Arena& arena, Block& block) {
  FlatLimit* limits = arena.array<FlatLimit>(plan.rlimits.size());
  for (std::size_t i = 0; i < plan.rlimits.size(); ++i) limits[i] = {plan.rlimits[i].resource, plan.rlimits[i].value};
  block.limits = limits;
  block.limit_count = static_cast<std::uint32_t>(plan.rlimits.size());
  block.raise_descriptor_limit =
      std::ranges::any_of(plan.rlimits, [](const plan::ResourceLimit& one) { return one.resource == RLIMIT_NOFILE; });
  block.few_processes = plan.max_tasks > 0 && plan.max_tasks < kFewProcesses;
  if (!plan.cpu_affinity.empty()) {
    std::uint8_t* mask = arena.array<std::uint8_t>(kAffinityBytes);
    for (const std::uint32_t cpu : plan.cpu_affinity) {
      if (cpu < kAffinityBytes * 8) mask[cpu / 8] = static_cast<std::uint8_t>(mask[cpu / 8] | (1U << (cpu % 8)));
    }
    block.affinity = mask;
    block.affinity_bytes = kAffinityBytes;
    block.affinity_required = plan.affinity_required;
    block.affinity_count = plan.cpu_count;
  }
}

void fillFilter(const plan::Plan& plan, const PreparedBlock& prepared, Arena& arena, Block& block) {
  block.no_new_privileges = plan.no_new_privileges;
  block.drop_capabilities = plan.drop_capabilities;
  block.kept_capabilities = plan.kept_capabilities;
  block.self_test = plan.self_test;
  block.network_none = plan.namespaces.network && !plan.egress;
  block.root_writable = plan.root_writable;
  block.landlock_is_the_wall = plan.landlock.abi > 0 && (plan.host_view || !plan.own_root);
  block.single_exec = plan.single_exec && plan.syscalls.has_value();
  if (const auto program = prepared.program; !program.empty()) {
    sock_filter* code = arena.array<sock_filter>(program.size());
    std::memcpy(code, program.data(), program.size() * sizeof(sock_filter));
    block.filter = {static_cast<unsigned short>(program.size()), code};
    block.has_filter = true;
    block.listen = plan.hardening.report_violations;
  }
}

void fillProgram(const plan::Plan& plan, const PreparedBlock& prepared, Arena& arena, Block& block) {
  block.exec.argv = arena.texts(plan.command);
  block.exec.envp = arena.texts(plan.environment);
  block.exec.candidates = arena.texts(prepared.programs);
  block.exec.working_directory = arena.text(plan.working_directory);
  block.exec.apparmor_profile = plan.apparmor_profile.empty() ? nullptr : arena.text("exec " + plan.apparmor_profile);
  block.exec.selinux_label = plan.selinux_label.empty() ? nullptr : arena.text(plan.selinux_label);
}

}  // namespace

char* fillBlock(Block* block, char* end, const plan::Plan& plan, const PreparedBlock& prepared) {
  Arena arena(reinterpret_cast<char*>(block) + sizeof(Block), end);
  fillNamespaces(plan, arena, *block);
  fillHardening(plan, *block);
  compileSteps(plan, arena, *block);
  fillLandlock(plan, arena, *block);
  fillLimits(plan, arena, *block);
  fillFilter(plan, prepared, arena, *block);
  fillProgram(plan, prepared, arena, *block);
  compileEgress(plan, arena, *block);
  compileHostPorts(plan, arena, *block);
  block->control = -1;
  block->store_mount = -1;
  block->init_program.program = -1;
  return arena.end();
}

}  // namespace caisson::isolation
