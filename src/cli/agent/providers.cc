#include "cli/agent/providers.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "cli/options.h"
#include "policy/model.h"

namespace caisson::cli {
namespace {

// Several rows of one name: the first whose variable is set counts.
constexpr Provider kProviders[] = {
    {"anthropic", "api.anthropic.com", "ANTHROPIC_API_KEY", "x-api-key", "{secret}", "ANTHROPIC_BASE_URL", ""},
    {"anthropic", "api.anthropic.com", "ANTHROPIC_AUTH_TOKEN", "Authorization", "Bearer {secret}", "ANTHROPIC_BASE_URL",
     ""},
    {"anthropic", "api.anthropic.com", "CLAUDE_CODE_OAUTH_TOKEN", "Authorization", "Bearer {secret}",
     "ANTHROPIC_BASE_URL", ""},
    {"openai", "api.openai.com", "OPENAI_API_KEY", "Authorization", "Bearer {secret}", "OPENAI_BASE_URL",
     "CODEX_API_KEY"},
    {"openai", "api.openai.com", "CODEX_API_KEY", "Authorization", "Bearer {secret}", "OPENAI_BASE_URL",
     "OPENAI_API_KEY"},
    {"google", "generativelanguage.googleapis.com", "GEMINI_API_KEY", "x-goog-api-key", "{secret}",
     "GOOGLE_GEMINI_BASE_URL", ""},
    {"google", "generativelanguage.googleapis.com", "GOOGLE_API_KEY", "x-goog-api-key", "{secret}",
     "GOOGLE_GEMINI_BASE_URL", "GEMINI_API_KEY"},
    {"openrouter", "openrouter.ai", "OPENROUTER_API_KEY", "Authorization", "Bearer {secret}", "", ""},
    {"mistral", "api.mistral.ai", "MISTRAL_API_KEY", "Authorization", "Bearer {secret}", "", ""},
    {"deepseek", "api.deepseek.com", "DEEPSEEK_API_KEY", "Authorization", "Bearer {secret}", "", ""},
    {"groq", "api.groq.com", "GROQ_API_KEY", "Authorization", "Bearer {secret}", "", ""},
    {"xai", "api.x.ai", "XAI_API_KEY", "Authorization", "Bearer {secret}", "", ""},
};

const char* variable(std::string_view name) {
  if (name.empty()) return nullptr;
  const char* value = std::getenv(std::string(name).c_str());
  return value != nullptr && *value != 0 ? value : nullptr;
}

/// The host of an https address, with its port unless that is 443.
std::optional<std::string> hostOf(std::string_view address) {
  constexpr std::string_view kScheme = "https://";
  if (!address.starts_with(kScheme)) return std::nullopt;
  address.remove_prefix(kScheme.size());
  std::string host(address.substr(0, address.find_first_of("/?#")));
  if (host.ends_with(":443")) host.resize(host.size() - 4);
  if (host.empty() || host.find('@') != std::string::npos) return std::nullopt;
  return host;
}

bool isConfigured(const policy::Network& network, const Provider& provider, const std::string& host) {
  return std::ranges::any_of(network.credentials, [&](const policy::Credential& one) {
    return one.host == host || one.secret_env == provider.key_env;
  });
}

Result<void> addApi(Policy& policy, const Provider& provider, const std::string& ca_file) {
  std::string host(provider.host);
  if (const char* base = variable(provider.base_env)) {
    // The variable is set inside, so it must hold no credential.
    if (std::string_view(base).find_first_of("?#@") != std::string_view::npos)
      return fail(usageError(std::string(provider.base_env),
                             "the agent would be able to read what it holds beside "
                             "the address of a server",
                             "leave out user, password, query and fragment"));
    const auto named = hostOf(base);
    if (!named)
      return fail(usageError(std::string(provider.base_env), "it is not an https:// address with a host name",
                             "a key is never sent without TLS"));
    host = *named;
    if (auto set = policy.append("environment.set", std::string(provider.base_env) + "=" + base); !set) return set;
  }
  policy::Network& network = policy.model().network;
  if (auto allowed = policy.append("network.allowed_hosts", host); !allowed) return allowed;
  std::string placeholder = "caisson-credential-" + std::string(provider.name);
  if (!isConfigured(network, provider, host)) {
    network.credentials.push_back({.name = std::string(provider.name),
                                   .host = host,
                                   .header = std::string(provider.header),
                                   .value = std::string(provider.value),
                                   .secret_env = std::string(provider.key_env),
                                   .secret_file = {},
                                   .env = std::string(provider.key_env),
                                   .ca_file = ca_file});
  }
  if (provider.also_env.empty()) return {};
  return policy.append("environment.set", std::string(provider.also_env) + "=" + placeholder);
}

const Provider* withKey(std::string_view name) {
  for (const Provider& provider : kProviders)
    if (provider.name == name && variable(provider.key_env) != nullptr) return &provider;
  return nullptr;
}

Error noKey(std::string_view name) {
  std::string variables, known;
  for (const Provider& provider : kProviders) {
    if (provider.name == name) variables += (variables.empty() ? "" : " or ") + std::string(provider.key_env);
    if (known.find(provider.name) == std::string::npos)
      known += (known.empty() ? "" : ", ") + std::string(provider.name);
  }
  if (variables.empty()) return usageError("--api " + std::string(name), "unknown API", "there are " + known);
  return usageError("--api " + std::string(name), "its key is not set", "set " + variables);
}

}  // namespace

std::span<const Provider> providers() { return kProviders; }

Result<std::vector<const Provider*>> addApis(Policy& policy, const KnownAgent* agent, const ApiChoice& choice) {
  std::vector<const Provider*> used;
  for (const std::string& name : choice.names) {
    const Provider* provider = withKey(name);
    if (provider == nullptr) return fail(noKey(name));
    used.push_back(provider);
  }
  if (choice.names.empty() && agent != nullptr) {
    for (const std::string_view name : agent->apis)
      if (const Provider* provider = withKey(name)) used.push_back(provider);
  }
  if (!used.empty() && policy.model().network.mode == policy::NetworkMode::none) {
    if (auto set = policy.set("network.mode", "proxy"); !set) return fail(set.error());
  }
  for (const Provider* provider : used)
    if (auto added = addApi(policy, *provider, choice.ca_file); !added) return fail(added.error());
  return used;
}

}  // namespace caisson::cli
