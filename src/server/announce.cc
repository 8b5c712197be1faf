#include "server/announce.h"

#include "base/text.h"

namespace caisson::server {
namespace {

bool isTcp(const http::ListenSocket& socket) { return http::portOf(socket.socket.get()) != 0; }

/// Of a socket that a service manager passed, the path is not known.
bool hasPath(const http::ListenSocket& socket) { return socket.address.starts_with('/'); }

std::string urlOf(const http::ListenSocket& socket) {
  const std::string scheme = socket.tls_cert.empty() ? "http://" : "https://";
  const bool named = socket.address.find(':') != std::string::npos;
  return scheme + (named ? socket.address : "127.0.0.1:" + std::to_string(http::portOf(socket.socket.get())));
}

}  // namespace

std::string announcement(std::span<const http::ListenSocket> sockets, std::optional<std::size_t> preview) {
  std::string text = "caisson serves sandboxes over HTTP (docs/http-api.md)\n", example;
  bool needs_token = false;
  for (std::size_t i = 0; i < sockets.size(); ++i) {
    const http::ListenSocket& socket = sockets[i];
    if (!isTcp(socket)) {
      text += "  " + printable(socket.address, 200) + "  for you, without a token\n";
      if (hasPath(socket))
        example = "curl --unix-socket " + printable(socket.address, 200) + " -X POST http://localhost/v1/sandboxes";
    } else if (preview == i) {
      text += "  " + urlOf(socket) + "  previews of published ports\n";
    } else {
      text += "  " + urlOf(socket) + "  for clients with a token\n";
      needs_token = true;
      if (example.empty())
        example = "curl -H \"Authorization: Bearer TOKEN\" -X POST " + urlOf(socket) + "/v1/sandboxes";
    }
  }
  if (needs_token) text += "create a token:    caisson token create NAME\n";
  if (!example.empty()) text += "create a sandbox:  " + example + "\n";
  return text + "Ctrl-C stops the server; its sandboxes keep running\n";
}

}  // namespace caisson::server
