#include "cli/project.h"

#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>

#include "approval/owner.h"
#include "approval/store.h"
#include "approval/what.h"
#include "base/path_parts.h"
#include "base/sha256.h"
#include "base/shell_quote.h"
#include "cli/approval.h"
#include "cli/output.h"
#include "cli/reader_process.h"
#include "cli/safe_text.h"
#include "policy/decode/decode.h"
#include "policy/decode/validate.h"
#include "policy/describe/explain.h"
#include "sys/home_directory.h"

namespace caisson::cli {
namespace {

constexpr std::string_view kName = "caisson.toml";
constexpr int kMaxLevels = 64;
constexpr std::int64_t kConsentSeconds = 365L * 24 * 3600;

/// Returns the files of that name from `start` upward, the nearest first. The search ends before the home directory and
/// before /.
std::vector<std::string> findProjectFiles(const std::string& start = {}) {
  std::error_code error;
  const auto here = start.empty() ? std::filesystem::current_path(error) : std::filesystem::canonical(start, error);
  if (error || !here.is_absolute()) return {};
  const std::vector<std::string> homes = sys::homeDirectories();
  std::string directory = here.string();
  std::vector<std::string> files;
  for (int level = 0; level < kMaxLevels && directory.size() > 1; ++level) {
    if (std::ranges::find(homes, directory) != homes.end()) break;
    std::string file = directory + "/" + std::string(kName);
    if (::access(file.c_str(), F_OK) == 0) files.push_back(std::move(file));
    directory.resize(std::max<std::size_t>(directory.rfind('/'), 1));
  }
  return files;
}

std::string placeOf(const std::string& file) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(file);
  // Resolve links of the directory, not of the file itself: a link to a trusted file is not the same project.
  const std::filesystem::path directory = std::filesystem::canonical(path.parent_path(), error);
  return (directory / path.filename()).string();
}

/// The digest of the file's path, by which a consent to other content of the same file is found.
std::string placeDigest(const std::string& file) { return hex(Sha256().add(placeOf(file)).finish()); }

/// The name of the owner's consent to this content in this place: the same file in another repository needs another
/// one.
std::string consentFor(const std::string& file, std::string_view text) {
  return "project:" + hex(Sha256().add(placeOf(file)).add(std::uint8_t{0}).add(text).finish());
}

Result<Policy> decodeProject(std::string_view text, const std::string& file, const approval::Owner& owner) {
  auto document = policy::readText(text, policy::Format::toml, file);
  if (!document) return fail(document.error());
  const policy::Ceilings none = approval::noCeilings();
  policy::Origin origin;
  origin.ceilings = &none;
  auto model = policy::decode(*document, origin);
  if (!model) return fail(model.error());
  if (auto checked = owner.check(*model); !checked) {
    return fail(checked.error());
  }
  // Only an owner may configure which secrets leave this machine and where to; a repository must not.
  if (!model->network.credentials.empty()) {
    return fail(plainError(Stage::policy, "policy", file, "a project's policy cannot name network.credentials",
                           "put them in a policy of your own and use --policy"));
  }
  return Policy(std::move(*model));
}

Result<Policy> decodeProject(std::string_view text, const std::string& file) {
  const auto owner = approval::loadOwner();
  return owner ? decodeProject(text, file, *owner) : fail(owner.error());
}

/// Lists what lowers the protection, for the question: in the whole policy it is easy to overlook.
std::string loweredText(const policy::Policy& policy) {
  std::string text;
  for (const std::string& what : approval::loweredProtection(policy))
    text += "\n  It lowers the protection: " + approval::meaning(what);
  return text;
}

std::int64_t now() { return static_cast<std::int64_t>(::time(nullptr)); }

using Consents = std::vector<approval::Approval>;

Result<Consents> loadConsents() {
  auto store = approval::Store::open();
  if (!store) return fail(store.error());
  auto approvals = store->list(now());
  if (!approvals) return approvals;
  std::erase_if(*approvals, [](const approval::Approval& one) { return !one.what.starts_with("project:"); });
  return approvals;
}

/// The consent to exactly this content of the file, or null.
const approval::Approval* findConsent(const Consents& consents, const std::string& file, std::string_view text) {
  const auto found = std::ranges::find(consents, consentFor(file, text), &approval::Approval::what);
  return found == consents.end() ? nullptr : &*found;
}

/// The consent to this or another content of the file, or null.
const approval::Approval* findAnyConsent(const Consents& consents, const std::string& file) {
  const auto found = std::ranges::find(consents, placeDigest(file), &approval::Approval::place);
  if (found != consents.end()) return &*found;
  const auto text = policy::readRegularFile(file);  // older records have no place
  return text ? findConsent(consents, file, *text) : nullptr;
}

/// Refuses where the owner consented to another content of the nearest file, or to a file above it. That policy may
/// deny more than the default: who changes a byte of it, or adds a file, must not switch it off.
Result<void> checkNothingReplaced(const std::vector<std::string>& files, const Consents& consents) {
  const std::string& nearest = files.front();
  for (const std::string& file : files) {
    const approval::Approval* consent = findAnyConsent(consents, file);
    if (consent == nullptr) continue;
    const std::string trust = "`caisson policy trust " + shellQuoted(nearest) + "` shows the policy and asks";
    if (&file == &nearest)
      return fail(plainError(Stage::policy, "policy", nearest, "it is not the content that you consented to",
                             "see what changed, for example with `git diff`; " + trust +
                                 ", `caisson approvals revoke " + consent->id + "` forgets the consent"));
    return fail(plainError(Stage::policy, "policy", nearest,
                           "you did not consent to it, and it would replace " + file + ", which you consented to",
                           "compare both files; " + trust + ", `--policy " + shellQuoted(file) +
                               "` uses the other, `caisson approvals revoke " + consent->id + "` forgets it"));
  }
  return {};
}

/// Stores the consent, in place of earlier ones to other content of this file: an older content must not come back.
Result<approval::Approval> keepConsent(const std::string& file, std::string_view text) {
  auto store = approval::Store::open();
  if (!store) return fail(store.error());
  auto granted = store->grant({.what = consentFor(file, text),
                               .scope = approval::Scope::timed,
                               .expires = now() + kConsentSeconds,
                               .by = "terminal",
                               .place = placeDigest(file)},
                              now());
  if (!granted) return granted;
  const auto approvals = store->list(now());
  if (!approvals) return fail(approvals.error());
  for (const approval::Approval& one : *approvals) {
    if (one.place != granted->place || one.id == granted->id) continue;
    if (auto revoked = store->revoke(one.id, now()); !revoked) return fail(revoked.error());
  }
  return granted;
}

/// What the policy says, and what of it lowers the protection. Before the consent a confined process reads the file: a
/// repository could attack the reader with it.
struct ProjectSummary {
  std::string explained, lowered;
};

Result<ProjectSummary> summarize(std::string_view text, const std::string& file) {
  const auto owner = approval::loadOwner();
  if (!owner) return fail(owner.error());
  const auto both = readConfined(file, [&]() -> Result<std::string> {
    const auto policy = decodeProject(text, file, *owner);
    if (!policy) return fail(policy.error());
    return policy::explain(policy->model()) + '\0' + loweredText(policy->model());
  });
  if (!both) return fail(both.error());
  const std::size_t end = std::min(both->find('\0'), both->size());
  return ProjectSummary{both->substr(0, end), both->substr(std::min(end + 1, both->size()))};
}

int trust(const Arguments& arguments) {
  if (arguments.operands.size() > 1) {
    return printError(usageError("policy trust", "expected one file", "caisson policy trust caisson.toml"));
  }
  std::vector<std::string> files = findProjectFiles();
  if (!arguments.operands.empty()) files = {std::string(arguments.operands[0])};
  if (files.empty()) return printError(usageError("policy trust", "no caisson.toml here or above", "name the file"));
  const std::string& file = files.front();
  auto text = policy::readRegularFile(file);
  if (!text) return printError(text.error());
  const auto summary = summarize(*text, file);
  if (!summary) return printError(summary.error());
  const auto consents = loadConsents();
  if (!consents) return printError(consents.error());
  const bool changed = findAnyConsent(*consents, file) != nullptr && findConsent(*consents, file, *text) == nullptr;
  const std::string question = safeLines(summary->explained) + "\ncaisson: " + safeLine(file) +
                               (changed ? "\n  You consented to another content of this file before." : "") +
                               safeLines(summary->lowered) +
                               "\n  Use this policy for commands started in its directory, as long as it stays as it "
                               "is? [y/N] ";
  if (!askOwner(question)) {
    return printError(usageError("policy trust", "needs an owner's answer on a terminal, which was not given"));
  }
  const auto granted = keepConsent(file, *text);
  if (!granted) return printError(granted.error());
  return print("consented; revoke it with: caisson approvals revoke " + granted->id + "\n");
}

}  // namespace

Result<std::optional<ProjectPolicy>> projectPolicy(const ProjectLookup& lookup) {
  const std::vector<std::string> files = findProjectFiles(lookup.directory);
  if (files.empty()) return std::nullopt;
  const std::string& file = files.front();
  auto text = policy::readRegularFile(file);
  const auto consents = loadConsents();
  if (!consents) return fail(consents.error());
  const bool consented = text && findConsent(*consents, file, *text) != nullptr;
  if (!consented && !lookup.trust) {
    if (auto checked = checkNothingReplaced(files, *consents); !checked) return fail(checked.error());
  }
  if (!text) {
    printNotice(file + " is not used: it is not a readable file");
    return std::nullopt;
  }
  if (!consented && lookup.trust) {
    auto recorded = approval::recordAnswer(consentFor(file, *text), "--trust on the command line", true);
    if (!recorded) return fail(recorded.error());
  }
  if (!consented && !lookup.trust) {
    printNotice(file +
                " is not used: a repository's policy needs your consent; `caisson policy trust` shows it and asks");
    return std::nullopt;
  }
  auto policy = decodeProject(*text, file);
  if (!policy) return fail(policy.error());
  return ProjectPolicy{*std::move(policy), parentOf(placeOf(file))};
}

constinit const Verb kPolicyTrust{
    .path = "policy trust",
    .summary = "Consent to a project's caisson.toml",
    .description =
        "Shows what the policy says and asks, on the terminal, whether commands started in its directory may use it. "
        "The consent holds for exactly this content in this place, for a year, and can be revoked with `caisson "
        "approvals revoke`. While it holds, commands that would use another content of the file, or a caisson.toml "
        "below it without consent, are refused; --policy and --profile choose another policy.",
    .examples = "caisson policy trust",
    .topic = Topic::policy,
    .syntax = {.operands = "[FILE]"},
    .perform = trust,
};

}  // namespace caisson::cli
