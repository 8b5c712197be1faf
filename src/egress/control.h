// For a session's egress process: accepts rule changes over a socket in the session's private directory, and exits with
// the sandbox.
#pragma once

#include <list>
#include <string>

#include "egress/loop.h"
#include "egress/prompt_clients.h"
#include "egress/records.h"
#include "sys/fd.h"

namespace caisson::egress {

class Server;

class Control final : public Watcher {
 public:
  /// `init`: pidfd of pid 1 of the sandbox; `listener`: socket for requests of processes of the same user.
  Control(Server& server, sys::Fd init, sys::Fd listener);

  /// Registers both descriptors with the server's loop; false on failure.
  [[nodiscard]] bool watch();
  /// pid 1 has exited: ends the server. The listener: accepts a client. A client: answers its request.
  void onEvents(int descriptor, std::uint32_t events) override;

  PromptClients prompt_clients;

 private:
  /// Accepts one client; drops it if there are too many.
  void accept();
  /// Reads one request of a client, applies the change, replies and disconnects. A client that asks for prompts is
  /// moved to `prompt_clients` instead.
  void answer(int descriptor);

  Server& server_;
  sys::Fd init_, listener_;
  std::list<sys::Fd> clients_;
};

}  // namespace caisson::egress
