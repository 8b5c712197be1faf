#include "mcp/http/endpoint.h"

#include <sys/random.h>

#include <charconv>
#include <cstdlib>

#include "mcp/http/headers.h"

namespace caisson::mcp {
namespace {

constexpr std::string_view kJsonType = "application/json";

bool sameSecret(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t at = 0; at < a.size(); ++at)
    difference |= static_cast<unsigned char>(a[at] ^ b[b.empty() ? 0 : at % b.size()]);
  return difference == 0;
}

void refuseHttp(const HttpRequest& request, HttpConnection& connection, int status, std::string_view reason,
                HttpConnection::Headers headers = {}) {
  connection.respond(request, status, "text/plain; charset=utf-8", std::string(reason) + "\n", headers);
}

void respondError(const HttpRequest& request, HttpConnection& connection, int status, const Json& id,
                  const RpcError& error) {
  connection.respond(request, status, kJsonType, writeJson(makeError(id, error)));
}

bool isJson(const HttpRequest& request) {
  const std::string* type = request.header("content-type");
  return type != nullptr && type->starts_with(kJsonType);
}

std::string headerOr(const HttpRequest& request, std::string_view name) {
  const std::string* value = request.header(name);
  return value == nullptr ? "" : *value;
}

bool isModern(const HttpRequest& request, const Message& message) {
  if (headerOr(request, "mcp-protocol-version") == kModernVersion) return true;
  const Json* meta = findObject(message.params, "_meta");
  return meta != nullptr && find(*meta, meta::kProtocolVersion) != nullptr;
}

}  // namespace

HttpEndpoint::~HttpEndpoint() {
  for (const auto& [id, session] : sessions_) session->client->cancelAll();
}

bool HttpEndpoint::admit(const HttpRequest& request, HttpConnection& connection) const {
  const std::string* host = request.header("host");
  const std::string* origin = request.header("origin");
  if (host == nullptr || !isLoopbackAuthority(*host) || (origin != nullptr && !isLoopbackOrigin(*origin))) {
    refuseHttp(request, connection, 403, "only requests to and from this machine are served (Host, Origin)");
    return false;
  }
  if (token_.empty()) return true;
  constexpr std::string_view kScheme = "Bearer ";
  const std::string given = headerOr(request, "authorization");
  if (given.starts_with(kScheme) && sameSecret(std::string_view(given).substr(kScheme.size()), token_)) return true;
  refuseHttp(request, connection, 401, "the bearer token is missing or wrong; `caisson mcp` says where it is",
             {{"WWW-Authenticate", "Bearer realm=\"caisson\""}});
  return false;
}

void HttpEndpoint::handle(const HttpRequest& request, HttpConnection& connection) {
  if (request.target != kPath) return refuseHttp(request, connection, 404, "the server is at /mcp");
  if (request.method == "POST") return post(request, connection);
  const bool modern = headerOr(request, "mcp-protocol-version") == kModernVersion;
  if (request.method == "GET" && !modern) return get(request, connection);
  if (request.method == "DELETE" && !modern) return remove(request, connection);
  refuseHttp(request, connection, 405, "this version of the protocol uses POST only", {{"Allow", "POST"}});
}

void HttpEndpoint::post(const HttpRequest& request, HttpConnection& connection) {
  if (!isJson(request)) return refuseHttp(request, connection, 415, "the body must be application/json");
  auto value = parseJson(request.body);
  if (!value) return respondError(request, connection, 400, Json(), {code::kParse, value.error(), {}});
  auto message = decodeMessage(std::move(*value));
  if (!message) return respondError(request, connection, 400, message.error().id, message.error().error);
  if (isModern(request, *message)) return postModern(request, connection, std::move(*message));
  postLegacy(request, connection, std::move(*message));
}

void HttpEndpoint::postModern(const HttpRequest& request, HttpConnection& connection, Message message) {
  if (message.kind == Message::Kind::response)
    return respondError(request, connection, 400, Json(), {code::kInvalidRequest, "nothing was asked", {}});
  if (const auto problem = checkHeaders(request, message, server_.features().tools()))
    return respondError(request, connection, 400, message.id, *problem);
  const auto client = std::make_shared<Client>();
  const auto stream = std::make_shared<HttpStream>("");
  const bool notification = message.kind == Message::Kind::notification;
  server_.receive(client, std::move(message), stream, Server::Expect::modern);
  if (notification) {
    connection.respond(request, 202, "", "");
    return;
  }
  const Ended ended = pump(request, connection, *stream, 0, Era::modern, {}, false);
  if (ended != Ended::answered) client->cancelAll();  // clients cancel by closing the stream
}

void HttpEndpoint::postLegacy(const HttpRequest& request, HttpConnection& connection, Message message) {
  const std::string version = headerOr(request, "mcp-protocol-version");
  if (!version.empty() && !isLegacyVersion(version))
    return respondError(request, connection, 400, message.id,
                        {code::kInvalidRequest, "MCP-Protocol-Version names an unknown version", {}});
  SessionPointer session;
  HttpConnection::Headers headers;
  if (message.method == "initialize") {
    session = std::make_shared<Session>();
    const std::string id = newSession(session);
    if (id.empty()) return refuseHttp(request, connection, 503, "too many sessions");
    headers.emplace_back("Mcp-Session-Id", id);
  } else if ((session = sessionOf(request, connection)) == nullptr) {
    return;
  }
  if (message.kind != Message::Kind::request) {
    server_.receive(session->client, std::move(message), nullptr, Server::Expect::legacy);
    connection.respond(request, 202, "", "");
    return;
  }
  const auto stream = openStream(*session);
  server_.receive(session->client, std::move(message), stream, Server::Expect::legacy);
  // A broken connection cancels nothing here: the client may reconnect for the answer.
  pump(request, connection, *stream, 0, Era::legacy, headers, false);
}

void HttpEndpoint::get(const HttpRequest& request, HttpConnection& connection) {
  if (request.header("mcp-session-id") == nullptr)
    return refuseHttp(request, connection, 405, "a stream needs a session", {{"Allow", "POST"}});
  const SessionPointer session = sessionOf(request, connection);
  if (session == nullptr) return;
  if (const std::string* last = request.header("last-event-id")) {
    const std::size_t dash = last->rfind('-');
    std::size_t number = 0;
    std::shared_ptr<HttpStream> stream;
    if (dash != std::string::npos) {
      std::from_chars(last->data() + dash + 1, last->data() + last->size(), number);
      const std::lock_guard lock(session->mutex);
      const auto place = session->streams.find(last->substr(0, dash));
      if (place != session->streams.end()) stream = place->second;
    }
    if (stream == nullptr) return refuseHttp(request, connection, 404, "that stream is no longer kept");
    pump(request, connection, *stream, number, Era::legacy, {}, true);
    return;
  }
  const auto stream = openStream(*session);
  session->client->setStream(stream);
  pump(request, connection, *stream, 0, Era::legacy, {}, true);
  if (session->client->stream() == stream) session->client->setStream(nullptr);
}

void HttpEndpoint::remove(const HttpRequest& request, HttpConnection& connection) {
  const SessionPointer session = sessionOf(request, connection);
  if (session == nullptr) return;
  {
    const std::lock_guard lock(mutex_);
    sessions_.erase(headerOr(request, "mcp-session-id"));
  }
  session->client->cancelAll();
  if (const auto stream = session->client->stream()) static_cast<HttpStream&>(*stream).finish();
  connection.respond(request, 204, "", "");
}

HttpEndpoint::SessionPointer HttpEndpoint::sessionOf(const HttpRequest& request, HttpConnection& connection) {
  const std::string* id = request.header("mcp-session-id");
  if (id == nullptr) {
    refuseHttp(request, connection, 400, "Mcp-Session-Id is missing; begin with `initialize`");
    return nullptr;
  }
  {
    const std::lock_guard lock(mutex_);
    const auto place = sessions_.find(*id);
    if (place != sessions_.end()) {
      place->second->used = std::chrono::steady_clock::now();
      return place->second;
    }
  }
  refuseHttp(request, connection, 404, "there is no such session; begin with `initialize`");
  return nullptr;
}

std::string HttpEndpoint::newSession(const SessionPointer& session) {
  unsigned char random[16];
  if (::getrandom(random, sizeof random, 0) != sizeof random) std::abort();
  std::string id;
  for (const unsigned char byte : random) {
    id += "0123456789abcdef"[byte >> 4U];
    id += "0123456789abcdef"[byte & 15U];
  }
  const auto now = std::chrono::steady_clock::now();
  session->used = now;
  const std::lock_guard lock(mutex_);
  std::erase_if(sessions_, [now](const auto& entry) {
    const bool idle = now - entry.second->used > kIdleSession && entry.second->client->stream() == nullptr;
    if (idle) entry.second->client->cancelAll();
    return idle;
  });
  if (sessions_.size() >= kMaxSessions) return {};
  sessions_.emplace(id, session);
  return id;
}

std::shared_ptr<HttpStream> HttpEndpoint::openStream(Session& session) {
  const std::lock_guard lock(session.mutex);
  const std::size_t number = session.next_stream++;
  auto stream = std::make_shared<HttpStream>("s" + std::to_string(number));
  session.streams.emplace(stream->name(), stream);
  if (number > kKeptStreams) session.streams.erase("s" + std::to_string(number - kKeptStreams));
  return stream;
}

}  // namespace caisson::mcp
