// A plan that is kept beside a session, so that a command needs neither the policy decoded nor the host observed again.
//
// It is what `Planner::planCommand` would say, and holds for one thing only: this build of caisson, this text of
// meta.json, this start of the sandbox (init.json) and these processors. Anything else, and anything unreadable, means
// that there is none: then the plan is made at length. Like meta.json it lies in the session's private directory; who
// can write there can change the policy itself.
//
// Only the usual case is kept: level full with the built-in filter, no egress, no rules about commands or executables,
// no variables of the caller's but named ones. What depends on the caller is not in it: command and environment.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "session/metadata.h"
#include "session/plan_codec.h"
#include "sys/root_dir.h"

namespace caisson::session {

inline constexpr const char* kKeptPlanFile = "plan";

/// What a kept plan holds for, besides this build of caisson.
struct KeptFor {
  std::string meta, init;           ///< texts of the files
  std::vector<std::uint32_t> cpus;  ///< that the caller may run on
};

/// As bytes; empty when this session's plan is none that is kept.
std::string encodeKeptPlan(const KeptFor& key, const Metadata& metadata, const plan::Plan& common);
/// Nothing when the bytes are not a plan for this.
std::optional<CommonPlan> decodeKeptPlan(std::string_view bytes, const KeptFor& key);

/// The kept plan of a session as it is now.
std::optional<CommonPlan> readKeptPlan(const sys::RootDir& directory);
/// Keeps one. The caller holds the session's lock and has read `metadata` under it.
void keepPlan(const sys::RootDir& directory, const Metadata& metadata);

/// The plan for one command, taken out of `kept`; an error when the policy refuses it.
Result<plan::Plan> planByKept(CommonPlan& kept, const std::vector<std::string>& command);

}  // namespace caisson::session
