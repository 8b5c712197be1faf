// The processes that can put a question to a person, in a session whose commands several of them started (SPEC A1).
//
// Each stands for one command on one terminal. A connection comes from the network that all commands of the session
// share, so it waits with a ticket: every process is told both ends of it and says whether one of its own command's
// processes holds it. Whose it is, that one asks, and only its answer counts for it. What is nobody's (a background
// command's, that of a command without a terminal) is refused as soon as all have said so. A process that goes away,
// however it ends, takes nothing along: what waits for it is refused.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <set>
#include <string>

#include "egress/host_name.h"
#include "egress/loop.h"
#include "egress/questions.h"
#include "egress/records.h"
#include "egress/settings.h"
#include "egress/sockets.h"
#include "sys/fd.h"

namespace caisson::egress {

class Server;

/// What a process sends over the session's control socket that wants to be told of connections. Answered with `ready`;
/// after that it hears of claims and questions and sends changes.
inline constexpr std::string_view kWantsQuestions = "questions";

class Askers final : public Watcher {
 public:
  explicit Askers(Server& server) : server_(server) {}

  void add(sys::Fd client);
  [[nodiscard]] bool any() const { return !askers_.empty(); }

  /// A connection's ticket, or 0 when there is nobody to ask about it. Server::answer() gets it back.
  std::uint64_t ask(const HostPort& target, const Endpoint& from, const Endpoint& to);
  /// The connection is gone, or needs no answer any more.
  void forget(std::uint64_t ticket) { waiting_.erase(ticket); }
  /// A rule of the session settles every question about exactly this.
  void ruled(const std::string& pattern, bool denied);
  /// Refuses what one that says nothing holds up.
  void tick(Clock::time_point now);
  void onEvents(int descriptor, std::uint32_t events) override;

 private:
  struct Asker {
    std::uint64_t number = 0;
    sys::Fd socket;
    Questions questions;
  };
  struct Waiting {
    HostPort target;
    std::set<std::uint64_t> unheard;  ///< who has not said yet whether it is theirs
    std::uint64_t owner = 0;
    Clock::time_point since;
  };

  bool onChange(Asker& asker, std::string_view packet);
  bool onClaim(Asker& asker, const Change& change);
  void onAnswer(Asker& asker, const HostPort& target, bool permitted);
  void notTheirs(std::uint64_t asker, std::uint64_t ticket);
  void drop(std::list<Asker>::iterator asker);
  void answer(std::uint64_t ticket, bool permitted);
  static bool tell(const Asker& asker, const Report& report);

  Server& server_;
  std::list<Asker> askers_;
  std::map<std::uint64_t, Waiting> waiting_;  ///< by ticket
  std::uint64_t last_asker_ = 0, last_ticket_ = 0;
};

}  // namespace caisson::egress
