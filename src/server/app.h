// The HTTP API: admits requests, records them and calls their routes.
//
// Order of the checks, all before a body is read: Host, Origin, caller, route, scope, rate, query. A request that
// passes is recorded in the audit log before it is carried out; a refusal is recorded, too.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>

#include "http/server.h"
#include "http/workers.h"
#include "server/preview.h"
#include "server/route.h"
#include "service/byte_budget.h"
#include "service/change_watcher.h"
#include "service/events.h"
#include "service/idempotency.h"
#include "service/inbox.h"
#include "service/sandboxes.h"
#include "service/settings.h"
#include "service/slots.h"
#include "service/tokens.h"
#include "service/trail.h"
#include "service/webhooks.h"

namespace caisson::server {

struct AppOptions {
  service::Settings settings;
  std::string program;  ///< of caisson
  std::string version;
  std::optional<std::size_t> preview_listener;  ///< index of the listener that serves previews only
};

/// Sandboxes of one template that are ready in advance.
struct TemplatePool {
  SessionPool sessions;
  service::ChosenPolicy chosen;  ///< what all of them were created with
};

class App final : public http::Handler {
 public:
  static Result<std::unique_ptr<App>> create(AppOptions options);

  http::Admission admit(const http::RequestHead& head) override;
  http::Response handle(http::Request& request) override;
  http::Response failure(int status, std::string_view reason) override;

  service::Sandboxes& sandboxes() { return *sandboxes_; }
  service::Events& events() { return events_; }
  service::ChangeWatcher& watcher() { return watcher_; }
  service::Inbox& inbox() { return *inbox_; }
  const AppOptions& options() const { return options_; }
  /// Threads for work that outlives its request's thread: archives.
  http::Workers& background() { return background_; }
  /// Things that outlive the request's thread. Each caller may have so many at a time.
  enum class Lasting : std::uint8_t {
    costly,    ///< watches, audit streams, archives: they keep working
    terminal,  ///< a process each
    stream,    ///< output
    events,    ///< each wakes at every event, so they are few
  };
  /// Whether this token was neither revoked nor has expired.
  bool isValid(const std::string& token_id) { return tokens_->isValid(token_id, service::Instant::now()); }
  /// A slot that is held as long as the result; null if the caller has too many.
  std::shared_ptr<void> takeSlot(const service::Principal& caller, Lasting kind);
  /// The template of this name, or null; its pool, or null.
  const service::Template* findTemplate(std::string_view name) const;
  TemplatePool* pool(const std::string& template_name);
  std::map<std::string, std::size_t> readyPools();
  /// For metrics.
  void attach(const http::Server& server) { server_ = &server; }
  std::string metrics();
  /// Whether sandboxes can be listed. Everybody may ask, so it is found out once a second at most.
  bool isReady();
  /// Publishes an event about a sandbox.
  void publish(std::string type, const service::Sandbox& sandbox, Json data);

 private:
  explicit App(AppOptions options) : options_(std::move(options)) {}
  /// What admit() hands on to handle().
  struct Admitted {
    const Route* route = nullptr;
    service::Principal caller;
    std::vector<std::string> path;
    std::optional<PreviewName> preview;
    std::shared_ptr<service::ByteBudget::Hold> bytes;  ///< of the request and its response
    std::shared_ptr<void> slot;  ///< of a thread, freed when the handler returns; of a preview, until it ends
  };
  Result<void> startPools();
  /// Removes stored responses about sandboxes that ended, now and later.
  void forgetEndedSandboxes();
  /// Whether the request names this server and comes from its own pages, if from a page at all. Else the refusal.
  std::optional<http::Response> checkSource(const http::RequestHead& head) const;
  std::optional<service::Principal> identify(const http::RequestHead& head);
  static service::RequestRecord recordOf(const http::RequestHead& head, const service::Principal& caller,
                                         std::string_view operation, std::string_view sandbox);
  void noteRefusal(const http::RequestHead& head, const service::Principal& caller, std::string_view operation,
                   std::string_view sandbox, const http::Response& response);
  http::Admission refuse(const http::RequestHead& head, const service::Principal& caller, std::string_view operation,
                         http::Response response);
  /// Takes a slot and memory for a request; `sharer`: whose, empty for the owner. Else the refusal.
  std::optional<http::Response> takeShare(const http::RequestHead& head, const Route& route, const std::string& sharer,
                                          Admitted& admitted);
  /// A token's requests per second. False: too many.
  bool takeTurn(const service::Principal& caller);
  std::optional<http::Admission> admitPreview(const http::RequestHead& head);
  http::Response preview(http::Request& request, Admitted& admitted);
  /// Counts a large response; replaces it by a refusal if the caller has too many.
  static void countBody(Call& call, http::Response& response);
  http::Response perform(Call& call);
  http::Response performOnce(Call& call, const std::string& key);

  /// Threads that one caller may occupy: others must get some, too.
  static constexpr std::size_t kTransfersPerCaller = 16, kCommandsPerCaller = 96;
  /// Requests that are passed on to one sandbox at a time.
  static constexpr std::size_t kPreviewsPerSandbox = 256;

  AppOptions options_;
  static constexpr std::uint64_t kBytesPerCaller = std::uint64_t{128} << 20U, kBytesOfAll = std::uint64_t{1} << 30U;

  service::ByteBudget bytes_{kBytesPerCaller, kBytesOfAll};
  service::Slots transfers_, commands_, previews_, lasting_[4];
  service::Events events_;
  service::ChangeWatcher watcher_;
  service::Trail trail_;
  std::unique_ptr<service::TokenChecker> tokens_;
  std::unique_ptr<service::Sandboxes> sandboxes_;
  std::shared_ptr<service::IdempotencyKeys> keys_;
  std::shared_ptr<void> ended_;  ///< a subscription
  std::unique_ptr<service::Inbox> inbox_;
  std::unique_ptr<service::Webhooks> webhooks_;
  std::mutex pools_mutex_;
  std::map<std::string, TemplatePool> pools_;
  std::mutex rate_mutex_;
  struct Bucket {
    double left = 0;
    std::chrono::steady_clock::time_point at;
  };
  std::map<std::string, Bucket> buckets_;
  const http::Server* server_ = nullptr;
  std::mutex ready_mutex_;
  bool ready_ = false;
  std::chrono::steady_clock::time_point ready_at_;
  std::map<int, std::uint64_t> responses_;  ///< by status; guarded by rate_mutex_
  /// Of archives; Lasting::costly limits how many a caller has. Without a queue: the body of a queued archive would not
  /// start for as long as others read theirs.
  http::Workers background_{http::WorkerLimits{.threads = 144, .reserved = 16}};
};

}  // namespace caisson::server
