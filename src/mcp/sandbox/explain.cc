#include "mcp/sandbox/explain.h"

#include <algorithm>
#include <set>

#include "base/deceptive_text.h"
#include "base/text.h"
#include "policy/decode/syntax.h"

namespace caisson::mcp {
namespace {

constexpr std::size_t kMaxExplanations = 8;
/// Paths of a command's output that are looked at.
constexpr std::size_t kMaxSuggested = 8;
constexpr std::size_t kMaxOutputRead = 16 * 1024;
constexpr std::size_t kMaxPath = 300;
constexpr std::string_view kAllowHost = "--allow-host ";

/// Text that a command chose, as part of our own sentence.
std::string quotedForModel(std::string_view text) {
  if (isReadable(text)) return inQuotes(text, kMaxPath);
  std::string plain;
  for (const char letter : text.substr(0, kMaxPath))
    plain += static_cast<unsigned char>(letter) < 0x20 || static_cast<unsigned char>(letter) > 0x7E ? '?' : letter;
  return inQuotes(plain, kMaxPath);
}

class Explanations {
 public:
  void add(std::string_view kind, const std::string& explanation, const std::string& remedy) {
    if (list_.size() < kMaxExplanations && seen_.insert(explanation).second)
      list_.push_back({{"kind", kind}, {"explanation", explanation}, {"remedy", remedy}});
  }
  [[nodiscard]] bool hasNetwork() const {
    return std::ranges::any_of(list_, [](const Json& one) { return one["kind"] == "network"; });
  }
  Json take() { return std::move(list_); }

 private:
  Json list_ = Json::array();
  std::set<std::string> seen_;
};

bool saysNoNetwork(std::string_view output) {
  constexpr std::string_view kSigns[] = {"Could not resolve host",         "Temporary failure in name resolution",
                                         "Name or service not known",      "Network is unreachable",
                                         "unable to resolve host address", "Name does not resolve",
                                         "getaddrinfo EAI_AGAIN",          "dial tcp: lookup"};
  return std::ranges::any_of(kSigns,
                             [&](std::string_view sign) { return output.find(sign) != std::string_view::npos; });
}

bool mayDelimit(char letter) {
  return letter == ' ' || letter == '\t' || letter == '\'' || letter == '"' || letter == '`' || letter == '(' ||
         letter == '=' || static_cast<unsigned char>(letter) >= 0x80;  // typographic quotes
}

/// Paths of the lines that report a refused access, such as `cp: cannot create regular file '/etc/x': Read-only file
/// system`. Relative ones are as the program printed them.
std::vector<std::string> suggestedPaths(std::string_view output) {
  constexpr std::string_view kReasons[] = {"Read-only file system", "Permission denied", "Operation not permitted",
                                           "No such file or directory"};
  std::vector<std::string> paths;
  for (const std::string_view line : split(output, '\n')) {
    if (std::ranges::none_of(kReasons, [&](auto reason) { return line.find(reason) != std::string_view::npos; }))
      continue;
    for (std::size_t at = 0; at < line.size() && paths.size() < kMaxSuggested;) {
      if (line[at] != '/' || (at > 0 && !mayDelimit(line[at - 1]))) {
        ++at;
        continue;
      }
      std::size_t end = at;
      while (end < line.size() && line[end] != ':' && !mayDelimit(line[end])) ++end;
      std::string path(line.substr(at, end - at));
      at = end;
      if (path.size() > 1 && path.size() <= kMaxPath && std::ranges::find(paths, path) == paths.end())
        paths.push_back(std::move(path));
    }
  }
  return paths;
}

void explainPath(Sandboxes& sandboxes, Sandbox& sandbox, const std::string& path,
                 const std::vector<std::string>& denied, Explanations& explanations) {
  const std::string normal = policy::normalPath(path);
  for (const std::string& one : denied) {
    if (!policy::isWithin(normal, policy::normalPath(one))) continue;
    return explanations.add("path", "access to " + quotedForModel(path) + " refused: the policy hides " + one,
                            "use another file; the operator can change filesystem.denied in the policy");
  }
  const auto access = sandboxes.with(sandbox, [&](Session& session) { return session.pathAccess(path); });
  if (!access) return;
  if (access->read_only)
    return explanations.add("path",
                            "write to " + quotedForModel(path) + " refused: the sandbox shows " +
                                quotedForModel(access->nearest) + " read-only",
                            "write below /workspace, /tmp or the home directory; the operator can show a directory "
                            "writable with --rw DIR");
  if (access->denied)
    explanations.add("path",
                     "access to " + quotedForModel(path) + " refused: commands in the sandbox have no rights to it",
                     "use another file, or ask the operator to show it with --ro or --rw");
}

/// What the policy hides. Empty if it can't be read.
std::vector<std::string> deniedPaths(Sandboxes& sandboxes, Sandbox& sandbox) {
  const auto policy = sandboxes.with(sandbox, [](Session& session) { return session.policyJson(); });
  if (!policy) return {};
  const Json all = Json::parse(*policy, nullptr, false);
  const Json* files = findObject(all, "filesystem");
  const Json* denied = files == nullptr ? nullptr : find(*files, "denied");
  std::vector<std::string> paths;
  if (denied == nullptr || !denied->is_array()) return paths;
  for (const Json& one : *denied)
    if (one.is_string()) paths.push_back(one.get<std::string>());
  return paths;
}

}  // namespace

std::string networkRemedy(const OperatorBounds& bounds, const Denial& denial) {
  if (denial.remedy.empty()) return "none: it is always blocked";
  if (bounds.fixesNetwork() || !denial.remedy.starts_with(kAllowHost))
    return "ask the operator of this server for " + printable(denial.remedy, kMaxPath);
  return "ask the user with sandbox_network, host " + printable(denial.remedy.substr(kAllowHost.size()), kMaxPath);
}

Json explainFailure(Sandboxes& sandboxes, Sandbox& sandbox, const FailedCommand& command) {
  const OperatorBounds& bounds = sandboxes.settings().bounds;
  Explanations explanations;
  for (const Denial& denial : command.denials) {
    if (denial.operation.starts_with("network:"))
      explanations.add("network",
                       "connection to " + quotedForModel(denial.object) + " refused by the network rules (" +
                           printable(denial.rule, kMaxPath) + ")",
                       networkRemedy(bounds, denial));
    if (denial.rule.starts_with("filesystem."))
      explanations.add("path",
                       denial.operation + " of " + quotedForModel(denial.object) + " refused (" + denial.rule + ")",
                       denial.remedy);
  }
  const auto info = sandboxes.with(sandbox, [](Session& session) { return session.info(); });
  if (!info) return explanations.take();
  const std::string_view whole = command.error_output;
  const std::string_view output = whole.substr(whole.size() - std::min(whole.size(), kMaxOutputRead));
  if (info->network == "none" && !explanations.hasNetwork() && saysNoNetwork(output))
    explanations.add("network", "the sandbox has no network, and the command tried to use one",
                     bounds.fixesNetwork() ? "ask the operator of this server for --net proxy --allow-host HOST"
                                           : "ask the user with sandbox_network, one host at a time");
  if (!info->live) return explanations.take();  // do not start a sandbox for this
  const std::vector<std::string> paths = suggestedPaths(output);
  if (paths.empty()) return explanations.take();
  const std::vector<std::string> denied = deniedPaths(sandboxes, sandbox);
  for (const std::string& path : paths) explainPath(sandboxes, sandbox, path, denied, explanations);
  return explanations.take();
}

void addExplanations(Json& value, const Json& explanations) {
  if (!explanations.empty()) value["explanations"] = explanations;
}

void addExplanationText(Json& result, const Json& explanations) {
  std::string text;
  for (const Json& one : explanations)
    text +=
        (text.empty() ? "" : "\n") + one["explanation"].get<std::string>() + ": " + one["remedy"].get<std::string>();
  if (!text.empty()) result["content"].push_back(textContent(text));
}

}  // namespace caisson::mcp
