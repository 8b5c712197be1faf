// The flags of `caisson agent`, whose sessions show a project at its own path.
#pragma once

#include "cli/session_options.h"

namespace caisson::cli {

inline constexpr std::string_view kFixedForAgents[] = {"same-path"};
/// The sessions of `agent exec` show the project of --project.
inline constexpr std::string_view kFixedForProjects[] = {"workspace", "same-path"};

constexpr auto agentFileOptions() {
  auto options = without(kSessionFileOptions, kFixedForAgents);
  for (Option& option : options) {
    if (option.name != "workspace") continue;
    option.value = "DIR";
    option.help =
        "The project that the agent works on, as an overlay at its own path (default: that of this directory).";
  }
  return options;
}

inline constexpr auto kAgentFileOptions = agentFileOptions();
inline constexpr auto kAgentHiddenOptions = only(kSessionFileOptions, kFixedForAgents);
inline constexpr auto kProjectFileOptions = without(kSessionFileOptions, kFixedForProjects);
inline constexpr auto kProjectHiddenOptions = only(kSessionFileOptions, kFixedForProjects);

constexpr auto sessionGroupsWithFiles(std::span<const Option> files, std::span<const Option> hidden) {
  const OptionGroup more[] = {{"", hidden}};
  auto groups = joinGroups(kSessionPolicyGroups, more);
  for (OptionGroup& group : groups)
    if (group.title == "Files") group.options = files;
  return groups;
}

/// `agent run`
inline constexpr auto kAgentPolicyGroups = sessionGroupsWithFiles(kAgentFileOptions, kAgentHiddenOptions);
/// `agent exec`, `hook` and `install`
inline constexpr auto kProjectPolicyGroups = sessionGroupsWithFiles(kProjectFileOptions, kProjectHiddenOptions);

}  // namespace caisson::cli
