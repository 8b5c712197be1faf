#include "approval/what.h"

#include <algorithm>

#include "policy/decode/syntax.h"
#include "policy/model.h"

namespace caisson::approval {

namespace {

constexpr std::size_t kMaxSubjectBytes = 512;

bool isWord(std::string_view text) {
  return !text.empty() && text.size() <= 128 && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
  });
}

bool isDigest(std::string_view text) {
  return text.size() == 64 &&
         std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool isHost(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  const bool bracketed = text.ends_with(']');
  if (colon != std::string_view::npos && !bracketed && text.find(':') == colon) {
    if (policy::findFlaw(policy::Syntax::port, text.substr(colon + 1))) return false;
    text = text.substr(0, colon);
  }
  return text != "*" && !policy::findFlaw(policy::Syntax::host_pattern, text);
}

struct Rung {
  policy::OptionalLayer layer;
  std::string_view name, meaning;
};
/// The rungs that an owner must know of. The built-in profiles use the other optional layers.
constexpr Rung kRungs[] = {
    {policy::OptionalLayer::proc_subset, "proc_subset",
     "where the host refuses a whole /proc, the command gets one with its own processes only"},
    {policy::OptionalLayer::proc_bound, "proc_bound",
     "where the host refuses a new /proc, the command sees the names and command lines of all processes around it"},
    {policy::OptionalLayer::landlock, "landlock",
     "where the host refuses user namespaces, the command runs without namespaces: it sees the host's processes and "
     "the names of its files"},
    {policy::OptionalLayer::runtime, "runtime",
     "an OCI runtime isolates the command, without the layers that it does not know"},
};

const Rung* findRung(std::string_view name) {
  const auto* found = std::ranges::find(kRungs, name, &Rung::name);
  return found == std::end(kRungs) ? nullptr : found;
}

bool isSubject(std::string_view kind, std::string_view subject) {
  if (kind == "level") return subject == "none" || subject == "process";
  if (kind == "tier") return subject == "landlock";
  if (kind == "weaker") return findRung(subject) != nullptr;
  if (kind == "audit") return subject == "off";
  if (kind == "net") return subject == "host" || subject == "proxy";
  if (kind == "user") return subject == "root";
  if (kind == "image")
    return subject != "host" && !subject.starts_with('/') && !policy::findFlaw(policy::Syntax::root, subject);
  if (kind == "host") return isHost(subject);
  if (kind == "path" || kind == "commit") return !policy::findFlaw(policy::Syntax::shown_path, subject);
  if (kind == "project") return isDigest(subject);
  return (kind == "tool" || kind == "policy" || kind == "profile") && isWord(subject);
}

}  // namespace

Result<void> checkWhat(std::string_view what) {
  const std::size_t colon = what.find(':');
  const bool printable = std::ranges::all_of(what, [](char c) { return c > 0x20 && c < 0x7F; });
  if (printable && what.size() <= kMaxSubjectBytes && colon != std::string_view::npos &&
      isSubject(what.substr(0, colon), what.substr(colon + 1))) {
    return {};
  }
  std::string shown;
  for (const char c : what.substr(0, 80)) shown += c > 0x20 && c < 0x7F ? c : '?';
  return fail(plainError(Stage::usage, "approve", shown, "not something that can be approved",
                         "name one of " + std::string(kApprovable)));
}

std::string meaning(std::string_view what) {
  const std::size_t colon = std::min(what.find(':'), what.size() - 1);
  const std::string_view kind = what.substr(0, colon);
  const std::string subject(what.substr(colon + 1));
  if (what == "level:process")
    return "the command runs at level process: it sees the host's system files, and fewer system calls are blocked";
  if (what == "tier:landlock")
    return "the command runs without namespaces: it sees the host's processes and the names of its files";
  if (const Rung* rung = kind == "weaker" ? findRung(subject) : nullptr) return std::string(rung->meaning);
  if (what == "audit:off") return "nothing about the command is recorded in the audit log";
  if (kind == "level")
    return "the command runs with no isolation at all: it can read, change and send whatever you can";
  if (what == "net:host") return "the command has the host's own network: every host and service you can reach";
  if (what == "net:proxy") return "the command reaches the hosts its policy names, through the egress filter";
  if (what == "user:root") return "the command is root inside its sandbox, and can install packages there";
  if (kind == "image") return "the command runs programs of the image " + subject + " instead of this computer's";
  if (kind == "profile") return "a model may make sandboxes with the profile " + subject + " instead of your default";
  if (kind == "host") return "the command can send anything it sees to " + subject;
  if (kind == "path") return "the command can read " + subject;
  if (kind == "commit")
    return "what sandboxes change is written to the real files below " + subject + " without showing you each change";
  if (kind == "tool")
    return "the tool " + subject + " may do what its declaration asks for: a shell below level full, or network";
  if (kind == "project") return "a policy file of a repository decides what its commands may do";
  return "the policy requires an approval of \"" + subject + "\"";
}

std::vector<std::string> loweredProtection(const policy::Policy& policy) {
  std::vector<std::string> lowered;
  if (policy.isolation.level == policy::Level::process) lowered.emplace_back("level:process");
  if (policy.isolation.tier == policy::Tier::landlock) lowered.emplace_back("tier:landlock");
  for (const Rung& rung : kRungs) {
    if (std::ranges::find(policy.isolation.may_be_missing, rung.layer) != policy.isolation.may_be_missing.end()) {
      lowered.push_back("weaker:" + std::string(rung.name));
    }
  }
  if (!policy.audit.enabled) lowered.emplace_back("audit:off");
  return lowered;
}

}  // namespace caisson::approval
