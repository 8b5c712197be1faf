#include "plan/credentials.h"

#include <algorithm>

#include "policy/decode/syntax.h"
#include "policy/rules/credential.h"

namespace caisson::plan {
namespace {

/// Variables that name a CA file: for OpenSSL, Go and Python; curl; requests; git; cargo; node; pip; the AWS programs;
/// deno.
constexpr const char* kTrustVariables[] = {"SSL_CERT_FILE",  "CURL_CA_BUNDLE",    "REQUESTS_CA_BUNDLE",
                                           "GIT_SSL_CAINFO", "CARGO_HTTP_CAINFO", "NODE_EXTRA_CA_CERTS",
                                           "PIP_CERT",       "AWS_CA_BUNDLE",     "DENO_CERT"};

/// Where distributions keep their CA bundle.
constexpr const char* kBundles[] = {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"};

/// What shows the host path `path` in the sandbox ("the workspace", "filesystem.read_only"), or nothing.
std::string_view shownBy(const std::string& path, const HostFacts& host, const Plan& plan) {
  const auto within = [&](const std::string& top) { return !top.empty() && policy::isWithin(path, top); };
  if (plan.workspace_shown && within(host.workspace.path)) return "the workspace";
  const auto holds = [&](const HostPath& one) { return within(one.path); };
  if (std::ranges::any_of(host.read_only, holds)) return "filesystem.read_only";
  if (std::ranges::any_of(host.read_write, holds)) return "filesystem.read_write";
  for (const auto& [directory, link] : host.system_directories) {
    if (within(directory)) return "the system's directories";
  }
  return {};
}

}  // namespace

bool addsCredentials(const policy::Network& network) {
  return network.mode == policy::NetworkMode::proxy && !network.credentials.empty();
}

void addTrustFile(const policy::Policy& policy, Plan& plan) {
  if (!addsCredentials(policy.network)) return;
  plan.steps.push_back(MakeDirectory{"/etc/caisson"});
  plan.steps.push_back(MakeFile{std::string(kTrustFile), {}});
  // For programs that read none of the variables.
  for (const char* bundle : kBundles) {
    plan.steps.push_back(Bind{.source = std::string(kTrustFile),
                              .target = bundle,
                              .executable = false,
                              .optional = true,
                              .inside = true,
                              .type = SourceType::file});
  }
}

Result<void> checkCredentials(const policy::Policy& policy, const HostFacts& host, const Plan& plan) {
  if (!addsCredentials(policy.network)) return {};
  if (!plan.own_root || plan.host_view) {
    return fail(
        plainError(Stage::plan, "plan", "network.credentials",
                   "credentials need a separate root file system, with a certificate file for the programs inside",
                   "use level full"));
  }
  for (const policy::Credential& one : policy.network.credentials) {
    if (one.secret_file.empty()) continue;
    const std::string path = policy::normalPath(one.secret_file);
    if (const std::string_view shown = shownBy(path, host, plan); !shown.empty()) {
      return fail(plainError(Stage::plan, "plan", path,
                             "the secret's file would be seen inside: it lies in " + std::string(shown),
                             "keep it in a directory that the sandbox does not show"));
    }
  }
  return {};
}

void dropSecretVariables(const policy::Policy& policy, std::map<std::string, std::string>& environment) {
  for (const policy::Credential& one : policy.network.credentials) environment.erase(one.secret_env);
}

void addCredentialVariables(const policy::Policy& policy, std::map<std::string, std::string>& environment) {
  for (const char* name : kTrustVariables) environment[name] = kTrustFile;
  for (const policy::Credential& one : policy.network.credentials) {
    if (!one.env.empty()) environment[one.env] = policy::placeholderOf(one);
  }
}

void putTrust(Plan& plan, std::string certificates) {
  for (Step& step : plan.steps) {
    auto* file = std::get_if<MakeFile>(&step);
    if (file == nullptr || file->target != kTrustFile) continue;
    file->content = std::move(certificates);
    return;
  }
}

}  // namespace caisson::plan
