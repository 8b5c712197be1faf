#include "mcp/serve.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <thread>

#include "http/server.h"
#include "mcp/http/endpoint.h"
#include "mcp/http/token.h"
#include "mcp/log.h"
#include "mcp/sandbox/features.h"
#include "mcp/sandbox/tools.h"
#include "mcp/stdio.h"
#include "policy/model.h"
#include "sys/home_directory.h"
#include "sys/stop_signals.h"

namespace caisson::mcp {
namespace {

constexpr std::size_t kMaxConnections = 512;  ///< over HTTP

/// Ends the process in ten seconds at the latest: threads that write to a client that does not read would block it.
void endAnyway() {
  std::thread([] {
    std::this_thread::sleep_for(std::chrono::seconds(10));
    ::_exit(0);
  }).detach();
}

Error startError(std::string_view option, std::string_view object, std::string reason, std::string hint) {
  return plainError(Stage::usage, "mcp " + std::string(option), object, std::move(reason), std::move(hint));
}

/// Opens the directories that the operator named, on the command line or in a policy file.
Result<void> openNamed(const std::vector<ServedDirectory>& named, OperatorBounds& bounds) {
  bounds.workspaces = true;
  for (const ServedDirectory& one : named) {
    if (one.mode == "rw")
      return fail(startError("--workspace", one.path, "a sandbox keeps its changes apart from the real directory",
                             "leave out `:rw`; --allow-commit lets the model write changes back without asking"));
    if (one.mode == "none") {
      if (named.size() > 1)
        return fail(startError("--workspace", one.path, "`none` goes with no other directory", "leave out the others"));
      bounds.no_workspace = true;
      return {};
    }
    std::error_code problem;
    const std::string path = std::filesystem::canonical(one.path, problem).string();
    if (problem)
      return fail(sysError(Stage::usage, "mcp --workspace", one.path, problem.value(), "name a directory that exists"));
    bounds.directories.push_back(path);
    if (one.mode == "ro") bounds.never_committed.push_back(path);
  }
  return {};
}

/// Opens the project that the host names, else the current directory. A home directory or the root is not a project.
void openProject(OperatorBounds& bounds) {
  const char* project = std::getenv("CLAUDE_PROJECT_DIR");
  std::error_code problem;
  const std::string path = std::filesystem::canonical(project != nullptr ? project : ".", problem).string();
  if (problem || sys::holdsHome(path)) return;
  bounds.directories.push_back(path);
}

Result<void> openDirectories(const ServeOptions& options, const policy::Policy& policy, OperatorBounds& bounds) {
  if (!options.workspaces.empty()) return openNamed(options.workspaces, bounds);
  const policy::Workspace& workspace = policy.filesystem.workspace;
  const bool ro = workspace.mode == policy::WorkspaceMode::ro;
  bounds.workspaces = bounds.whole;
  if (bounds.whole && workspace.mode == policy::WorkspaceMode::none) return openNamed({{"", "none"}}, bounds);
  if (bounds.whole && !workspace.path.empty()) return openNamed({{workspace.path, ro ? "ro" : ""}}, bounds);
  openProject(bounds);
  if (bounds.whole && ro) bounds.never_committed = bounds.directories;
  return {};
}

/// What the operator asked for has to fit together; otherwise the server would offer less or more than its flags say.
Result<void> checkBounds(const ServeOptions& options, const policy::Policy& policy, const OperatorBounds& bounds) {
  if (bounds.read_only && options.allow_commit)
    return fail(startError("--allow-commit", "", "--read-only lets nothing be committed", "leave out one of them"));
  if (bounds.read_only && !policy.filesystem.read_write.empty())
    return fail(startError("--read-only", policy.filesystem.read_write.front(),
                           "the policy shows this host path writable", "show it with --ro, or leave out --read-only"));
  std::vector<std::string> tops = bounds.directories;
  if (!bounds.project.empty()) tops.push_back(bounds.project);
  for (const std::string& top : tops)
    if (const auto found = findDeniedThroughLink(policy.filesystem.denied, top))
      return fail(startError(
          "--deny", found->entry,
          "a symbolic link is in this path of " + top + ": what it leads to would stay visible under its real name",
          "deny the real path, " + found->real));
  for (const Tool* tool : allTools())
    if (std::ranges::find(options.tools, tool->name) != options.tools.end() && !bounds.offers(*tool))
      return fail(startError("--tools", tool->name, "another flag takes this tool away",
                             "leave it out, or the flag: --read-only, --net, --workspace DIR:ro"));
  return {};
}

Result<SandboxSettings> settingsFrom(const ServeOptions& options) {
  SandboxSettings settings{
      .commit_without_asking = options.allow_commit, .program = options.program, .bounds = options.bounds};
  OperatorBounds& bounds = settings.bounds;
  const auto policy = bounds.policy("");
  if (!policy) return std::unexpected(policy.error());
  if (!options.tools.empty()) {
    auto tools = toolsWithNeeds(options.tools);
    if (!tools) return std::unexpected(tools.error());
    bounds.tools = *std::move(tools);
  }
  if (auto opened = openDirectories(options, policy->model(), bounds); !opened) return std::unexpected(opened.error());
  if (auto checked = checkBounds(options, policy->model(), bounds); !checked) return std::unexpected(checked.error());
  return settings;
}

Result<void> serveHttp(Server& server, const TransportOptions& options, int until) {
  // Before the token: an invalid address must not create one.
  auto socket = http::listenTcp(options.http, false);
  if (!socket) return std::unexpected(socket.error());
  std::string token;
  if (!options.without_token) {
    auto stored = bearerToken();
    if (!stored) return std::unexpected(stored.error());
    token = std::move(*stored);
  }
  const int port = http::portOf(socket->socket.get());
  HttpEndpoint endpoint(server, token);
  http::ServerOptions http_options;
  http_options.limits.connections = kMaxConnections;
  http_options.limits.reserved = 0;  // for unix sockets, which are not served
  http_options.listeners.push_back(*std::move(socket));
  auto http_server = http::Server::create(std::move(http_options), endpoint);
  if (!http_server) return std::unexpected(http_server.error());
  const std::string host = options.http.starts_with('[') ? "[::1]" : "127.0.0.1";
  writeLog(LogLevel::info, "listening",
           {{"url", "http://" + host + ":" + std::to_string(port) + "/mcp"}, {"port", port}});
  (*http_server)->run(until);
  endAnyway();
  server.endSubscriptions();
  return {};
}

struct Process {
  sys::Fd output;  ///< for the protocol
  sys::Fd ending;  ///< readable after a termination signal
};

/// Gives large blocks back when they are freed. glibc raises this threshold with the sizes it sees, and each thread
/// that held the output of a command would then keep some megabytes.
void returnLargeBlocks() {
#ifdef __GLIBC__
  constexpr int kLargeBlock = 256 << 10;
  (void)::mallopt(M_MMAP_THRESHOLD, kLargeBlock);
#endif
}

/// Call before any thread is started: later ones inherit the blocked signals.
Result<Process> prepareProcess() {
  returnLargeBlocks();
  auto output = takeStandardOutput();
  if (!output) return std::unexpected(output.error());
  auto ending = sys::stopSignals();
  if (!ending) return std::unexpected(ending.error());
  return Process{std::move(*output), std::move(*ending)};
}

Result<void> serveOver(const TransportOptions& options, Features& features, const Process& process) {
  Server server(features);
  if (options.http.empty()) {
    serveStdio(server, STDIN_FILENO, process.output.get(), process.ending.get());
    endAnyway();
    return {};
  }
  return serveHttp(server, options, process.ending.get());
}

}  // namespace

Result<void> serveFeatures(Features& features, const TransportOptions& options) {
  const auto process = prepareProcess();
  if (!process) return std::unexpected(process.error());
  return serveOver(options, features, *process);
}

Result<void> serve(const ServeOptions& options) {
  const auto process = prepareProcess();
  if (!process) return std::unexpected(process.error());
  auto settings = settingsFrom(options);
  if (!settings) return std::unexpected(settings.error());
  Sandboxes sandboxes(std::move(*settings));
  const auto features = makeSandboxFeatures(sandboxes, options.version);
  auto served = serveOver(options.transport, *features, *process);
  sandboxes.finish();
  return served;
}

}  // namespace caisson::mcp
