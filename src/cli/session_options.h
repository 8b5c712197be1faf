// The flags of verbs that create sessions: those of policy_options.h, with help that is true for sessions. All flags of
// `run` are parsed; what no session can do is not shown, and checkForSession() refuses it with a reason.
#pragma once

#include "cli/policy_options.h"

namespace caisson::cli {

constexpr Option forSession(Option option) {
  if (option.name == "level") {
    option.value = "process|full";
    option.unlisted = "none";
    option.help = "How strong the isolation is (default: full).";
  } else if (option.name == "net") {
    option.value = "none|proxy";
    option.unlisted = "host";
  } else if (option.name == "workspace") {
    option.help =
        "Directory shown at /workspace (default: the current one). MODE is overlay (default; changes are kept in the "
        "session until commit), none (starts empty) or, with --tier landlock, rw.";
  } else if (option.name == "timeout") {
    option.help = "End each command after this long: 30s, 5m, none. Without this flag, profile dev has no time limit.";
  } else if (option.name == "approve") {
    option.help =
        "Approve WHAT for this session (level:process, tier:landlock ...; `caisson approvals grant --help` lists all). "
        "On a terminal this is the approval; without one it uses an approval stored by `caisson approvals grant`.";
  }
  return option;
}

template <std::size_t N>
constexpr std::array<Option, N> forSession(std::array<Option, N> options) {
  for (Option& option : options) option = forSession(option);
  return options;
}

template <std::size_t N, std::size_t M>
constexpr auto without(const std::array<Option, N>& options, const std::string_view (&names)[M]) {
  std::array<Option, N - M> kept;
  std::ranges::copy_if(options, kept.begin(),
                       [&](const Option& option) { return std::ranges::find(names, option.name) == std::end(names); });
  return kept;
}

template <std::size_t N, std::size_t M>
constexpr auto only(const std::array<Option, N>& options, const std::string_view (&names)[M]) {
  std::array<Option, M> kept;
  std::ranges::copy_if(options, kept.begin(),
                       [&](const Option& option) { return std::ranges::find(names, option.name) != std::end(names); });
  return kept;
}

inline constexpr std::string_view kNotInSessions[] = {"runtime"};
inline constexpr auto kSessionBaseOptions = forSession(without(kBaseOptions, kNotInSessions));
inline constexpr auto kSessionFileOptions = forSession(kFileOptions);
inline constexpr auto kSessionNetworkOptions = forSession(kNetworkOptions);
inline constexpr auto kSessionLimitOptions = forSession(kLimitOptions);
inline constexpr auto kSessionHiddenOptions = only(kBaseOptions, kNotInSessions);

inline constexpr std::array<OptionGroup, 6> kSessionPolicyGroups{
    OptionGroup{"Policy", kSessionBaseOptions},      OptionGroup{"Files", kSessionFileOptions},
    OptionGroup{"Network", kSessionNetworkOptions},  OptionGroup{"Limits", kSessionLimitOptions},
    OptionGroup{"Environment", kEnvironmentOptions}, OptionGroup{"", kSessionHiddenOptions},
};

template <std::size_t N>
constexpr auto withSessionGroups(const OptionGroup (&own)[N]) {
  return joinGroups(kSessionPolicyGroups, own);
}

}  // namespace caisson::cli
