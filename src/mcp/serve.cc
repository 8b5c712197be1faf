#include "mcp/serve.h"

#include <pthread.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <memory>
#include <thread>

#include "mcp/fixture.h"
#include "mcp/http_endpoint.h"
#include "mcp/log.h"
#include "mcp/stdio.h"

namespace caisson::mcp {
namespace {

/// A descriptor that is readable once the process was asked to end. Blocked for all threads to come, so that no
/// handler runs anywhere.
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

/// A client that stopped reading would hold up the end for ever: threads are still writing to it.
void endAnyway() {
  std::thread([] {
    std::this_thread::sleep_for(std::chrono::seconds(10));
    ::_exit(0);
  }).detach();
}

Result<void> serveHttp(Server& server, const ServeOptions& options, const std::string& token, int until) {
  auto socket = HttpServer::listen(options.http);
  if (!socket) return std::unexpected(socket.error());
  const int port = HttpServer::portOf(socket->get());
  HttpEndpoint endpoint(server, token);
  HttpServer http(std::move(*socket), [&endpoint](const HttpRequest& request, HttpConnection& connection) {
    endpoint.handle(request, connection);
  });
  const std::string host = options.http.starts_with('[') ? "[::1]" : "127.0.0.1";
  writeLog(LogLevel::info, "listening",
           {{"url", "http://" + host + ":" + std::to_string(port) + "/mcp"}, {"port", port}});
  http.serve(until);
  endAnyway();
  server.endSubscriptions();
  http.stop();
  return {};
}

}  // namespace

Result<void> serve(const ServeOptions& options) {
  if (!options.conformance)
    return std::unexpected(Error{.stage = Stage::usage,
                                 .call = "mcp",
                                 .reason = "serving sandboxes needs sessions, which this version does not have yet",
                                 .hint = "`caisson run --json` is there for programs"});
  auto output = takeStandardOutput();
  if (!output) return std::unexpected(output.error());
  auto ending = endingSignals();
  if (!ending) return std::unexpected(ending.error());
  const std::unique_ptr<Features> features = makeFixture();
  Server server(*features);
  if (!options.http.empty()) return serveHttp(server, options, "", ending->get());
  serveStdio(server, STDIN_FILENO, output->get(), ending->get());
  endAnyway();
  return {};
}

}  // namespace caisson::mcp
