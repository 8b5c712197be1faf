#include "session/kept_plan.h"

#include <cstdlib>

#include "plan/environment.h"
#include "session/sandbox.h"
#include "supervise/host.h"
#include "sys/build_id.h"

namespace caisson::session {
namespace {

constexpr std::uint64_t kMaxBytes = 1U << 20;

bool isKept(const Metadata& metadata, const plan::Plan& plan) {
  const policy::Policy& policy = metadata.policy;
  const bool plain_plan = plan.level == policy::Level::full && plan.builtin_syscalls && !plan.syscalls && !plan.egress;
  const bool plain_commands = !policy.commands.allowed_patterns && policy.commands.blocked_patterns.empty() &&
                              !policy.process.allowed_executables && policy.process.blocked_executables.empty();
  return plain_plan && plain_commands && policy.environment.mode != policy::EnvironmentMode::inherit &&
         policy.network.mode == policy::NetworkMode::none && metadata.granted.empty() && !metadata.auto_checkpoint;
}

std::optional<KeptFor> keyOf(const sys::RootDir& directory) {
  auto meta = readMetadataText(directory);
  auto init = readInitText(directory);
  if (!meta || !init) return std::nullopt;
  return KeptFor{std::move(*meta), std::move(*init), supervise::observeCpus()};
}

/// Before the plan: each part with its length, so that no two keys give the same bytes.
std::string encodeKey(const KeptFor& key) {
  std::string bytes = "caisson kept plan 1\n";
  const auto add = [&](std::string_view part) { bytes += std::to_string(part.size()) + "\n" + std::string(part); };
  add(sys::buildId());
  add(key.meta);
  add(key.init);
  std::string cpus;
  for (const std::uint32_t cpu : key.cpus) cpus += std::to_string(cpu) + " ";
  add(cpus);
  return bytes;
}

}  // namespace

std::string encodeKeptPlan(const KeptFor& key, const Metadata& metadata, const plan::Plan& common) {
  if (sys::buildId().empty() || !isKept(metadata, common)) return {};
  return encodeKey(key) + encodePlan({metadata.name, metadata.policy, common});
}

std::optional<CommonPlan> decodeKeptPlan(std::string_view bytes, const KeptFor& key) {
  const std::string wanted = encodeKey(key);
  if (sys::buildId().empty() || !bytes.starts_with(wanted)) return std::nullopt;
  return decodePlan(bytes.substr(wanted.size()));
}

std::optional<CommonPlan> readKeptPlan(const sys::RootDir& directory) {
  const auto bytes = directory.readFile(kKeptPlanFile, kMaxBytes);
  if (!bytes) return std::nullopt;
  const auto key = keyOf(directory);
  if (!key) return std::nullopt;
  return decodeKeptPlan(*bytes, *key);
}

void keepPlan(const sys::RootDir& directory, const Metadata& metadata) {
  const auto key = keyOf(directory);
  if (!key) return;
  auto planner = Planner::observe(directory, metadata);
  if (!planner) return;
  const auto plan = planner->planCommand(metadata, {{"true"}, false});
  if (!plan) return;
  const std::string bytes = encodeKeptPlan(*key, metadata, *plan);
  // Without waiting for the disk: after a restart of the machine no kept plan holds any more.
  if (!bytes.empty()) (void)directory.replaceFile(kKeptPlanFile, bytes, 0600);
}

Result<plan::Plan> planByKept(CommonPlan& kept, const std::vector<std::string>& command) {
  plan::HostFacts facts;
  for (const std::string& name : kept.policy.environment.pass) {
    if (const char* value = std::getenv(name.c_str())) facts.caller_environment.emplace(name, value);
  }
  plan::Plan plan = std::move(kept.plan);
  if (auto set = plan::setCommand(kept.policy, facts, {command, false}, plan); !set) return fail(set.error());
  plan.environment = plan::planEnvironment(kept.policy, facts, plan, false);
  return plan;
}

}  // namespace caisson::session
