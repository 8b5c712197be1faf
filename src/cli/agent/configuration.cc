#include "cli/agent/configuration.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "audit/redact.h"
#include "base/json_writer.h"
#include "cli/options.h"
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

bool isValueHarmless(std::string_view value) {
  return value == "true" || value == "false" || value == "null" ||
         value.find_first_not_of("0123456789.") == std::string_view::npos;
}

bool isSecretWord(std::string_view word) { return audit::redactArgument(word) != word; }

/// `"NAME": "value"` and `name = "value"` as NAME=value, which the redaction of commands knows.
std::string asAssignment(std::string_view piece) {
  std::string text;
  for (const char letter : piece)
    if (letter != '"' && letter != '\'' && std::isspace(static_cast<unsigned char>(letter)) == 0) text += letter;
  const std::size_t sign = text.find_first_of(":=");
  if (sign == std::string::npos) return text;
  if (isValueHarmless(std::string_view(text).substr(sign + 1))) return {};
  text[sign] = '=';
  return text;
}

bool anyPiece(std::string_view text, std::string_view separators, const auto& test) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(separators), text.size());
    // What the redaction would cut off unread counts as a secret.
    if (end > 4000 || test(text.substr(0, end))) return true;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return false;
}

void collect(const sys::RootDir& home, const std::string& path, int depth, Collected& found) {
  const auto info = home.stat(path);
  if (!info) return;  // the agent has no such file
  if (found.files.size() >= kMaxFiles || depth > kMaxDepth) {
    found.left_out.push_back(path + ": more than " + std::to_string(kMaxFiles) + " files, or too deep");
    return;
  }
  if (info->type == sys::FileType::directory) {
    const auto entries = home.list(path);
    if (!entries) return found.left_out.push_back(path + ": " + entries.error().reason);
    for (const sys::DirectoryEntry& entry : *entries) collect(home, path + "/" + entry.name, depth + 1, found);
    return;
  }
  if (info->type != sys::FileType::regular || info->size > kMaxFileSize)
    return found.left_out.push_back(path + ": not a file, or larger than 1 MiB");
  auto text = home.readFile(path, kMaxFileSize);
  if (!text) return found.left_out.push_back(path + ": it cannot be read");
  if (mayHoldSecret(path, *text)) return found.left_out.push_back(path + ": it may hold a key or a token");
  found.files.emplace_back(path, *std::move(text));
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

bool mayHoldSecret(std::string_view path, std::string_view text) {
  if (text.find('\0') != std::string_view::npos || text.find("PRIVATE KEY-----") != std::string_view::npos) return true;
  if (anyPiece(text, " \t\r\n\"'`()<>,;", isSecretWord)) return true;
  if (path.ends_with(".md") || path.ends_with(".txt")) return false;  // prose has colons everywhere
  return anyPiece(text, "\r\n,{}[]", [](std::string_view piece) { return isSecretWord(asAssignment(piece)); });
}

Result<std::vector<std::string>> copyConfiguration(Session& session, const KnownAgent& agent,
                                                   const std::vector<const Provider*>& apis) {
  Collected found;
  const char* variable = std::getenv("HOME");
  if (variable != nullptr && *variable == '/') {
    const auto home = sys::RootDir::open(variable);
    if (home)
      for (const std::string_view path : agent.settings) collect(*home, std::string(path), 0, found);
  }
  addGenerated(agent, apis, found);
  for (auto& [path, text] : found.files)
    if (auto done = put(session, path, std::move(text)); !done) return fail(done.error());
  return found.left_out;
}

}  // namespace caisson::cli
