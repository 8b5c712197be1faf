#include "mcp/http/endpoint.h"

#include <charconv>
#include <cstdlib>

#include "mcp/http/answer.h"
#include "mcp/http/headers.h"
#include "mcp/protocol/secret.h"

namespace caisson::mcp {
namespace {

constexpr const char* kJsonType = "application/json";

http::Response plainText(int status, std::string_view reason, http::Headers headers = {}) {
  http::Response response{.status = status, .headers = std::move(headers), .body = std::string(reason) + "\n"};
  response.headers.emplace_back("Content-Type", "text/plain; charset=utf-8");
  return response;
}

http::Response errorResponse(int status, const Json& id, const RpcError& error) {
  http::Response response{.status = status, .body = writeJson(makeError(id, error))};
  response.headers.emplace_back("Content-Type", kJsonType);
  return response;
}

bool isJson(const http::RequestHead& request) {
  const std::string* type = request.header("content-type");
  return type != nullptr && type->starts_with(kJsonType);
}

std::string headerOr(const http::RequestHead& request, std::string_view name) {
  const std::string* value = request.header(name);
  return value == nullptr ? "" : *value;
}

/// Frees the body and its share of the memory for bodies.
void releaseBody(http::Request& request) {
  std::string().swap(request.body);
  request.context.reset();
}

bool isModern(const http::RequestHead& request, const Message& message) {
  if (headerOr(request, "mcp-protocol-version") == kModernVersion) return true;
  const Json* meta = findObject(message.params, "_meta");
  return meta != nullptr && find(*meta, meta::kProtocolVersion) != nullptr;
}

}  // namespace

HttpEndpoint::~HttpEndpoint() {
  for (const auto& [id, session] : sessions_) session->client->cancelAll();
}

http::Admission HttpEndpoint::admit(const http::RequestHead& head) {
  const std::string* origin_text = head.header("origin");
  const auto host = http::parseAuthority(headerOr(head, "host"));
  const auto origin = origin_text == nullptr ? std::nullopt : http::parseOrigin(*origin_text);
  if (!host || !http::isLoopback(*host) ||
      (origin_text != nullptr && (!origin || !http::isLoopback(origin->authority))))
    return {.response = plainText(403, "only requests to and from this machine are served (Host, Origin)")};
  constexpr std::string_view kScheme = "Bearer ";
  const std::string given = headerOr(head, "authorization");
  const bool known = given.starts_with(kScheme) && sameSecret(std::string_view(given).substr(kScheme.size()), token_);
  if (!token_.empty() && !known)
    return {.response = plainText(401, "the bearer token is missing or wrong; `caisson mcp` says where it is",
                                  {{"WWW-Authenticate", "Bearer realm=\"caisson\""}})};
  http::Admission admission{.body_limit = kMaxBody, .lane = http::Lane::command, .known = true};
  // The server counts a message only after it arrived, and a client may leave many unfinished. A chunked body has no
  // length; a longer one than the limit is refused with 413.
  const std::uint64_t length = head.content_length.value_or(kMaxBody);
  if (!head.has_body || length > kMaxBody) return admission;
  admission.context = bodies_.reserve(length);
  if (!admission.context)
    admission.response = plainText(503, "too many request bodies are being received", {{"Retry-After", "1"}});
  return admission;
}

http::Response HttpEndpoint::failure(int status, std::string_view reason) { return plainText(status, reason); }

http::Response HttpEndpoint::handle(http::Request& request) {
  if (request.head.target.text != kPath) return plainText(404, "the server is at /mcp");
  if (request.head.method == "POST") return post(request);
  releaseBody(request);  // a stream may last long
  const bool modern = headerOr(request.head, "mcp-protocol-version") == kModernVersion;
  if (request.head.method == "GET" && !modern) return get(request);
  if (request.head.method == "DELETE" && !modern) return remove(request);
  return plainText(405, "this version of the protocol uses POST only", {{"Allow", "POST"}});
}

http::Response HttpEndpoint::post(http::Request& request) {
  if (!isJson(request.head)) return plainText(415, "the body must be application/json");
  auto value = parseJson(request.body);
  if (!value) {
    const Malformed refused = unreadable(request.body, value.error());
    return errorResponse(400, refused.id, refused.error);
  }
  auto message = decodeMessage(std::move(*value));
  if (!message) return errorResponse(400, message.error().id, message.error().error);
  releaseBody(request);  // from here on the server counts the message, and its answer may take long
  if (isModern(request.head, *message)) return postModern(request, std::move(*message));
  return postLegacy(request, std::move(*message));
}

http::Response HttpEndpoint::postModern(http::Request& request, Message message) {
  if (message.kind == Message::Kind::response)
    return errorResponse(400, Json(), {code::kInvalidRequest, "nothing was asked", {}});
  if (const auto problem = checkHeaders(request.head, message, server_.features().tools()))
    return errorResponse(400, message.id, *problem);
  const auto client = std::make_shared<Client>();
  const auto stream = std::make_shared<HttpStream>("");
  const bool notification = message.kind == Message::Kind::notification;
  server_.receive(client, std::move(message), stream, Server::Expect::modern);
  if (notification) return {.status = 202};
  // Clients cancel by closing the stream.
  return answerFrom(request, stream,
                    {.revision = ProtocolRevision::modern, .on_abandon = [client] { client->cancelAll(); }});
}

http::Response HttpEndpoint::postLegacy(http::Request& request, Message message) {
  const std::string version = headerOr(request.head, "mcp-protocol-version");
  if (!version.empty() && !isLegacyVersion(version))
    return errorResponse(400, message.id, {code::kInvalidRequest, "MCP-Protocol-Version names an unknown version", {}});
  SessionPointer session;
  http::Headers headers;
  if (message.method == "initialize") {
    session = std::make_shared<Session>();
    const std::string id = newSession(session);
    if (id.empty()) return plainText(503, "too many sessions");
    headers.emplace_back("Mcp-Session-Id", id);
  } else {
    auto found = sessionOf(request);
    if (!found) return std::move(found.error());
    session = *std::move(found);
  }
  if (message.kind != Message::Kind::request) {
    server_.receive(session->client, std::move(message), nullptr, Server::Expect::legacy);
    return {.status = 202};
  }
  const auto stream = openStream(*session);
  server_.receive(session->client, std::move(message), stream, Server::Expect::legacy);
  // A broken connection cancels nothing here: the client may reconnect for the answer.
  return answerFrom(request, stream, {.revision = ProtocolRevision::legacy, .headers = std::move(headers)});
}

http::Response HttpEndpoint::get(http::Request& request) {
  if (request.head.header("mcp-session-id") == nullptr)
    return plainText(405, "a stream needs a session", {{"Allow", "POST"}});
  auto found = sessionOf(request);
  if (!found) return std::move(found.error());
  const SessionPointer session = *std::move(found);
  if (const std::string* last = request.head.header("last-event-id")) {
    const std::size_t dash = last->rfind('-');
    std::size_t number = 0;
    std::shared_ptr<HttpStream> stream;
    if (dash != std::string::npos) {
      std::from_chars(last->data() + dash + 1, last->data() + last->size(), number);
      const std::lock_guard lock(session->mutex);
      const auto place = session->streams.find(last->substr(0, dash));
      if (place != session->streams.end()) stream = place->second;
    }
    if (stream == nullptr) return plainText(404, "that stream is no longer kept");
    return answerFrom(request, stream, {.revision = ProtocolRevision::legacy, .after = number, .always_stream = true});
  }
  const auto stream = openStream(*session);
  session->client->setStream(stream);
  const auto forget = [session, stream] {
    if (session->client->stream() == stream) session->client->setStream(nullptr);
  };
  return answerFrom(request, stream,
                    {.revision = ProtocolRevision::legacy, .always_stream = true, .on_abandon = forget});
}

http::Response HttpEndpoint::remove(http::Request& request) {
  auto found = sessionOf(request);
  if (!found) return std::move(found.error());
  const SessionPointer session = *std::move(found);
  {
    const std::lock_guard lock(mutex_);
    sessions_.erase(headerOr(request.head, "mcp-session-id"));
  }
  session->client->cancelAll();
  if (const auto stream = session->client->stream()) static_cast<HttpStream&>(*stream).finish();
  return {.status = 204};
}

std::expected<HttpEndpoint::SessionPointer, http::Response> HttpEndpoint::sessionOf(const http::Request& request) {
  const std::string* id = request.head.header("mcp-session-id");
  if (id == nullptr) return std::unexpected(plainText(400, "Mcp-Session-Id is missing; begin with `initialize`"));
  const std::lock_guard lock(mutex_);
  const auto place = sessions_.find(*id);
  if (place == sessions_.end())
    return std::unexpected(plainText(404, "there is no such session; begin with `initialize`"));
  place->second->used = std::chrono::steady_clock::now();
  return place->second;
}

std::string HttpEndpoint::newSession(const SessionPointer& session) {
  std::string id = randomDigits(32);
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
