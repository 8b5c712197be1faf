// For one command of a session on a terminal: hosts that nobody named are asked about there while it runs (SPEC A1).
//
// The egress belongs to the session and serves all its commands, so this process tells it which connections are its
// command's, and is asked about those only (egress/askers.h). When this process ends, by whatever way, its end of the
// socket closes and what waited for an answer is refused.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "base/error.h"
#include "egress/records.h"
#include "supervise/host_questions.h"
#include "sys/fd.h"
#include "sys/root_dir.h"

namespace caisson::session {

class HostPrompt {
 public:
  /// Opens a host in the session's rules: until its end, or as long as an approval on record stands.
  using Open = std::function<Result<void>(const std::string& target, bool while_approved)>;

  /// Before the command starts. Null when the session's egress puts no questions: there is none, or one that an older
  /// caisson started.
  static std::unique_ptr<HostPrompt> attach(const sys::RootDir& directory, const std::string& session, Open open);

  HostPrompt(const HostPrompt&) = delete;
  HostPrompt& operator=(const HostPrompt&) = delete;

  /// The command's first process, as pid 1 of the session numbers it. Nothing is taken from descriptor() before.
  void follow(pid_t root) { root_ = root; }
  /// Readable when the egress has something to ask; -1 when not to be looked at.
  [[nodiscard]] int descriptor() const { return root_ > 0 ? socket_.get() : -1; }
  void onEvents();
  supervise::HostQuestions& questions() { return questions_; }
  /// The command is over, or being ended: what waits is refused, the terminal is as it was.
  void close();

 private:
  HostPrompt(sys::Fd socket, pid_t init, const std::string& session, Open open);
  Result<void> carryOut(const supervise::HostQuestions::Verdict& verdict);
  Result<void> send(const egress::Change& change) const;
  [[nodiscard]] bool isOurs(const egress::Claim& claim) const;

  sys::Fd socket_;
  const pid_t init_;
  pid_t root_ = -1;
  const Open open_;
  supervise::HostQuestions questions_;
};

}  // namespace caisson::session
