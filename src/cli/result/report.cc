#include "cli/result/report.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "api/result_json.h"
#include "cli/network_offer.h"
#include "cli/output.h"
#include "cli/own_program.h"
#include "cli/policy_flags.h"
#include "cli/policy_options.h"
#include "cli/result/file.h"
#include "cli/result/notices.h"
#include "plan/landlock_tier.h"
#include "plan/workspace.h"
#include "policy/model.h"

namespace caisson::cli {
namespace {

/// A closed output pipe must end the run in order, not kill us while a sandbox exists. A handler rather than SIG_IGN:
/// exec resets handlers, so the payload gets the default.
void surviveBrokenPipes() {
  struct sigaction action{};
  action.sa_handler = [](int) {};
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGPIPE, &action, nullptr);
}

Result<RunResult> execute(const Arguments& arguments, const Result<Request>& request) {
  if (!request) return fail(request.error());
  auto result = run(*request);
  if (!result) return fail(attributeToFlag(result.error(), arguments));
  return result;
}

/// Whether the workspace would be the current directory and that is a home directory or above one: it is not shown
/// then.
bool hasNoWorkspace(const policy::Workspace& workspace) {
  const char* home = std::getenv("HOME");
  if (!workspace.path.empty()) return false;
  std::error_code problem;
  const std::string here = std::filesystem::current_path(problem);
  return here == "/" || (home != nullptr && plan::below(home, here));
}

/// Lines to print before the program starts: what is not protected, and what an escape attempt could not undo.
std::vector<std::string> warningsBefore(const Arguments& arguments, const Request& request) {
  const policy::Policy& policy = request.policy.model();
  const policy::Workspace& workspace = policy.filesystem.workspace;
  const bool direct = workspace.mode == policy::WorkspaceMode::rw && !hasNoWorkspace(workspace) &&
                      policy.isolation.level != policy::Level::none;
  if (arguments.has(kResultJson) || arguments.has(kQuiet)) return {};
  std::vector<std::string> lines;
  if (policy.isolation.tier == policy::Tier::landlock && policy.isolation.level != policy::Level::none) {
    lines.push_back("warning: " + std::string(plan::kLandlockTierLosses));
  }
  if (direct) lines.push_back("warning: " + std::string(plan::kNoRollback));
  return lines;
}

}  // namespace

Request requestOnThisTerminal(const Arguments& arguments, Policy policy) {
  const bool json = arguments.has(kResultJson);
  Request request = requestWith(std::move(policy));
  request.out = request.err = json ? StreamMode::capture : StreamMode::relay;
  request.relay_stdin = !arguments.has(kNoInput);
  request.limit_relayed_output = arguments.has(kOutputLimit);
  request.interactive = !json && request.relay_stdin && ::isatty(STDIN_FILENO) == 1;
  request.forward_signals = true;
  request.own_scope = true;
  request.forget_secrets = true;
  return request;
}

int statusWithOutput(int status, const RunResult& result) {
  const auto lost = [](const Stream& stream) { return stream.truncated || stream.write_error != 0; };
  return status == 0 && (lost(result.out) || lost(result.err)) ? kRefused : status;
}

int runAndReport(const Arguments& arguments, const std::function<Result<Request>(const Arguments&)>& make,
                 const std::function<int(const Request&, const RunResult&)>& after) {
  std::optional<ResultFile> file;
  if (const auto path = arguments.value(kResultFile)) {
    auto prepared = ResultFile::prepare(*path);
    if (!prepared) return printError(prepared.error());
    file = *std::move(prepared);
  }
  surviveBrokenPipes();

  auto request = make(arguments);
  if (request) {
    if (auto offered = offerNetwork(arguments, *request); !offered) request = fail(offered.error());
  }
  std::vector<std::string> warned = request ? warningsBefore(arguments, *request) : std::vector<std::string>();
  for (const std::string& line : warned) printNotice(line);
  if (request && !arguments.has(kResultJson) && !arguments.has(kQuiet)) {
    request->on_notice = [&](const std::string& line) {
      printNotice(line);
      warned.push_back(line);
    };
    if (::isatty(STDERR_FILENO) == 1) request->on_progress = printNotice;
  }
  const auto ended = execute(arguments, request);
  const RunResult result = ended ? *ended : refusedResult(ended.error());
  int status = ended ? exitStatus(result) : kRefused;

  const bool json = arguments.has(kResultJson);
  if (!json) status = statusWithOutput(status, result);
  const std::string rendered = json || file ? renderResult(result) + "\n" : "";
  if (json) {
    if (const int failed = print(rendered); failed != 0) status = failed;
  }
  if (file) {
    if (const auto written = file->write(rendered); !written) status = printError(written.error());
  }
  if (result.error) printError(*result.error);
  // With --json the object already has everything that a notice contains.
  if (!json && !arguments.has(kQuiet)) {
    const std::string told = request ? networkNoticeAlreadyShown(arguments, *request) : std::string();
    for (const std::string& line : noticesFor(result, ::isatty(STDERR_FILENO) == 1))
      if (line != told && std::ranges::find(warned, line) == warned.end()) printNotice(line);
  }
  if (after && ended) {
    if (const int failed = after(*request, result); failed != 0) status = failed;
  }
  return status;
}

}  // namespace caisson::cli
