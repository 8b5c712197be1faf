#include "mcp/server/server.h"

#include <utility>

namespace caisson::mcp {
namespace {

/// Each call that waits for a command or a user occupies a thread.
constexpr std::size_t kMaxThreads = 256;

RpcError invalidParams(std::string reason, Json data = {}) {
  return {code::kInvalidParams, std::move(reason), std::move(data)};
}

// Of all clients together. A client that reads no answers could fill the memory otherwise.
constexpr std::size_t kMaxCallBytes = std::size_t{64} << 20U;  ///< of calls, running and waiting
constexpr std::size_t kMaxAnswerBytes = std::size_t{128} << 20U;
/// Smaller answers are not counted: their number is limited by those of threads and connections.
constexpr std::size_t kSmallAnswer = std::size_t{16} << 10U;

/// About the memory that a value takes.
std::size_t memoryOf(const Json& value) {
  constexpr std::size_t kMember = 64;  // a node of a map
  std::size_t bytes = sizeof(Json);
  if (const auto* text = value.get_ptr<const std::string*>()) bytes += sizeof(std::string) + text->capacity();
  if (const auto* list = value.get_ptr<const Json::array_t*>())
    for (const Json& item : *list) bytes += memoryOf(item);
  if (const auto* members = value.get_ptr<const Json::object_t*>())
    for (const auto& [name, member] : *members) bytes += kMember + name.capacity() + memoryOf(member);
  return bytes;
}

RpcError unreadAnswers() {
  return {code::kInternal,
          "the call was carried out, and its result is lost: answers that no client has read fill the memory for them; "
          "read answers before you send further requests",
          {}};
}

RpcError methodNotFound(const std::string& method) { return {code::kMethodNotFound, "unknown method: " + method, {}}; }

/// Reads what 2026-07-28 requires in every request; returns an error if it is missing.
std::optional<RpcError> readModernMeta(Call& call) {
  const Json* meta = findObject(call.params, "_meta");
  if (meta == nullptr) return invalidParams("params._meta is missing; it must name the protocol version");
  const auto version = textAt(*meta, meta::kProtocolVersion);
  if (!version) return invalidParams("params._meta has no " + std::string(meta::kProtocolVersion));
  if (*version != kModernVersion) {
    Json supported = Json::array({kModernVersion});
    for (const std::string_view legacy : kLegacyVersions) supported.push_back(legacy);
    return RpcError{code::kUnsupportedVersion,
                    "unsupported protocol version",
                    {{"supported", std::move(supported)}, {"requested", *version}}};
  }
  const Json* capabilities = findObject(*meta, meta::kClientCapabilities);
  if (capabilities == nullptr) return invalidParams("params._meta has no " + std::string(meta::kClientCapabilities));
  call.version = *version;
  call.capabilities = *capabilities;
  call.log_level = textAt(*meta, meta::kLogLevel).value_or("");
  if (!call.log_level.empty() && logLevelRank(call.log_level) < 0) return invalidParams("unknown log level");
  return std::nullopt;
}

bool namesModernVersion(const Call& call) {
  const Json* meta = findObject(call.params, "_meta");
  return meta != nullptr && find(*meta, meta::kProtocolVersion) != nullptr;
}

}  // namespace

Server::Server(Features& features)
    : features_(features),
      call_memory_(kMaxCallBytes),
      answer_memory_(kMaxAnswerBytes),
      workers_(kMaxThreads, http::Workers::kNoLimit) {
  features_.connect(*this);
}

Server::~Server() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    watch_.notify_all();
  }
  if (watcher_.joinable()) watcher_.join();
}

void Server::refuse(const Malformed& malformed, Channel& channel) {
  channel.send(makeError(malformed.id, malformed.error));
}

void Server::receive(const std::shared_ptr<Client>& client, Message message, const std::shared_ptr<Channel>& channel,
                     Expect expect) {
  switch (message.kind) {
    case Message::Kind::response: client->deliver(std::move(message)); return;
    case Message::Kind::notification:
      // Others (initialized, roots/list_changed) change no state.
      if (message.method == "notifications/cancelled") {
        if (const Json* id = find(message.params, "requestId")) client->cancel(*id);
      }
      return;
    case Message::Kind::request: break;
  }
  const RpcError busy{code::kInternal, "too many requests at once; wait for some answers", {}};
  auto memory = call_memory_.reserve(memoryOf(message.params));
  if (memory == nullptr) return channel->send(makeError(message.id, busy));
  const auto call = std::make_shared<Call>(std::move(message), channel, client);
  call->memory = std::move(memory);
  switch (client->admit(call)) {
    case Client::Admission::admitted: break;
    case Client::Admission::duplicate:
      channel->send(makeError(call->id, {code::kInvalidRequest, "a request with this id is still being served", {}}));
      return;
    case Client::Admission::too_many: channel->send(makeError(call->id, busy)); return;
  }
  serve(call, expect);
}

void Server::serve(const std::shared_ptr<Call>& call, Expect expect) {
  const bool modern = expect == Expect::modern || (expect == Expect::either && namesModernVersion(*call));
  if (modern) return serveModern(call);
  const bool opens = call->method == "initialize" || call->method == "ping";
  if (expect == Expect::either && !opens && !call->client->agreement()) return serveModern(call);
  serveLegacy(call);
}

void Server::serveModern(const std::shared_ptr<Call>& call) {
  call->revision = ProtocolRevision::modern;
  if (const auto error = readModernMeta(*call)) return fail(*call, *error);
  if (call->method == "server/discover") return discover(*call);
  if (call->method == "subscriptions/listen") return listen(call);
  if (!serveShared(call)) fail(*call, methodNotFound(call->method));
}

void Server::serveLegacy(const std::shared_ptr<Call>& call) {
  call->revision = ProtocolRevision::legacy;
  if (call->method == "initialize") return initialize(*call);
  if (call->method == "ping") return succeed(*call, Json::object());
  const auto agreement = call->client->agreement();
  if (!agreement) return fail(*call, {code::kInvalidRequest, "`initialize` has to come first", {}});
  call->version = agreement->version;
  call->capabilities = agreement->capabilities;
  call->log_level = agreement->log_level;
  if (call->method == "logging/setLevel") {
    const auto level = textAt(call->params, "level");
    if (!level || logLevelRank(*level) < 0) return fail(*call, invalidParams("params.level is not a log level"));
    call->client->setLogLevel(*level);
    return succeed(*call, Json::object());
  }
  if (call->method == "resources/subscribe" || call->method == "resources/unsubscribe") {
    const auto uri = textAt(call->params, "uri");
    if (!uri) return fail(*call, invalidParams("params.uri is missing"));
    if (call->method == "resources/unsubscribe") {
      call->client->unsubscribe(*uri);
    } else if (!call->client->subscribe(*uri)) {
      return fail(*call, invalidParams("too many subscriptions"));
    }
    return succeed(*call, Json::object());
  }
  if (!serveShared(call)) fail(*call, methodNotFound(call->method));
}

void Server::initialize(Call& call) {
  const auto asked = textAt(call.params, "protocolVersion");
  if (!asked) return fail(call, invalidParams("params.protocolVersion is missing"));
  Client::Agreement agreement;
  agreement.version = isLegacyVersion(*asked) ? *asked : std::string(kLegacyVersions.front());
  if (const Json* capabilities = findObject(call.params, "capabilities")) agreement.capabilities = *capabilities;
  agreement.log_level = "info";
  call.version = agreement.version;
  Json result{{"protocolVersion", agreement.version},
              {"capabilities", features_.capabilities(ProtocolRevision::legacy)},
              {"serverInfo", features_.serverInfo()}};
  if (const std::string words = features_.instructions(); !words.empty()) result["instructions"] = words;
  call.client->agree(std::move(agreement));
  attach(call.client);
  succeed(call, std::move(result));
}

void Server::discover(Call& call) {
  Json versions = Json::array({kModernVersion});
  for (const std::string_view legacy : kLegacyVersions) versions.push_back(legacy);
  Json result{{"supportedVersions", std::move(versions)},
              {"capabilities", features_.capabilities(ProtocolRevision::modern)}};
  if (const std::string words = features_.instructions(); !words.empty()) result["instructions"] = words;
  const CacheHint keep = features_.listsKeep();
  result["ttlMs"] = keep.ttl_ms;
  result["cacheScope"] = keep.shared ? "public" : "private";
  succeed(call, std::move(result));
}

bool Server::serveShared(const std::shared_ptr<Call>& call) {
  const std::string& method = call->method;
  if (method == "tools/list") {
    serveList(*call, "tools", features_.tools());
  } else if (method == "prompts/list") {
    serveList(*call, "prompts", features_.prompts());
  } else if (method == "resources/list") {
    serveList(*call, "resources", features_.resources());
  } else if (method == "resources/templates/list") {
    serveList(*call, "resourceTemplates", features_.resourceTemplates());
  } else if (method == "tools/call") {
    dispatch(call, &Features::callTool);
  } else if (method == "prompts/get") {
    dispatch(call, &Features::getPrompt);
  } else if (method == "resources/read") {
    dispatch(call, &Features::readResource);
  } else if (method == "completion/complete") {
    dispatch(call, &Features::complete);
  } else {
    return serveTasks(call);
  }
  return true;
}

void Server::serveList(Call& call, const char* key, const Json& items) {
  if (call.params.contains("cursor")) return fail(call, invalidParams("unknown cursor: this list has one page only"));
  Json result{{key, items}};
  if (call.revision == ProtocolRevision::modern) {
    // Lists of sandboxes change all the time; those of tools and prompts never do.
    const CacheHint keep = std::string_view(key) == "resources" ? CacheHint{} : features_.listsKeep();
    result["ttlMs"] = keep.ttl_ms;
    result["cacheScope"] = keep.shared ? "public" : "private";
  }
  succeed(call, std::move(result));
}

void Server::succeed(Call& call, Json result) {
  if (call.revision == ProtocolRevision::modern) {
    if (!result.contains("resultType")) result["resultType"] = "complete";
    result["_meta"][meta::kServerInfo] = features_.serverInfo();
  }
  // Forget the call first: a client may reuse the id as soon as it has the answer.
  call.client->forget(call);
  Json message = makeResult(call.id, std::move(result));
  std::shared_ptr<void> memory;
  if (const std::size_t bytes = 2 * memoryOf(message); bytes > kSmallAnswer) {  // as a value and as text
    memory = answer_memory_.reserve(bytes);
    if (memory == nullptr) message = makeError(call.id, unreadAnswers());
  }
  call.answer(message, std::move(memory));
}

void Server::fail(Call& call, const RpcError& error) {
  call.client->forget(call);
  call.answer(makeError(call.id, error));
}

}  // namespace caisson::mcp
