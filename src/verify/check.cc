#include "verify/check.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "base/error.h"
#include "caisson/session.h"
#include "sys/root_dir.h"
#include "sys/state_home.h"

namespace caisson::verify {
namespace {

constexpr std::string_view kCategoryNames[kCategories] = {"SECURITY",   "RESOURCES",  "NETWORK", "FUNCTIONAL",
                                                          "EDGE_CASES", "INVARIANTS", "CVE",     "ESCAPE"};
// Timeout of a check's sandbox: far more than any check needs.
constexpr const char* kTimeout = "60s";  // also on a machine that is slow or busy

std::string firstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

std::string_view name(Category category) { return kCategoryNames[static_cast<std::size_t>(category)]; }

std::string_view name(CheckState state) {
  switch (state) {
    case CheckState::passed: return "passed";
    case CheckState::failed: return "failed";
    case CheckState::skipped: return "skipped";
  }
  return "unknown";
}

std::string Observed::describe() const {
  if (!ran) return "the sandbox could not be built: " + refusal;
  std::string text = "status " + std::to_string(status);
  if (!out.empty()) text += ", printed \"" + firstLine(out).substr(0, 120) + "\"";
  if (!err.empty()) text += ", complained \"" + firstLine(err).substr(0, 120) + "\"";
  return text;
}

Result<Context> Context::create(Runner runner, std::string helper, std::vector<std::string> rungs) {
  Context context;
  context.runner_ = std::move(runner);
  context.helper_ = std::move(helper);
  context.rungs_ = std::move(rungs);
  const std::string home = sys::stateHome();
  if (home.empty()) {
    return fail(plainError(Stage::state, "verify", "", "neither CAISSON_HOME nor HOME is set",
                           "set CAISSON_HOME to a directory you can write"));
  }
  context.base_ = home;
  static std::atomic<unsigned> count = 0;
  context.name_ = "verify-" + std::to_string(::getpid()) + "-" + std::to_string(++count);
  auto made = sys::openPrivateDirectory(context.base_);
  if (!made) return fail(made.error());
  auto base = sys::RootDir::open(context.base_);
  if (!base) return fail(base.error());
  if (auto emptied = base->removeTree(context.name_); !emptied) return fail(emptied.error());
  if (auto dirs = base->makeDirs(context.name_ + "/workspace/nested/config", 0700); !dirs) return fail(dirs.error());
  context.secret_ = "canary-" + context.name_ + "-" + std::to_string(::time(nullptr));
  for (const std::string file : {"/canary", "/workspace/file", "/workspace/nested/config/.env"}) {
    if (auto put = base->writeFileAtomic(context.name_ + file, context.secret_ + "\n", 0644); !put)
      return fail(put.error());
  }
  const std::string own = context.base_ + "/" + context.name_;
  context.canary_path_ = own + "/canary";
  context.workspace_path_ = own + "/workspace";
  auto leak = base->openFile(context.name_ + "/canary", {});
  if (!leak) return fail(leak.error());
  context.leak_ = sys::Fd(::fcntl(leak->get(), F_DUPFD, 40));  // without close-on-exec
  return context;
}

Context::~Context() {
  if (name_.empty()) return;
  if (auto base = sys::RootDir::open(base_)) (void)base->removeTree(name_);
}

Result<Policy> Context::policyOf(const CheckRun& what) const {
  auto policy = Policy::profile(what.profile);
  if (!policy) return policy;
  std::vector<std::pair<std::string, std::string>> settings = {
      {"resources.wall_seconds", kTimeout}, {"filesystem.workspace.mode", what.workspace ? "overlay" : "none"}};
  if (what.workspace) settings.emplace_back("filesystem.workspace.path", workspace_path_);
  settings.insert(settings.end(), what.settings.begin(), what.settings.end());
  for (const auto& [key, value] : settings)
    if (const auto set = policy->set(key, value); !set) return fail(set.error());
  for (const std::string& rung : rungs_)
    if (const auto added = policy->append("isolation.may_be_missing", rung); !added) return fail(added.error());
  if (!what.command.empty() && what.command.front() == helper_)
    if (const auto shown = policy->append("filesystem.read_only", helper_); !shown) return fail(shown.error());
  return policy;
}

namespace {

Observed observe(Result<RunResult> result) {
  Observed seen;
  if (!result) {
    seen.refusal = firstLine(result.error().message());
    return seen;
  }
  seen.result = *std::move(result);
  seen.status = exitStatus(seen.result);
  seen.out = seen.result.out.data;
  seen.err = seen.result.err.data;
  seen.ran = seen.result.outcome != OutcomeKind::setup_failed && seen.result.outcome != OutcomeKind::denied;
  if (!seen.ran && seen.result.error) seen.refusal = firstLine(seen.result.error->message());
  return seen;
}

}  // namespace

Observed Context::run(const CheckRun& what) {
  auto policy = policyOf(what);
  if (!policy) return observe(fail(policy.error()));
  Request request{.policy = *std::move(policy), .command = what.command, .program = helper_};
  request.quarantine = false;  // the attempts are our own
  request.input = what.input;
  return observe(runner_(request));
}

Observed Context::runInSession(const CheckRun& what) {
  auto policy = policyOf(what);
  if (!policy) return observe(fail(policy.error()));
  auto store = SessionStore::open(helper_);
  if (!store) return observe(fail(store.error()));
  auto session = store->create({.policy = *std::move(policy), .ttl_seconds = 600});
  if (!session) return observe(fail(session.error()));
  Observed seen = observe(session->exec({.command = what.command, .input = what.input}));
  (void)session->destroy();
  return seen;
}

Observed Context::script(std::string_view text, std::vector<std::pair<std::string, std::string>> settings) {
  return run({.command = {"sh", "-c", std::string(text)}, .settings = std::move(settings)});
}

Observed Context::inside(std::vector<std::string> words, std::vector<std::pair<std::string, std::string>> settings) {
  std::vector<std::string> command = {helper_, "__inside", "--"};
  command.insert(command.end(), std::make_move_iterator(words.begin()), std::make_move_iterator(words.end()));
  return run({.command = std::move(command), .settings = std::move(settings)});
}

Verdict contained(const Observed& observed) {
  if (!observed.ran) return failed(observed.describe());
  if (observed.out.starts_with("done")) return failed("it got through: " + firstLine(observed.out));
  if (observed.out.starts_with("unavailable")) return skipped(firstLine(observed.out));
  if (observed.out.starts_with("refused")) return passed(firstLine(observed.out));
  // Being killed for the attempt counts as denied.
  if (observed.result.outcome == OutcomeKind::signaled || observed.result.outcome == OutcomeKind::limit) {
    return passed("the program was ended: " + std::string(name(observed.result.outcome)));
  }
  return failed("neither done nor refused: " + observed.describe());
}

Verdict printed(const Observed& observed, std::string_view expected) {
  if (observed.ran && observed.status == 0 && observed.out == expected) return passed();
  return failed("expected \"" + firstLine(std::string(expected)) + "\": " + observed.describe());
}

bool hostHas(const std::string& program) {
  for (const char* directory : {"/usr/bin/", "/bin/", "/usr/local/bin/"})
    if (::access((directory + program).c_str(), X_OK) == 0) return true;
  return false;
}

}  // namespace caisson::verify
