#include "cli/agent/configuration.h"

#include <algorithm>
#include <cstdlib>

#include "base/json_writer.h"
#include "base/path_parts.h"
#include "base/text.h"
#include "cli/agent/settings.h"
#include "cli/options.h"
#include "policy/rules/secret_content.h"
#include "sys/root_dir.h"

namespace caisson::cli {
namespace {

constexpr std::size_t kMaxFiles = 200;
constexpr int kMaxDepth = 6;
constexpr std::uint64_t kMaxFileSize = std::uint64_t{1} << 20U;
constexpr double kCopySeconds = 30;

struct Collected {
  std::vector<std::pair<std::string, std::string>> files;  ///< path below the home, content
  std::vector<std::string> left_out;
};

/// Adds what may be copied of the text of one file.
void addFile(const SettingsFile& file, const std::string& path, std::string text, Collected& found) {
  if (file.format == SettingsFormat::text) {
    if (mayHoldSecret(path, text)) return found.left_out.push_back(path + ": it may hold a key or a token");
    found.files.emplace_back(path, std::move(text));
    return;
  }
  auto clean = cleanSettings(file, text);
  if (!clean) return found.left_out.push_back(path + ": " + clean.error());
  if (!clean->left_out.empty()) found.left_out.push_back(path + ": " + joined(clean->left_out));
  found.files.emplace_back(path, std::move(clean->text));
}

void collect(const sys::RootDir& home, const SettingsFile& file, const std::string& path, int depth, Collected& found) {
  const auto info = home.stat(path);
  if (!info) return;  // the agent has no such file
  // Compressed, so nothing in it can be judged: also what was deleted since, and the addresses of remotes.
  if (nameOf(path) == ".git") return found.left_out.push_back(path + ": it belongs to git");
  if (found.files.size() >= kMaxFiles || depth > kMaxDepth) {
    found.left_out.push_back(path + ": more than " + std::to_string(kMaxFiles) + " files, or too deep");
    return;
  }
  if (info->type == sys::FileType::directory && file.format == SettingsFormat::text) {
    const auto entries = home.list(path);
    if (!entries) return found.left_out.push_back(path + ": " + entries.error().reason);
    for (const sys::DirectoryEntry& entry : *entries) collect(home, file, path + "/" + entry.name, depth + 1, found);
    return;
  }
  if (info->type != sys::FileType::regular || info->size > kMaxFileSize)
    return found.left_out.push_back(path + ": not a file, or larger than 1 MiB");
  auto text = home.readFile(path, kMaxFileSize);
  if (!text) return found.left_out.push_back(path + ": it cannot be read");
  const policy::SecretJudgement judged =
      policy::judgeSecret(home.knownAs() + "/" + directoryOf(path), nameOf(path), false);
  if (file.format == SettingsFormat::text && policy::secretIn(judged, *text))
    return found.left_out.push_back(path + ": it may hold a key or a token");
  addFile(file, path, *std::move(text), found);
}

/// The first link on the way to a file; empty if there is none. What a link leads to is not what the table names.
std::string linkIn(const sys::RootDir& home, std::string_view path) {
  for (std::size_t end = path.find('/');; end = path.find('/', end + 1)) {
    const std::string part(path.substr(0, end));
    const auto info = home.stat(part);
    if (info && info->type == sys::FileType::link) return part;
    if (end == std::string_view::npos) return {};
  }
}

void collectAll(const sys::RootDir& home, const KnownAgent& agent, Collected& found) {
  for (const SettingsFile& file : agent.settings) {
    const std::string link = linkIn(home, file.path);
    const std::string note = link + ": it is a link";
    if (link.empty()) {
      collect(home, file, std::string(file.path), 0, found);
    } else if (std::ranges::find(found.left_out, note) == found.left_out.end()) {
      found.left_out.push_back(note);
    }
  }
  for (const std::string_view path : agent.credentials)
    if (home.stat(path)) found.left_out.push_back(std::string(path) + ": it holds credentials");
}

/// What the agents ask a new user for: their first start is over, and the key is the placeholder.
void addGenerated(const KnownAgent& agent, const std::vector<const Provider*>& apis, Collected& found) {
  if (apis.empty()) return;
  const std::string placeholder = "caisson-credential-" + std::string(apis.front()->name);
  JsonWriter json;
  if (agent.program == "claude") {
    json.beginObject().key("hasCompletedOnboarding").boolean(true);
    json.key("customApiKeyResponses").beginObject().key("approved").beginArray();
    json.string(placeholder.substr(placeholder.size() - std::min<std::size_t>(placeholder.size(), 20)));
    json.end().key("rejected").beginArray().end().end().end();
    found.files.emplace_back(".claude.json", json.text() + "\n");
  }
  if (agent.program == "codex") {
    json.beginObject().key("OPENAI_API_KEY").string(placeholder).end();
    found.files.emplace_back(".codex/auth.json", json.text() + "\n");
  }
}

/// The session's file operations reach the workspace only, so a command inside writes it.
Result<void> put(Session& session, const std::string& path, std::string text) {
  ExecRequest request;
  request.command = {"sh", "-c", R"(umask 077; p=$HOME/$1; mkdir -p -- "${p%/*}" && cat > "$p")", "sh", path};
  request.input = std::move(text);
  request.timeout_seconds = kCopySeconds;
  const auto result = session.exec(request);
  if (!result) return fail(result.error());
  if (exitStatus(*result) == 0) return {};
  return fail(
      plainError(Stage::state, "agent", path, "the session's home cannot hold it", "name a larger one in a policy"));
}

}  // namespace

Result<std::vector<std::string>> copyConfiguration(Session& session, const KnownAgent& agent,
                                                   const std::vector<const Provider*>& apis) {
  Collected found;
  const char* variable = std::getenv("HOME");
  if (variable != nullptr && *variable == '/') {
    const auto home = sys::RootDir::open(variable);
    if (home) collectAll(*home, agent, found);
  }
  addGenerated(agent, apis, found);
  for (auto& [path, text] : found.files)
    if (auto done = put(session, path, std::move(text)); !done) return fail(done.error());
  return found.left_out;
}

}  // namespace caisson::cli
