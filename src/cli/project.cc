#include "cli/project.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>

#include "approval/owner.h"
#include "approval/store.h"
#include "approval/what.h"
#include "base/sha256.h"
#include "cli/approval.h"
#include "cli/output.h"
#include "cli/safe_text.h"
#include "policy/decode/decode.h"
#include "policy/decode/validate.h"
#include "policy/describe/explain.h"

namespace caisson::cli {
namespace {

constexpr std::string_view kName = "caisson.toml";
constexpr int kMaxLevels = 64;
constexpr std::int64_t kConsentSeconds = 365L * 24 * 3600;

/// Returns the nearest file of that name from `start` upward, or "". The search ends before the home directory and
/// before /.
std::string findProjectFile(const std::string& start = {}) {
  std::error_code error;
  const auto here = start.empty() ? std::filesystem::current_path(error) : std::filesystem::canonical(start, error);
  if (error || !here.is_absolute()) return {};
  const char* home = std::getenv("HOME");
  std::string directory = here.string();
  for (int level = 0; level < kMaxLevels && directory.size() > 1; ++level) {
    if (home != nullptr && directory == home) return {};
    std::string file = directory + "/" + std::string(kName);
    if (::access(file.c_str(), F_OK) == 0) return file;
    directory.resize(std::max<std::size_t>(directory.rfind('/'), 1));
  }
  return {};
}

/// The name of the owner's consent to this content in this place: the same file in another repository needs another
/// one.
std::string consentFor(const std::string& file, std::string_view text) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(file);
  // Resolve links of the directory, not of the file itself: a link to a trusted file is not the same project.
  const std::filesystem::path directory = std::filesystem::canonical(path.parent_path(), error);
  const std::string place = (directory / path.filename()).string();
  return "project:" + hex(Sha256().add(place).add(std::uint8_t{0}).add(text).finish());
}

Result<Policy> decodeProject(std::string_view text, const std::string& file) {
  auto owner = approval::loadOwner();
  if (!owner) return fail(owner.error());
  auto document = policy::readText(text, policy::Format::toml, file);
  if (!document) return fail(document.error());
  const policy::Ceilings none = approval::noCeilings();
  policy::Origin origin;
  origin.ceilings = &none;
  auto model = policy::decode(*document, origin);
  if (!model) return fail(model.error());
  if (auto checked = owner->check(*model); !checked) {
    return fail(checked.error());
  }
  // Only an owner may configure which secrets leave this machine and where to; a repository must not.
  if (!model->network.credentials.empty()) {
    return fail(plainError(Stage::policy, "policy", file, "a project's policy cannot name network.credentials",
                           "put them in a policy of your own and use --policy"));
  }
  return Policy(std::move(*model));
}

/// Lists what lowers the protection, for the question: in the whole policy it is easy to overlook.
std::string loweredText(const policy::Policy& policy) {
  std::string text;
  for (const std::string& what : approval::loweredProtection(policy))
    text += "\n  It lowers the protection: " + approval::meaning(what);
  return text;
}

std::int64_t now() { return static_cast<std::int64_t>(::time(nullptr)); }

Result<bool> isConsented(const std::string& consent) {
  auto store = approval::Store::open();
  if (!store) return fail(store.error());
  const auto approvals = store->list(now());
  if (!approvals) return fail(approvals.error());
  return std::ranges::any_of(*approvals, [&](const approval::Approval& one) { return one.what == consent; });
}

int trust(const Arguments& arguments) {
  if (arguments.operands.size() > 1) {
    return complain(usageError("policy trust", "expected one file", "caisson policy trust caisson.toml"));
  }
  const std::string file = arguments.operands.empty() ? findProjectFile() : std::string(arguments.operands[0]);
  if (file.empty()) {
    return complain(usageError("policy trust", "no caisson.toml here or above", "name the file"));
  }
  auto text = policy::readRegularFile(file);
  if (!text) return complain(text.error());
  auto policy = decodeProject(*text, file);
  if (!policy) return complain(policy.error());
  const std::string question = safeLines(policy::explain(policy->model())) + "\ncaisson: " + safeLine(file) +
                               loweredText(policy->model()) +
                               "\n  Use this policy for commands started in its directory, as long as it stays as it "
                               "is? [y/N] ";
  if (!askOwner(question)) {
    return complain(usageError("policy trust", "needs an owner's answer on a terminal, which was not given"));
  }
  auto store = approval::Store::open();
  if (!store) return complain(store.error());
  const auto granted = store->grant({.what = consentFor(file, *text),
                                     .scope = approval::Scope::timed,
                                     .expires = now() + kConsentSeconds,
                                     .by = "terminal"},
                                    now());
  if (!granted) return complain(granted.error());
  return print("consented; revoke it with: caisson approvals revoke " + granted->id + "\n");
}

}  // namespace

Result<std::optional<Policy>> projectPolicy(const ProjectLookup& lookup) {
  const std::string file = findProjectFile(lookup.directory);
  if (file.empty()) return std::nullopt;
  auto text = policy::readRegularFile(file);
  if (!text) {
    tell(file + " is not used: it is not a readable file");
    return std::nullopt;
  }
  const std::string consent = consentFor(file, *text);
  const auto consented = isConsented(consent);
  if (!consented) return fail(consented.error());
  if (!*consented && lookup.trust) {
    auto recorded = approval::recordAnswer(consent, "--trust on the command line", true);
    if (!recorded) return fail(recorded.error());
  }
  if (!*consented && !lookup.trust) {
    tell(file + " is not used: a repository's policy needs your consent; `caisson policy trust` shows it and asks");
    return std::nullopt;
  }
  auto policy = decodeProject(*text, file);
  if (!policy) return fail(policy.error());
  return std::optional<Policy>(*std::move(policy));
}

constinit const Verb kPolicyTrust{
    .path = "policy trust",
    .summary = "Consent to a project's caisson.toml",
    .description =
        "Shows what the policy says and asks, on the terminal, whether commands started in its directory may use it. "
        "The consent holds for exactly this content in this place, for a year, and can be revoked with `caisson "
        "approvals revoke`.",
    .examples = "caisson policy trust",
    .topic = Topic::policy,
    .syntax = {.operands = "[FILE]"},
    .perform = trust,
};

}  // namespace caisson::cli
