#include "image_store/build/sandbox_step.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/safe_text.h"
#include "base/text.h"
#include "session/layers/root_layers.h"
#include "session/store/metadata.h"
#include "supervise/disk/foreign_files.h"
#include "sys/state_home.h"

namespace caisson::image {
namespace {

constexpr double kStepSeconds = 3600;

/// Profile `dev` on the image, as root of the sandbox, without a workspace.
Result<Policy> stepPolicy(const SandboxStep& step) {
  auto policy = Policy::profile("dev");
  if (!policy) return policy;
  std::vector<std::pair<std::string_view, std::string>> settings = {
      {"filesystem.root", step.root}, {"isolation.user", "root"}, {"filesystem.workspace.mode", "none"}};
  if (!step.hosts.empty()) settings.emplace_back("network.mode", "proxy");
  for (const auto& [key, value] : settings)
    if (auto set = policy->set(key, value); !set) return fail(set.error());
  for (const std::string& host : step.hosts)
    if (auto added = policy->append("network.allowed_hosts", host); !added) return fail(added.error());
  return policy;
}

Result<void> checkResult(const Result<RunResult>& result, const SandboxStep& step) {
  if (!result) return fail(result.error());
  if (result->error) return fail(*result->error);
  const int status = exitStatus(*result);
  if (status == 0) return {};
  return fail(plainError(Stage::exec, "build", "RUN " + printable(joined(step.command, " "), 200),
                         "the command exited with status " + std::to_string(status),
                         step.hosts.empty() ? "a command that needs the network: --allow-host HOST" : ""));
}

/// Destroys the session when it goes out of scope.
struct DestroySession {
  Session* session;
  ~DestroySession() { (void)session->destroy(); }
};

}  // namespace

Result<std::vector<sys::RootDir>> rootChanges(const std::string& session_id) {
  const std::string home = sys::stateHome();
  const auto directory = sys::RootDir::open(home + "/sessions/" + session_id);
  if (!directory) return fail(directory.error());
  const auto metadata = session::readMetadata(*directory);
  if (!metadata) return fail(metadata.error());
  std::vector<std::string> names = metadata->root_frozen;
  names.insert(names.begin(), metadata->root_upper);
  const auto roots = sys::RootDir::open(home + "/stores/" + session::rootsOf(metadata->family));
  std::vector<sys::RootDir> layers;
  for (auto name = names.rbegin(); roots && name != names.rend(); ++name) {
    auto layer = roots->enter(*name + "/upper");
    if (!layer && layer.error().sys_errno == ENOENT) continue;  // nothing was written since a checkpoint
    if (!layer) return fail(layer.error());
    if (auto claimed = supervise::claimTree(layer->descriptor()); !claimed) return fail(claimed.error());
    layers.push_back(std::move(*layer));
  }
  if (!layers.empty()) return layers;
  return fail(plainError(Stage::state, "image", session_id, "the session's root is not writable",
                         "create it with an image and isolation.user = \"root\", and run a command in it"));
}

/// Shows the output of a command on standard error. It is a stranger's, so the terminal gets no escape sequences of it.
class StepOutput {
 public:
  void print(OutputStreamKind stream, std::string_view text) {
    std::string& kept = stream == OutputStreamKind::out ? out_ : err_;
    std::string whole = std::move(kept) + std::string(text);
    const std::size_t cut = incompleteCharacter(whole);
    kept = whole.substr(whole.size() - cut);
    whole.resize(whole.size() - cut);
    for (char& letter : whole)
      if (letter == '\r') letter = '\n';  // progress bars
    const std::string safe = safeLines(whole);
    (void)!::write(STDERR_FILENO, safe.data(), safe.size());
  }

 private:
  /// How many bytes at the end begin a character of UTF-8 that is not complete yet.
  static std::size_t incompleteCharacter(std::string_view text) {
    for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
      const auto byte = static_cast<unsigned char>(text[text.size() - back]);
      if ((byte & 0xC0U) == 0x80U) continue;
      const std::size_t length = byte >= 0xF0U ? 4 : byte >= 0xE0U ? 3 : byte >= 0xC0U ? 2 : 1;
      return length > back ? back : 0;
    }
    return 0;
  }

  std::string out_, err_;
};

Result<void> runStep(const SandboxStep& step, const std::function<Result<void>(const sys::RootDir& upper)>& use) {
  auto policy = stepPolicy(step);
  if (!policy) return fail(policy.error());
  auto sessions = SessionStore::open(step.program);
  if (!sessions) return fail(sessions.error());
  auto session = sessions->create({.policy = std::move(*policy), .ttl_seconds = kStepSeconds + 600});
  if (!session) return fail(session.error());
  const DestroySession cleanup{&*session};
  StepOutput shown;
  ExecRequest request{
      .command = step.command,
      .on_output = [&shown](OutputStreamKind stream, std::string_view text) { shown.print(stream, text); },
      .timeout_seconds = kStepSeconds,
      .typed = true,
      .environment = step.environment,
      .working_directory = step.directory.empty() ? "/" : step.directory};
  if (auto done = checkResult(session->exec(request), step); !done) return done;
  // A process that is still running could change files while they are read.
  if (auto stopped = session->stopLeftBehind(); !stopped) return fail(stopped.error());
  const auto layers = rootChanges(session->id());
  if (!layers) return fail(layers.error());
  return use(layers->back());
}

}  // namespace caisson::image
