// Server-sent events: the output of a command, lifecycle events, the audit log, changes of files.
#pragma once

#include <memory>

#include "http/message.h"
#include "server/app.h"

namespace caisson::server {

/// One event of a stream.
std::string sseEvent(std::string_view type, std::string_view id, const Json& data);

struct OutputOptions {
  App& app;
  service::SandboxPointer sandbox;
  std::uint32_t command = 0;
  std::uint64_t out = 0, err = 0;  ///< offsets to begin at
  std::shared_ptr<void> slot;      ///< held by the stream
};
/// The output of a command, then its end. Ids of events are "STDOUT-STDERR" offsets, so a client can continue where it
/// was (Last-Event-ID). `follow`: wait for more until the command ends. `first`: an event before all.
std::shared_ptr<http::Source> outputSource(OutputOptions options, bool follow, std::string first);
/// Lifecycle events that the caller sees, after this id.
std::shared_ptr<http::Source> eventSource(App& app, service::Principal caller, std::uint64_t after,
                                          std::shared_ptr<void> slot);
/// New records of the audit log that the caller sees.
std::shared_ptr<http::Source> auditSource(App& app, service::Principal caller, std::shared_ptr<void> slot);
/// What a watch uses of its caller's share, until it ends.
struct WatchHolds {
  std::shared_ptr<void> slot;
  std::shared_ptr<service::ByteBudget::Hold> bytes;  ///< null: no limit
};
/// What appears, changes and disappears below a directory.
std::shared_ptr<http::Source> watchSource(App& app, service::SandboxPointer sandbox, std::string path,
                                          WatchHolds holds);

/// Ends a response that lasts (a stream, an archive, a terminal) when the caller's token is revoked or expires.
void endWithToken(App& app, const service::Principal& caller, http::Response& response);

http::Response streamResponse(std::shared_ptr<http::Source> source);

}  // namespace caisson::server
