// The flags of `run`, `plan` and every other verb that creates a sandbox: one table row each, with the option and the
// policy key it sets. policy_flags.h applies them.
#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "cli/options.h"

namespace caisson::cli {

enum class Apply : std::uint8_t {
  base,           ///< selects the policy that the other flags change
  set,            ///< key = value
  set_true,       ///< key = true
  time_limit,     ///< key = duration, or "none"
  append,         ///< appends an element to the list
  append_path,    ///< appends a host path, relative to the current directory
  append_list,    ///< appends each element of a list with commas
  append_inside,  ///< appends a path inside, relative to /workspace
  workspace,
  image,  ///< the root: a directory, relative to the current one, or an image
  disk,   ///< the total, which also lifts the sizes of directories on disk
  environment,
  approval,  ///< no key: approval.h decides who may
};

struct Flag {
  Option option;
  std::string_view key;
  Apply apply = Apply::set;
};

inline constexpr Option kProfile{
    .name = "profile", .value = "PROFILE", .help = "Start from a built-in profile (default: dev)."};
inline constexpr Option kPolicyFile{.name = "policy",
                                    .value = "FILE",
                                    .help = "Start from a policy file instead: TOML, JSON or YAML, by its extension."};

inline constexpr Option kApprove{.name = "approve",
                                 .value = "WHAT",
                                 .help =
                                     "Approve WHAT for this run (level:none, net:host ...; `caisson approvals grant "
                                     "--help` lists all). On a terminal this is the approval; without one it uses an "
                                     "approval stored by `caisson approvals grant`.",
                                 .repeatable = true};
inline constexpr Option kAllowHost{
    .name = "allow-host",
    .value = "PATTERN",
    .help = "With --net proxy: a host that may be reached. *.example.org covers its subdomains.",
    .repeatable = true};

inline constexpr Option kAllowPort{.name = "allow-port",
                                   .value = "N",
                                   .help = "With --net proxy: a port or range beside 80 and 443.",
                                   .repeatable = true};

inline constexpr Option kAllowWeaker{
    .name = "allow-weaker",
    .value = "RUNG,...",
    .help =
        "Accept weaker protection where the host refuses the normal one, as containers do: proc_subset, proc_bound, "
        "landlock; runtime (for --runtime of `run`); hostname, cgroup, landlock_scoping, time_namespace (built-in "
        "profiles accept these four). The result lists what was used and what it does not protect.",
    .repeatable = true};

inline constexpr Flag kBaseFlags[] = {
    {kProfile, "", Apply::base},
    {kPolicyFile, "", Apply::base},
    {{.name = "level",
      .value = "none|process|full",
      .help = "How strong the isolation is (default: full). `none` needs an owner's approval."},
     "isolation.level"},
    {{.name = "tier",
      .value = "namespaces|landlock",
      .help = "`landlock` works where user namespaces are forbidden; it is weaker and never chosen by itself."},
     "isolation.tier"},
    {{.name = "user",
      .value = "sandbox|root",
      .help =
          "Who the program is inside (default: sandbox). `root` is uid 0 of the sandbox only, without capabilities; "
          "with --image, its root is then writable."},
     "isolation.user"},
    {{.name = "runtime",
      .value = "caisson|runc|crun|runsc",
      .help =
          "Who makes the namespaces (default: caisson). The others are OCI runtimes, for `run` and `plan` only; one "
          "that is missing or fails is an error."},
     "isolation.runtime"},
    {kAllowWeaker, "isolation.may_be_missing", Apply::append_list},
    {kApprove, "", Apply::approval},
};

inline constexpr Flag kFileFlags[] = {
    {{.name = "workspace",
      .value = "DIR[:MODE]",
      .help = "What is at /workspace (default: the current directory, overlay). MODE is none, ro, rw or overlay; "
              "changes in an overlay are dropped at the end."},
     "filesystem.workspace",
     Apply::workspace},
    {{.name = "image",
      .value = "REF",
      .help = "Use this root instead of the host's: an image (debian:12, name@sha256:DIGEST), or a directory that "
              "begins with / or ./. It stays unchanged."},
     "filesystem.root",
     Apply::image},
    {{.name = "same-path", .help = "Show the workspace at its own path instead of /workspace."},
     "filesystem.workspace.same_path",
     Apply::set_true},
    {{.name = "cwd", .value = "DIR", .help = "Start in this directory inside. Relative: to the workspace."},
     "working_directory"},
    {{.name = "ro", .value = "PATH", .help = "Show this host path, read-only.", .repeatable = true},
     "filesystem.read_only",
     Apply::append_path},
    {{.name = "rw", .value = "PATH", .help = "Show this host path, writable.", .repeatable = true},
     "filesystem.read_write",
     Apply::append_path},
    {{.name = "deny",
      .value = "PATH",
      .help = "Hide this path inside, whatever else shows it. Relative: to /workspace.",
      .repeatable = true},
     "filesystem.denied",
     Apply::append_inside},
    {{.name = "show-secrets", .help = "Do not hide secret files (.env*, .npmrc, private keys) of the workspace."},
     "filesystem.workspace.show_secrets",
     Apply::set_true},
    {{.name = "show-file",
      .value = "PATH",
      .help = "Do not hide this secret file of the workspace. Relative: to /workspace.",
      .repeatable = true},
     "filesystem.workspace.show_files",
     Apply::append_inside},
    {{.name = "allow-exec-config",
      .help = "In a rw workspace, let the program change hooks, editor tasks and other files the host would execute."},
     "filesystem.workspace.allow_exec_config",
     Apply::set_true},
};

inline constexpr Flag kNetworkFlags[] = {
    {{.name = "net", .value = "none|proxy|host", .help = "Network access (default: none)."}, "network.mode"},
    {kAllowHost, "network.allowed_hosts", Apply::append},
    {kAllowPort, "network.allowed_ports", Apply::append},
    {{.name = "host-port",
      .value = "N",
      .help = "Let it reach port N of this machine's 127.0.0.1 as localhost:N: a database, for example.",
      .repeatable = true},
     "network.host_ports",
     Apply::append},
    {{.name = "publish",
      .value = "N",
      .help = "Make its server on port N reachable at 127.0.0.1:N of this machine.",
      .repeatable = true},
     "network.published_ports",
     Apply::append},
};

inline constexpr Option kOutputLimit{
    .name = "output-limit",
    .value = "SIZE",
    .help = "Cut stdout and stderr after this much each. Without this flag, only --json cuts them."};
inline constexpr Flag kLimitFlags[] = {
    {{.name = "timeout",
      .value = "DUR",
      .help = "End it after this long: 30s, 5m, none. Without this flag, profile dev and interactive runs have no time "
              "limit."},
     "resources.wall_seconds",
     Apply::time_limit},
    {{.name = "memory", .value = "SIZE", .help = "Memory for all its processes together: 256M, 1G."},
     "resources.memory"},
    {{.name = "cpus", .value = "N", .help = "CPUs it may keep busy: 0.5, 2."}, "resources.cpus"},
    {{.name = "disk",
      .value = "SIZE",
      .help = "Total size it may write: workspace changes and on-disk directories. Workspace changes then go to disk "
              "instead of memory."},
     "filesystem.max_total_size",
     Apply::disk},
    {{.name = "pids", .value = "N", .help = "Processes and threads at the same time."}, "process.max_processes"},
    {kOutputLimit, "resources.output"},
};

inline constexpr Flag kEnvironmentFlags[] = {
    {{.name = "env",
      .value = "K[=V]",
      .help = "Set a variable; without =V, pass the caller's value. Nothing else of the environment passes.",
      .repeatable = true},
     "environment.set",
     Apply::environment},
};

template <std::size_t N>
constexpr std::array<Option, N> optionsOf(const Flag (&flags)[N]) {
  std::array<Option, N> options;
  for (std::size_t at = 0; at < N; ++at) options[at] = flags[at].option;
  return options;
}

inline constexpr auto kBaseOptions = optionsOf(kBaseFlags);
inline constexpr auto kFileOptions = optionsOf(kFileFlags);
inline constexpr auto kNetworkOptions = optionsOf(kNetworkFlags);
inline constexpr auto kLimitOptions = optionsOf(kLimitFlags);
inline constexpr auto kEnvironmentOptions = optionsOf(kEnvironmentFlags);

inline constexpr std::array<OptionGroup, 5> kPolicyGroups{
    OptionGroup{"Policy", kBaseOptions},
    OptionGroup{"Files", kFileOptions},
    OptionGroup{"Network", kNetworkOptions},
    OptionGroup{"Limits", kLimitOptions},
    OptionGroup{"Environment", kEnvironmentOptions},
};

inline constexpr std::span<const Flag> kAllFlags[] = {kBaseFlags, kFileFlags, kNetworkFlags, kLimitFlags,
                                                      kEnvironmentFlags};

template <std::size_t M, std::size_t N>
constexpr auto joinGroups(const std::array<OptionGroup, M>& first, const OptionGroup (&second)[N]) {
  std::array<OptionGroup, M + N> groups;
  std::ranges::copy(second, std::ranges::copy(first, groups.begin()).out);
  return groups;
}

/// A verb's options: those that describe the sandbox, then its own. Verbs that create sessions have
/// session_options.h.
template <std::size_t N>
constexpr auto withPolicyGroups(const OptionGroup (&own)[N]) {
  return joinGroups(kPolicyGroups, own);
}

}  // namespace caisson::cli
