// Prompts for hosts that the policy does not name, on the terminal of one command of a session.
//
// The egress serves all commands of the session, so this process reports which connections belong to its command, and
// gets only those prompts (egress/prompt_clients.h). When this process exits, its end of the socket closes and waiting
// connections are denied.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "base/error.h"
#include "egress/records.h"
#include "supervise/network/host_prompter.h"
#include "sys/fd.h"
#include "sys/root_dir.h"

namespace caisson::session {

class HostPrompt {
 public:
  /// Allows a host in the session's rules: until the session ends, or with `while_approved` while a stored approval is
  /// valid.
  using Open = std::function<Result<void>(const std::string& target, bool while_approved)>;

  /// Call before the command starts. Null if the session's egress does not prompt: there is none, an older caisson
  /// started it, or it did not answer within two seconds.
  static std::unique_ptr<HostPrompt> attach(const sys::RootDir& directory, const std::string& session, Open open);

  HostPrompt(const HostPrompt&) = delete;
  HostPrompt& operator=(const HostPrompt&) = delete;

  /// Call when the command has started: `root` is its first process, as a pid inside the sandbox. Prompts are only for
  /// connections of that process and its descendants.
  void follow(pid_t root) { root_ = root; }
  /// Readable when the egress has a prompt; -1 before follow() and after close().
  [[nodiscard]] int descriptor() const { return root_ > 0 ? socket_.get() : -1; }
  /// The descriptor is readable: handles one report of the egress, so that a program that keeps opening connections
  /// does not block the reading of its output. Closes at end of file.
  void onEvents();
  /// Do not call onEvents() before this time. After a slow search for the owner of a connection it is four times that
  /// long in the future: the payload decides how slow that is, and its output and the user's keys must not wait for it.
  [[nodiscard]] supervise::HostPrompter::Clock::time_point busyUntil() const { return busy_until_; }
  supervise::HostPrompter& questions() { return questions_; }
  /// The command ended or is being killed: denies waiting connections and restores the terminal.
  void close();

 private:
  HostPrompt(sys::Fd socket, pid_t init, const std::string& session, Open open);
  /// Carries out the user's answer: changes the session's rules for a host that is allowed, else informs the egress.
  Result<void> carryOut(const supervise::HostPrompter::Verdict& verdict);
  /// Sends to the egress without blocking; an error if its socket is full or closed.
  Result<void> send(const egress::Change& change) const;
  /// Whether a process of our command holds this connection. False if that is not found within a tenth of a second.
  [[nodiscard]] bool isOurs(const egress::Claim& claim);

  sys::Fd socket_;
  const pid_t init_;
  pid_t root_ = -1;
  const Open open_;
  supervise::HostPrompter questions_;
  supervise::HostPrompter::Clock::time_point busy_until_{};
};

}  // namespace caisson::session
