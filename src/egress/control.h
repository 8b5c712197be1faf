// For a session's egress process: accepts rule changes over a socket in the session's private directory, and exits with
// the sandbox.
#pragma once

#include <list>
#include <string>

#include "egress/askers.h"
#include "egress/loop.h"
#include "egress/records.h"
#include "sys/fd.h"

namespace caisson::egress {

class Server;

class Control final : public Watcher {
 public:
  /// `init`: pidfd of pid 1 of the sandbox; `listener`: socket for requests of processes of the same user.
  Control(Server& server, sys::Fd init, sys::Fd listener);

  [[nodiscard]] bool watch();
  void onEvents(int descriptor, std::uint32_t events) override;

  Askers askers;

 private:
  void accept();
  void answer(int descriptor);

  Server& server_;
  sys::Fd init_, listener_;
  std::list<sys::Fd> clients_;
};

}  // namespace caisson::egress
