#include "server/serve.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <thread>

#include "base/safe_text.h"
#include "server/announce.h"
#include "server/app.h"
#include "sys/state_home.h"
#include "sys/stop_signals.h"

namespace caisson::server {
namespace {

void writeText(std::string_view text) {
  const std::string safe = safeLines(text);
  static_cast<void>(::write(STDERR_FILENO, safe.data(), safe.size()));
}

/// One JSON line on standard error.
void writeLine(const Json& value) { writeText(writeJson(value) + "\n"); }

Result<void> canonicalise(std::vector<std::string>& directories) {
  for (std::string& directory : directories) {
    std::error_code failure;
    const std::string path = std::filesystem::canonical(directory, failure).string();
    if (failure || !std::filesystem::is_directory(path, failure))
      return std::unexpected(Error{.stage = Stage::usage,
                                   .call = "serve --allow-workspace",
                                   .object = directory,
                                   .sys_errno = failure ? failure.value() : ENOTDIR,
                                   .hint = "name a directory that exists"});
    directory = path;
  }
  return {};
}

constexpr std::string_view kTlsHint = ", or give --tls-cert FILE --tls-key FILE";

struct Listeners {
  std::vector<http::ListenSocket> sockets;
  std::optional<std::size_t> preview;
};

Result<Listeners> openListeners(const service::Settings& settings) {
  Listeners listeners;
  const bool tls = !settings.tls_cert.empty();
  if (tls == settings.tls_key.empty())
    return std::unexpected(plainError(Stage::usage, "serve", "TLS", "a certificate and a key belong together",
                                      "give --tls-cert and --tls-key"));
  const auto add = [&](Result<http::ListenSocket> socket) -> Result<void> {
    if (!socket) return std::unexpected(socket.error());
    listeners.sockets.push_back(*std::move(socket));
    return {};
  };
  auto passed = http::inheritedSockets(tls);
  if (!passed) return std::unexpected(passed.error());
  listeners.sockets = *std::move(passed);
  const bool inherited = !listeners.sockets.empty();
  if (!inherited && settings.socket != "none") {
    const std::string path = settings.socket.empty() ? sys::stateHome() + "/server/socket" : settings.socket;
    if (auto added = add(http::listenUnix(path)); !added) return std::unexpected(added.error());
  }
  std::vector<std::string> addresses = settings.listen;
  if (addresses.empty() && !inherited) addresses.emplace_back(kDefaultAddress);
  for (const std::string& address : addresses) {
    if (address == "none") continue;
    if (auto added = add(http::listenTcp(address, tls, kTlsHint)); !added) return std::unexpected(added.error());
  }
  if (!settings.preview.empty()) {
    if (auto added = add(http::listenTcp(settings.preview, tls, kTlsHint)); !added)
      return std::unexpected(added.error());
    listeners.preview = listeners.sockets.size() - 1;
  }
  for (http::ListenSocket& socket : listeners.sockets) {
    if (!tls || http::portOf(socket.socket.get()) == 0) continue;
    socket.tls_cert = settings.tls_cert;
    socket.tls_key = settings.tls_key;
  }
  return listeners;
}

/// Ends the process a little after the server's own limit for requests that run: threads that wait for a sandbox must
/// not keep it.
void exitAnyway() {
  std::thread([] {
    std::this_thread::sleep_for(std::chrono::seconds(20));
    ::_exit(0);
  }).detach();
}

}  // namespace

Result<void> serve(ServeOptions options) {
  const auto stop = sys::stopSignals();
  if (!stop) return std::unexpected(stop.error());
  if (auto done = canonicalise(options.settings.allow_workspaces); !done) return done;
  if (auto directory = sys::openStateDirectory("server"); !directory) return std::unexpected(directory.error());
  auto listeners = openListeners(options.settings);
  if (!listeners) return std::unexpected(listeners.error());
  auto app = App::create({.settings = options.settings,
                          .program = options.program,
                          .version = options.version,
                          .preview_listener = listeners->preview});
  if (!app) return std::unexpected(app.error());
  Json addresses = Json::array();
  for (const http::ListenSocket& socket : listeners->sockets) addresses.push_back(socket.address);
  http::ServerOptions server_options;
  const std::string readable = announcement(listeners->sockets, listeners->preview);
  server_options.listeners = std::move(listeners->sockets);
  auto server = http::Server::create(std::move(server_options), **app);
  if (!server) return std::unexpected(server.error());
  (*app)->attach(**server);
  if (options.readable) {
    writeText(readable);
  } else {
    writeLine({{"time", service::timeText()}, {"level", "info"}, {"message", "listening"}, {"addresses", addresses}});
  }
  (*server)->run(stop->get());
  exitAnyway();
  if (options.readable) {
    writeText("stopped\n");
  } else {
    writeLine({{"time", service::timeText()}, {"level", "info"}, {"message", "stopped"}});
  }
  server->reset();
  return {};
}

}  // namespace caisson::server
