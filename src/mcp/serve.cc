#include "mcp/serve.h"

#include <pthread.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <thread>

#include "http/server.h"
#include "mcp/http/endpoint.h"
#include "mcp/http/token.h"
#include "mcp/log.h"
#include "mcp/sandbox/features.h"
#include "mcp/sandbox/workspace.h"
#include "mcp/stdio.h"
#include "policy/profiles/profiles.h"

namespace caisson::mcp {
namespace {

/// A descriptor that is readable once the process got a termination signal. Blocks the signals for all later threads,
/// so that no handler runs.
Result<sys::Fd> endingSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, number);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  sys::Fd descriptor(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!descriptor) return std::unexpected(Error{.stage = Stage::launch, .call = "signalfd", .sys_errno = errno});
  return descriptor;
}

/// Ends the process in ten seconds at the latest: threads that write to a client that does not read would block it.
void endAnyway() {
  std::thread([] {
    std::this_thread::sleep_for(std::chrono::seconds(10));
    ::_exit(0);
  }).detach();
}

/// The directories open to the server: those named by the user, else the project that the host names, else the current
/// directory. A home directory or the root is not a project.
Result<SandboxSettings> settingsFrom(const ServeOptions& options) {
  SandboxSettings settings{
      .commit_without_asking = options.allow_commit, .rungs = options.rungs, .program = options.program};
  if (auto policy = sandboxPolicy(policy::kDefaultProfile, settings); !policy) return std::unexpected(policy.error());
  std::vector<std::string> wishes = options.workspaces;
  const bool named = !wishes.empty();
  if (const char* project = std::getenv("CLAUDE_PROJECT_DIR"); !named && project != nullptr)
    wishes.emplace_back(project);
  if (wishes.empty()) wishes.emplace_back(".");
  const char* home = std::getenv("HOME");
  for (const std::string& wish : wishes) {
    std::error_code problem;
    const std::string path = std::filesystem::canonical(wish, problem).string();
    if (problem) {
      if (!named) continue;
      return std::unexpected(Error{.stage = Stage::usage,
                                   .call = "mcp --workspace",
                                   .object = wish,
                                   .sys_errno = problem.value(),
                                   .hint = "name a directory that exists"});
    }
    if (!named && (path == "/" || (home != nullptr && isWithin(home, path)))) continue;
    settings.allowed.push_back(path);
  }
  if (!settings.allowed.empty()) settings.workspace = settings.allowed.front();
  return settings;
}

Result<void> serveHttp(Server& server, const TransportOptions& options, const std::string& token, int until) {
  auto socket = http::listenTcp(options.http, false);
  if (!socket) return std::unexpected(socket.error());
  const int port = http::portOf(socket->socket.get());
  HttpEndpoint endpoint(server, token);
  http::ServerOptions http_options;
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

/// Call before any thread is started: later ones inherit the blocked signals.
Result<Process> prepareProcess() {
  auto output = takeStandardOutput();
  if (!output) return std::unexpected(output.error());
  auto ending = endingSignals();
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
  std::string token;
  if (!options.without_token) {
    auto own = bearerToken();
    if (!own) return std::unexpected(own.error());
    token = std::move(*own);
  }
  return serveHttp(server, options, token, process.ending.get());
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
