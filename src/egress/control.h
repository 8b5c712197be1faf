// For an egress process that no supervisor holds by the hand (sessions): ends with the sandbox, takes changes and tells
// what happened over a socket in the session's private directory.
#pragma once

#include <deque>
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
  /// `init`: pid 1 of the sandbox; `listener`: where processes of the same user ask.
  Control(Server& server, sys::Fd init, sys::Fd listener);

  [[nodiscard]] bool watch();
  void onEvents(int descriptor, std::uint32_t events) override;
  /// Keeps a report until somebody asks; the oldest go first when there are too many.
  void keep(const Report& report);

  Askers askers;

 private:
  void accept();
  void answer(int descriptor);

  Server& server_;
  sys::Fd init_, listener_;
  std::list<sys::Fd> clients_;
  std::deque<std::string> kept_;
};

}  // namespace caisson::egress
