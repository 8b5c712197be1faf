// One session in use by this process, behind the public Session.
#pragma once

#include "session/connection.h"
#include "session/sandbox.h"
#include "session/store.h"

namespace caisson::session {

class Handle {
 public:
  Handle(std::shared_ptr<Store> store, Store::Found found)
      : store_(std::move(store)), directory_(std::move(found.directory)), metadata_(std::move(found.metadata)) {}

  [[nodiscard]] const std::string& id() const { return metadata_.id; }
  [[nodiscard]] const sys::RootDir& directory() const { return directory_; }
  [[nodiscard]] const Metadata& metadata() const { return metadata_; }
  [[nodiscard]] Store& store() const { return *store_; }

  /// A connection to pid 1, which is started if it is not there.
  Result<const Connection*> connect();
  /// Forgets the connection: pid 1 went away.
  void disconnect() { connection_.reset(); }

  Result<plan::Plan> plan(const plan::Command& command);
  Result<RunResult> exec(const ExecRequest& request);
  Result<void> renew(double ttl_seconds);

  /// Takes the session's lock and reads its metadata again; an error when it was destroyed meanwhile.
  Result<sys::Fd> lock();

 private:
  Result<std::optional<Connection>> start();

  std::shared_ptr<Store> store_;
  sys::RootDir directory_;
  Metadata metadata_;
  std::optional<Planner> planner_;
  std::optional<Connection> connection_;
};

}  // namespace caisson::session
