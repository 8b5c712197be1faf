#include "server/app.h"

#include <unistd.h>

#include <algorithm>
#include <ctime>

#include "base/text.h"
#include "server/preview.h"
#include "server/streams.h"

namespace caisson::server {
namespace {

using service::Principal;
using service::Scope;

constexpr std::string_view kCsrfHeader = "x-caisson-csrf";

/// The response to a repetition if the first response was lost, but its command may have run.
service::StoredResponse outcomeUnknown() {
  const http::Response response =
      problem(409, "outcome_unknown", "the first request with this key ended without a response",
              "list the commands of the sandbox, then use a new key");
  return {response.status, std::get<std::string>(response.body)};
}

bool changesState(std::string_view method) { return method != "GET" && method != "HEAD"; }

bool mayUse(const Principal& caller, Access access) {
  switch (access) {
    case Access::open: return true;
    case Access::read: return caller.may(Scope::read);
    case Access::exec: return caller.may(Scope::exec);
    case Access::admin: return caller.may(Scope::admin);
    case Access::owner: return caller.owner;
  }
  return false;
}

std::string_view neededScope(Access access) {
  if (access == Access::owner) return "only the owner may do this, on the unix socket";
  if (access == Access::admin) return "the token lacks the scope admin";
  return access == Access::exec ? "the token lacks the scope exec" : "the token lacks the scope read";
}

http::Response notAuthorized(const http::RequestHead& head) {
  const bool elsewhere = !head.peer.is_owner && head.peer.uid == ::geteuid() && head.header("authorization") == nullptr;
  http::Response response =
      elsewhere
          ? problem(401, "unauthorized",
                    "this program is in another user namespace than the server (a sandbox, a container, `unshare`), "
                    "so it needs a token",
                    "send a token (caisson token create NAME), or connect from outside of the namespace")
          : problem(401, "unauthorized", "a valid token is needed", "caisson token create NAME");
  response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

}  // namespace

Result<std::unique_ptr<App>> App::create(AppOptions options) {
  std::unique_ptr<App> app(new App(std::move(options)));
  auto tokens = service::TokenStore::open();
  if (!tokens) return std::unexpected(tokens.error());
  // Otherwise every token would be refused without a reason.
  if (const auto list = tokens->list(); !list) return std::unexpected(list.error());
  app->tokens_ = std::make_unique<service::TokenChecker>(*std::move(tokens));
  auto sandboxes = service::Sandboxes::open(app->options_.program, app->events_);
  if (!sandboxes) return std::unexpected(sandboxes.error());
  app->sandboxes_ = *std::move(sandboxes);
  auto keys = service::IdempotencyKeys::open();
  if (!keys) return std::unexpected(keys.error());
  app->keys_ = *std::move(keys);
  app->forgetEndedSandboxes();
  auto inbox = service::Inbox::open();
  if (!inbox) return std::unexpected(inbox.error());
  app->inbox_ = *std::move(inbox);
  app->webhooks_ = std::make_unique<service::Webhooks>(app->events_, app->options_.settings.webhooks);
  if (auto started = app->startPools(); !started) return std::unexpected(started.error());
  return app;
}

void App::forgetEndedSandboxes() {
  const Principal owner{.id = "owner", .name = "owner", .owner = true};
  keys_->forgetUnless([&](const std::string& id) { return sandboxes_->find(owner, id).has_value(); });
  // With a share of the keys: an event may be announced while this is destroyed.
  ended_ = events_.subscribe([keys = keys_](const service::LifecycleEvent& event) {
    if (event.type == "sandbox.ended") keys->forget(event.sandbox);
  });
}

Result<void> App::startPools() {
  const Principal owner{.id = "owner", .name = "owner", .owner = true};
  for (const service::Template& one : options_.settings.templates) {
    // Also without a pool, so that mistakes in a template show at the start.
    auto chosen = service::choosePolicy(owner, one.policy, options_.settings.allow_workspaces);
    if (!chosen) return std::unexpected(chosen.error());
    if (one.pool == 0) continue;
    PoolOptions pool_options{.size = one.pool, .new_name = service::Sandboxes::newKey};
    pool_options.warm_up = one.warm_up.value_or(std::vector<std::string>{"true"});
    pool_options.require_warm_up = one.warm_up.has_value();  // an image may have no `true`
    auto pool = sandboxes_->store().pool({.policy = chosen->policy, .keep = true}, std::move(pool_options));
    if (!pool) return std::unexpected(pool.error());
    pools_.emplace(one.name, TemplatePool{*std::move(pool), *std::move(chosen)});
  }
  return {};
}

const service::Template* App::findTemplate(std::string_view name) const {
  for (const service::Template& one : options_.settings.templates)
    if (one.name == name) return &one;
  return nullptr;
}

TemplatePool* App::pool(const std::string& template_name) {
  const auto found = pools_.find(template_name);
  return found == pools_.end() ? nullptr : &found->second;
}

std::map<std::string, std::size_t> App::readyPools() {
  std::map<std::string, std::size_t> ready;
  for (const auto& [name, pool] : pools_) ready[name] = pool.sessions.ready();
  return ready;
}

std::shared_ptr<void> App::takeSlot(const Principal& caller, Lasting kind) {
  constexpr std::size_t kMaxLasting[] = {8, 32, 1200, 16};
  const auto index = static_cast<std::size_t>(kind);
  return lasting_[index].take(caller.id, kMaxLasting[index]);
}

bool App::isReady() {
  const std::lock_guard lock(ready_mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (ready_at_.time_since_epoch().count() != 0 && now - ready_at_ < std::chrono::seconds(1)) return ready_;
  const Principal none{.id = "-"};
  ready_ = sandboxes_->list(none).has_value();
  ready_at_ = now;
  return ready_;
}

void App::publish(std::string type, const service::Sandbox& sandbox, Json data) {
  events_.publish(std::move(type), sandbox.id(), sandbox.record().owner, std::move(data));
}

std::optional<http::Response> App::checkSource(const http::RequestHead& head) const {
  const std::string* host = head.header("host");
  const auto authority = host == nullptr ? std::nullopt : http::parseAuthority(*host);
  if (!authority) return problem(400, "invalid_host", "missing or malformed Host header");
  const auto& hosts = options_.settings.hosts;
  const bool known =
      http::isLoopback(*authority) || std::find(hosts.begin(), hosts.end(), authority->host) != hosts.end();
  // A page of another site whose name resolves to this machine (DNS rebinding) has that site's name here.
  if (!known && !head.peer.uid)
    return problem(421, "wrong_host", "this server does not serve this host name",
                   "add it to hosts in the --config file");
  const std::string* site = head.header("sec-fetch-site");
  if (site != nullptr && *site != "same-origin" && *site != "none")
    return problem(403, "cross_site", "requests of other sites are refused");
  const std::string* origin_text = head.header("origin");
  if (origin_text == nullptr) return std::nullopt;
  const auto origin = http::parseOrigin(*origin_text);
  const std::string default_port = head.peer.tls ? "443" : "80";
  const auto port = [&](const std::string& text) { return text.empty() ? default_port : text; };
  if (!origin || origin->scheme != (head.peer.tls ? "https" : "http") || origin->authority.host != authority->host ||
      port(origin->authority.port) != port(authority->port))
    return problem(403, "cross_origin", "requests of other origins are refused");
  if (changesState(head.method) && head.header(kCsrfHeader) == nullptr)
    return problem(403, "csrf", "a change from a browser needs the header X-Caisson-CSRF", "send X-Caisson-CSRF: 1");
  return std::nullopt;
}

std::optional<Principal> App::identify(const http::RequestHead& head) {
  constexpr std::string_view kBearer = "bearer ";
  if (const std::string* text = head.header("authorization")) {
    if (lowered(text->substr(0, kBearer.size())) != kBearer) return std::nullopt;
    return tokens_->check(trimmed(std::string_view(*text).substr(kBearer.size())), service::Instant::now());
  }
  if (head.peer.is_owner) return Principal{.id = "owner", .name = "owner", .owner = true};
  return std::nullopt;
}

bool App::takeTurn(const Principal& caller) {
  if (!caller.quotas.rate) return true;
  const std::lock_guard lock(rate_mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (buckets_.size() > 100'000) buckets_.clear();
  auto [place, is_new] = buckets_.try_emplace(caller.id);
  Bucket& bucket = place->second;
  const double most = std::max(1.0, 2 * *caller.quotas.rate);
  const double passed = std::chrono::duration<double>(now - bucket.at).count();
  bucket.left = is_new ? most : std::min(most, bucket.left + passed * *caller.quotas.rate);
  bucket.at = now;
  if (bucket.left < 1) return false;
  bucket.left -= 1;
  return true;
}

service::RequestRecord App::recordOf(const http::RequestHead& head, const Principal& caller, std::string_view operation,
                                     std::string_view sandbox) {
  // Cut: long ones would push older records out of the log, which has a size limit.
  return {.caller = caller.name,
          .caller_id = caller.id,
          .peer = head.peer.address,
          .method = head.method.substr(0, 16),
          .path = std::string(head.target.path().substr(0, 200)),
          .operation = std::string(operation),
          .sandbox = std::string(sandbox.substr(0, 64))};
}

void App::noteRefusal(const http::RequestHead& head, const Principal& caller, std::string_view operation,
                      std::string_view sandbox, const http::Response& response) {
  service::RequestRecord record = recordOf(head, caller, operation, sandbox);
  record.status = response.status;
  record.reason = http::reasonPhrase(response.status);
  trail_.refuse(std::move(record));
}

http::Admission App::refuse(const http::RequestHead& head, const Principal& caller, std::string_view operation,
                            http::Response response) {
  noteRefusal(head, caller, operation, "", response);
  return {.response = std::move(response)};
}

std::optional<http::Response> App::takeShare(const http::RequestHead& head, const Route& route,
                                             const std::string& sharer, Admitted& admitted) {
  if (sharer.empty()) return std::nullopt;
  const bool command = route.lane == http::Lane::command;
  if (command || route.lane == http::Lane::transfer) {
    admitted.slot = command ? commands_.take(sharer, kCommandsPerCaller) : transfers_.take(sharer, kTransfersPerCaller);
    if (!admitted.slot) {
      http::Response response = problem(429, "too_many_requests", "too many requests of this token are being handled");
      response.headers.emplace_back("Retry-After", "1");
      return response;
    }
  }
  admitted.bytes = bytes_.hold(sharer);
  const std::uint64_t body = !head.has_body ? 0 : head.content_length.value_or(route.body_limit);
  if (route.body != BodyKind::json || body <= kSmallBody || body > route.body_limit) return std::nullopt;
  if (!admitted.bytes->add(2 * body)) return tooManyBytes();  // as text and as values
  return std::nullopt;
}

http::Admission App::admit(const http::RequestHead& head) {
  if (auto preview = admitPreview(head)) return *std::move(preview);
  const Principal anonymous;
  if (auto refusal = checkSource(head)) return refuse(head, anonymous, "", *std::move(refusal));
  Match match = matchRoute(head.method, head.target.segments);
  const auto known = identify(head);
  const bool open = match.route != nullptr && match.route->access == Access::open;
  if (!known && !open) {
    return refuse(head, anonymous, "", notAuthorized(head));
  }
  const Principal caller = known.value_or(anonymous);
  if (match.route == nullptr) {
    if (match.allowed.empty())
      return refuse(head, caller, "", problem(404, "not_found", "no such route", "see /v1/openapi.json"));
    http::Response response = problem(405, "method_not_allowed", "this route has other methods: " + match.allowed);
    response.headers.emplace_back("Allow", match.allowed);
    return refuse(head, caller, "", std::move(response));
  }
  const Route& route = *match.route;
  if (!mayUse(caller, route.access))
    return refuse(head, caller, route.operation, problem(403, "scope", neededScope(route.access)));
  if (!takeTurn(caller)) {
    http::Response response = problem(429, "rate_limited", "too many requests of this token");
    response.headers.emplace_back("Retry-After", "1");
    return refuse(head, caller, route.operation, std::move(response));
  }
  if (const std::string flaw = findQueryFlaw(route, head.target); !flaw.empty())
    return refuse(head, caller, route.operation, problem(400, "invalid_query", flaw));
  const std::string* type = head.header("content-type");
  if (route.body == BodyKind::json && head.has_body &&
      (type == nullptr || !lowered(*type).starts_with("application/json")))
    return refuse(head, caller, route.operation, problem(415, "not_json", "the body must be application/json"));
  const std::string sharer = caller.owner ? "" : known ? caller.id : "anonymous";
  if (route.immediate && !head.has_body) {
    http::Request none;
    Call call{.app = *this, .request = none, .route = route, .caller = caller, .path = {}};
    return {.response = route.perform(call), .known = known.has_value(), .caller = sharer};
  }
  auto admitted = std::make_shared<Admitted>();
  if (auto refusal = takeShare(head, route, sharer, *admitted))
    return refuse(head, caller, route.operation, *std::move(refusal));
  admitted->route = &route;
  admitted->caller = caller;
  admitted->path = std::move(match.path);
  return {.body_limit = route.body == BodyKind::none ? 0 : route.body_limit,
          .stream_body = route.body == BodyKind::raw,
          .lane = route.lane,
          .known = known.has_value(),
          .caller = sharer,
          .context = std::move(admitted)};
}

http::Response App::handle(http::Request& request) {
  auto& admitted = *static_cast<Admitted*>(request.context.get());
  if (admitted.preview) return preview(request, admitted);
  Call call{.app = *this,
            .request = request,
            .route = *admitted.route,
            .caller = admitted.caller,
            .path = admitted.path,
            .bytes = admitted.bytes};
  const bool in_sandbox = call.route.pattern.starts_with("/v1/sandboxes/{id}");
  const std::string_view id = in_sandbox ? std::string_view(call.id()) : "";
  if (call.route.access != Access::open) {
    auto recorded = trail_.record(recordOf(request.head, call.caller, call.route.operation, id));
    if (!recorded) return notRecorded(recorded.error());
  }
  http::Response response = perform(call);
  countBody(call, response);
  if (call.route.access != Access::open) endWithToken(*this, call.caller, response);
  const auto* text = std::get_if<std::string>(&response.body);
  // A large response is held in memory until the peer has read it, and so is what the request was given.
  if (text == nullptr || text->size() <= kSmallBody) {
    admitted.slot.reset();
    call.bytes.reset();
    admitted.bytes.reset();
  }
  {
    const std::lock_guard lock(rate_mutex_);
    ++responses_[response.status];
  }
  const bool refused = response.status == 403 || response.status == 404 || response.status == 429;
  if (refused && call.route.access != Access::open)
    noteRefusal(request.head, call.caller, call.route.operation, id, response);
  return response;
}

void App::countBody(Call& call, http::Response& response) {
  const auto* text = std::get_if<std::string>(&response.body);
  if (text == nullptr || text->size() <= kSmallBody || !call.bytes || call.counted) return;
  // If a change was made, its response must not be lost.
  const bool replaceable = call.unchanged || !changesState(call.request.head.method);
  if (!call.bytes->add(text->size()) && replaceable) response = tooManyBytes();
}

http::Response App::perform(Call& call) {
  if (call.route.body == BodyKind::json) {
    auto body = call.request.body.empty() ? Json(Json::object()) : parseJson(call.request.body);
    if (!body) return problem(400, "invalid_json", body.error());
    call.body = *std::move(body);
    if (const std::string flaw = findBodyFlaw(call.route, call.body); !flaw.empty())
      return problem(400, "invalid_body", flaw, "see /v1/openapi.json");
  }
  const std::string* key = call.request.head.header("idempotency-key");
  if (key == nullptr || !call.route.idempotent_key) return call.route.perform(call);
  if (key->empty() || key->size() > 256)
    return problem(400, "invalid_key", "an Idempotency-Key has 1 to 256 characters");
  if (call.route.operation == "runCommand" && call.text("mode") == "stream")  // a stream cannot be stored
    return problem(400, "invalid_key", "mode stream cannot be repeated, so it takes no Idempotency-Key",
                   "use mode background and read GET .../commands/ID/output");
  return performOnce(call, *key);
}

http::Response App::performOnce(Call& call, const std::string& key) {
  using State = service::IdempotencyKeys::State;
  call.key = service::Sandboxes::newKey();
  const std::string request =
      std::string(call.route.operation) + "\n" + std::string(call.request.head.target.text) + "\n" + call.request.body;
  const bool in_sandbox = call.route.pattern.starts_with("/v1/sandboxes/{id}");
  auto begun =
      keys_->begin(call.caller, key, {.text = request, .sandbox = in_sandbox ? call.id() : "", .note = call.key});
  if (!begun) return problemOf(begun.error());
  switch (begun->state) {
    case State::conflict:
      return problem(409, "idempotency_conflict", "this Idempotency-Key was used for another request");
    case State::in_progress:
      return problem(409, "idempotency_in_progress", "the first request with this Idempotency-Key still runs",
                     "try again");
    case State::replay: {
      http::Response response{.status = begun->response.status, .body = begun->response.body};
      response.headers.emplace_back("Content-Type", "application/json");
      response.headers.emplace_back("Idempotency-Replayed", "true");
      return response;
    }
    case State::interrupted:
      // A sandbox is found by its name. Whether a command ran cannot be known, and it must not run twice.
      call.key = begun->note;
      if (call.route.operation != "createSandbox") {
        keys_->finish(call.caller, key, outcomeUnknown());
        return problem(409, "outcome_unknown", "the server ended while it handled the first request",
                       "list the commands of the sandbox, then use a new key");
      }
      break;
    case State::fresh: break;
  }
  http::Response response = call.route.perform(call);
  const auto* body = std::get_if<std::string>(&response.body);
  std::optional<service::StoredResponse> kept;
  if (body != nullptr && response.status < 300) {
    kept = {response.status, *body};
  } else if (call.started) {
    kept = outcomeUnknown();
  }
  keys_->finish(call.caller, key, kept);
  return response;
}

http::Response App::failure(int status, std::string_view reason) {
  const char* code = status == 413   ? "too_large"
                     : status == 503 ? "busy"
                     : status == 408 ? "request_timeout"
                     : status == 502 ? "bad_gateway"
                                     : "malformed";
  if (status != 503) trail_.refuse({.status = status, .reason = std::string(reason)});
  return problem(status, code, reason);
}

}  // namespace caisson::server
