// The routes of the API, as one table: it routes requests, checks their input and is the OpenAPI document.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_document.h"
#include "http/message.h"
#include "service/byte_budget.h"
#include "service/principal.h"

namespace caisson::server {

class App;

enum class FieldType : std::uint8_t { text, integer, number, boolean, texts, variables, object };

/// One member of a JSON body, or one query parameter.
struct Field {
  std::string_view name;
  FieldType type = FieldType::text;
  bool required = false;
  std::string_view description;
  double least = 0, most = 1e15;  ///< of numbers
  std::string_view choices;       ///< of a text, separated by commas; empty: any
};

/// Who may use a route. `open`: everybody. `owner`: the server's user, on the unix socket.
enum class Access : std::uint8_t { open, read, exec, admin, owner };
/// Bodies up to this size are not counted (ByteBudget).
inline constexpr std::uint64_t kSmallBody = std::uint64_t{64} << 10U;
enum class BodyKind : std::uint8_t { none, json, raw };

struct Call;

struct Route {
  std::string_view method, pattern;  ///< "/v1/sandboxes/{id}"
  std::string_view operation;        ///< operationId
  std::string_view tag, summary;
  Access access = Access::read;
  BodyKind body = BodyKind::none;
  std::span<const Field> fields;  ///< of a JSON body
  std::span<const Field> query;
  int status = 200;
  std::string_view result;  ///< name of the schema of the response; empty: none
  std::string_view content_type = "application/json";
  http::Lane lane = http::Lane::quick;
  bool idempotent_key = false;  ///< takes Idempotency-Key
  bool immediate = false;       ///< performed on the event loop: needs no work
  std::uint64_t body_limit = std::uint64_t{1} << 20U;
  http::Response (*perform)(Call& call) = nullptr;
};

/// A request that was admitted and checked.
struct Call {
  App& app;
  http::Request& request;
  const Route& route;
  service::Principal caller;
  std::vector<std::string> path;  ///< the values of {...}
  Json body = Json::object();
  /// Memory that the request may use beyond small amounts (kSmallBody); null: no limit.
  std::shared_ptr<service::ByteBudget::Hold> bytes = {};
  bool counted = false;    ///< `bytes` includes the response
  bool unchanged = false;  ///< the request changed nothing, so its response may be replaced by a refusal
  std::string key = {};    ///< for create: the session's name, chosen before, so that a crash loses nothing
  bool started = false;    ///< a command was started: whatever fails later, the key must not be free again

  [[nodiscard]] const std::string& id() const { return path[0]; }
  [[nodiscard]] bool has(std::string_view name) const { return body.contains(name); }
  [[nodiscard]] std::string text(std::string_view name) const { return textAt(body, name).value_or(""); }
  [[nodiscard]] bool flag(std::string_view name) const { return booleanAt(body, name).value_or(false); }
  [[nodiscard]] double number(std::string_view name, double otherwise) const;
  [[nodiscard]] std::vector<std::string> texts(std::string_view name) const;
  [[nodiscard]] std::string query(std::string_view name) const;
  [[nodiscard]] std::uint64_t queryNumber(std::string_view name, std::uint64_t otherwise) const;
  [[nodiscard]] bool queryFlag(std::string_view name, bool otherwise) const;
};

/// All routes.
std::vector<const Route*> allRoutes();
std::span<const Route> sandboxRoutes();
std::span<const Route> commandRoutes();
std::span<const Route> fileRoutes();
std::span<const Route> historyRoutes();
std::span<const Route> networkRoutes();
std::span<const Route> serverRoutes();

struct Match {
  const Route* route = nullptr;
  std::vector<std::string> path;
  std::string allowed;  ///< methods of other routes with this path
};
Match matchRoute(std::string_view method, const std::vector<std::string>& segments);

/// What is wrong with the input; empty if nothing.
std::string findBodyFlaw(const Route& route, const Json& body);
std::string findQueryFlaw(const Route& route, const http::Target& target);

http::Response jsonResponse(int status, const Json& value);

/// A response with one list, written at once: a document of values would use several times the memory.
class JsonList {
 public:
  explicit JsonList(std::string_view member) : text_("{\"" + std::string(member) + "\":[") {}
  /// False if the response is as large as it may be; the value is left out.
  bool add(const Json& value) { return addText(writeJson(value)); }
  bool addText(std::string_view json);
  /// `others`: further members, as JSON.
  http::Response finish(std::string_view others = {});

 private:
  static constexpr std::size_t kMaxBytes = std::size_t{8} << 20U;
  std::string text_;
  bool first_ = true;
};

/// RFC 9457. `action`: what to do about it, the member `try`.
http::Response problem(int status, std::string_view code, std::string_view reason, std::string_view action = {});
http::Response problemOf(const Error& error);
/// The audit log cannot be written, so nothing was done.
http::Response notRecorded(const Error& error);
/// 429: the caller has too many streams, terminals or archives at a time.
http::Response tooMany();
/// 429: large requests and responses of the caller use too much memory.
http::Response tooManyBytes();

/// The OpenAPI 3.1 document.
std::string openApi();

}  // namespace caisson::server
