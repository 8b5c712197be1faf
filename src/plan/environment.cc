#include "plan/environment.h"

#include <algorithm>

#include "plan/credentials.h"
#include "plan/executables.h"
#include "plan/filesystem.h"
#include "plan/network.h"
#include "plan/toolchains.h"

namespace caisson::plan {
bool altersLoading(std::string_view name) {
  static constexpr std::string_view kNames[] = {"BASH_ENV",          "ENV",
                                                "NODE_OPTIONS",      "NODE_PATH",
                                                "PYTHONSTARTUP",     "PYTHONPATH",
                                                "PYTHONHOME",        "PERL5LIB",
                                                "PERL5OPT",          "RUBYOPT",
                                                "RUBYLIB",           "JAVA_TOOL_OPTIONS",
                                                "_JAVA_OPTIONS",     "JDK_JAVA_OPTIONS",
                                                "CLASSPATH",         "GCONV_PATH",
                                                "LOCPATH",           "NLSPATH",
                                                "PROMPT_COMMAND",    "SHELLOPTS",
                                                "BASHOPTS",          "IFS",
                                                "GLIBC_TUNABLES",    "MALLOC_TRACE",
                                                "GIT_EXTERNAL_DIFF", "GIT_SSH_COMMAND",
                                                "RUSTC_WRAPPER",     "CARGO_BUILD_RUSTC_WRAPPER"};
  if (name.starts_with("LD_") || name.starts_with("DYLD_") || name.starts_with("BASH_FUNC_")) return true;
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

namespace {

bool hasDirectory(const Plan& plan, std::string_view target) {
  return std::ranges::any_of(plan.steps, [&](const Step& step) {
    const auto* directory = std::get_if<MountTmpfs>(&step);
    return directory != nullptr && directory->target == target;
  });
}

/// If the plan has a directory /cache, names it to package managers, which would keep their caches in the home
/// directory. pip, Go's compiler, ccache, uv and others follow XDG_CACHE_HOME.
void addCacheVariables(const Plan& plan, std::map<std::string, std::string>& values) {
  const std::string cache(plan.tier == policy::Tier::landlock ? kPrivateCache : "/cache");
  if (!hasDirectory(plan, cache)) return;
  values["XDG_CACHE_HOME"] = cache;
  values["npm_config_cache"] = cache + "/npm";
  values["CARGO_HOME"] = cache + "/cargo";
  values["GOMODCACHE"] = cache + "/go-mod";
}

/// Tells a package manager that it is offline, if the policy lists its registry but has no network: otherwise it waits
/// for hosts that it cannot reach.
void addOfflineVariables(const policy::Network& network, std::map<std::string, std::string>& values) {
  struct Switch {
    std::string_view preset, variable, value;
  };
  constexpr Switch kSwitches[] = {{"preset:npm", "npm_config_offline", "true"},
                                  {"preset:pip", "PIP_NO_INDEX", "1"},
                                  {"preset:cargo", "CARGO_NET_OFFLINE", "true"}};
  for (const Switch& one : kSwitches) {
    if (std::ranges::find(network.allowed_hosts, one.preset) != network.allowed_hosts.end())
      values[std::string(one.variable)] = one.value;
  }
}

void addStandardVariables(const HostFacts& host, const Plan& plan, bool interactive,
                          std::map<std::string, std::string>& values) {
  values["PATH"] = programPath(host.toolchains);
  for (const Toolchain& toolchain : host.toolchains) {
    const std::string prefix = toolchain.programs.substr(0, toolchain.programs.rfind('/'));
    if (toolchain.manager == "sdkman" && prefix.find("/candidates/java/") != std::string::npos)
      values["JAVA_HOME"] = prefix;
  }
  addCacheVariables(plan, values);
  values["HOME"] = plan.root_writable ? "/root" : plan.own_root && !plan.host_view ? std::string(kHome) : "/tmp";
  values["USER"] = values["LOGNAME"] = plan.identity.inside_uid == 0 ? "root" : "sandbox";
  values["SHELL"] = "/bin/sh";
  values["LANG"] = "C.UTF-8";
  values["TMPDIR"] = "/tmp";
  if (plan.tier == policy::Tier::landlock || plan.host_view) {
    // Where these exist they may hold credentials and cannot be read, at which git and pip would fail.
    values["GIT_CONFIG_NOSYSTEM"] = "1";
    values["PIP_CONFIG_FILE"] = "/dev/null";
  }
  if (hasDirectory(plan, kPrivateTmp)) values["HOME"] = values["TMPDIR"] = kPrivateTmp;
  if (hasDirectory(plan, kPrivateHome)) values["HOME"] = kPrivateHome;
  values["CAISSON"] = "1";
  if (!interactive) return;
  const auto terminal = host.caller_environment.find("TERM");
  values["TERM"] = terminal == host.caller_environment.end() ? "xterm-256color" : terminal->second;
}

/// The variables of an image: not those that describe the sandbox, and none that makes programs load other code.
void addImageVariables(const HostFacts& host, std::map<std::string, std::string>& values) {
  constexpr std::string_view kOurs[] = {"HOME", "USER", "LOGNAME", "TMPDIR", "CAISSON", "TERM"};
  for (const std::string& variable : host.root.environment) {
    const std::size_t equals = variable.find('=');
    const std::string name = variable.substr(0, equals);
    const bool ours = std::ranges::find(kOurs, name) != std::end(kOurs);
    if (equals == std::string::npos || name.empty() || ours || altersLoading(name)) continue;
    values[name] = variable.substr(equals + 1);
  }
}

}  // namespace

std::vector<std::string> planEnvironment(const policy::Policy& policy, const HostFacts& host, const Plan& plan,
                                         bool interactive) {
  std::map<std::string, std::string> values;
  const policy::Environment& wanted = policy.environment;
  if (wanted.mode == policy::EnvironmentMode::inherit) {
    for (const auto& [name, value] : host.caller_environment) {
      if (!altersLoading(name)) values[name] = value;
    }
  }
  const auto fromCaller = [&](const std::string& name) {
    if (const auto found = host.caller_environment.find(name); found != host.caller_environment.end()) {
      values[name] = found->second;
    }
  };
  if (wanted.mode != policy::EnvironmentMode::listed) addStandardVariables(host, plan, interactive, values);
  if (wanted.mode != policy::EnvironmentMode::listed) addImageVariables(host, values);
  if (plan.egress) addProxyVariables(values);
  for (const std::string& name : wanted.pass) fromCaller(name);
  dropSecretVariables(policy, values);
  if (plan.egress && addsCredentials(policy.network)) addCredentialVariables(policy, values);
  if (policy.network.mode == policy::NetworkMode::none) addOfflineVariables(policy.network, values);
  for (const auto& [name, value] : wanted.set) values[name] = value;

  std::vector<std::string> environment;
  environment.reserve(values.size());
  for (const auto& [name, value] : values) environment.push_back(name + "=" + value);
  return environment;
}

}  // namespace caisson::plan
