// Prompts the user for a host that the policy does not name, while the connection to it waits. Answers:
// once, for this run or session, for good, or no.
//
// The payload controls when a prompt appears and for which host. So the text is built here from a canonical name; the
// payload's output waits while a prompt is on the screen and cannot draw over it; input typed before it is discarded;
// an answer needs a letter and Enter; and the number of prompts is limited. Every prompt and answer is recorded before
// it takes effect.
#pragma once

#include <termios.h>

#include <chrono>
#include <deque>
#include <functional>
#include <optional>
#include <string>

#include "base/error.h"
#include "egress/records.h"
#include "egress/settings.h"
#include "sys/fd.h"

namespace caisson::supervise {

class HostQuestions {
 public:
  using Clock = std::chrono::steady_clock;
  /// How long an approval lasts: for the run, or for the session of the command.
  enum class Span : std::uint8_t { run, session };
  struct Verdict {
    egress::Change change;        ///< allow, permit or refuse
    bool while_approved = false;  ///< allow: only while the stored approval is valid
  };
  using Tell = std::function<Result<void>(const Verdict&)>;

  /// `tell` sends each answer to the egress process; if that fails, a refusal is sent instead.
  HostQuestions(Span span, std::string sandbox_id, Tell tell)
      : span_(span), sandbox_id_(std::move(sandbox_id)), tell_(std::move(tell)) {}
  ~HostQuestions() { withdraw(); }
  HostQuestions(const HostQuestions&) = delete;
  HostQuestions& operator=(const HostQuestions&) = delete;

  /// Queues a host that the egress process asks about, and prompts if no prompt is open. The request is trusted only
  /// for the fact that some host is wanted.
  void add(const egress::Request& request);
  /// Whether a prompt is on the screen: until it is answered nothing else may use the terminal.
  [[nodiscard]] bool open() const { return terminal_.valid(); }
  /// The terminal, to be polled for input; -1 without a prompt.
  [[nodiscard]] int descriptor() const { return terminal_.get(); }
  /// When the prompt times out.
  [[nodiscard]] std::optional<Clock::time_point> deadline() const { return deadline_; }
  /// The terminal is readable: handles the keys that were typed.
  void onInput();
  /// Call at the deadline: no answer means no.
  void look(Clock::time_point now);
  /// The run or the command ends: withdraws the prompt and restores the terminal. Waiting hosts get no answer.
  void withdraw();

 private:
  /// `lasting`: for the run or session; `good`: stored for later ones, too; `never`: no, and no more prompts.
  enum class Answer : std::uint8_t { once, lasting, good, no, never };
  /// A stored approval of the host: none, for one use, or a lasting one.
  enum class Before : std::uint8_t { nothing, once, standing };

  /// Handles waiting hosts until a prompt is open: those with a stored approval are allowed, those that cannot be
  /// prompted for are refused.
  void askNext();
  /// Records and shows the prompt. False: the user cannot be prompted (no terminal, too many prompts, "never").
  bool ask(const std::string& target);
  /// Looks up a stored approval; one for a single use is consumed.
  Before onRecord(const std::string& what) const;
  /// Records the answer to the open prompt, sends the verdict, closes the prompt and opens the next.
  void take(Answer answer);
  /// Sends the verdict to the egress process; if that fails, sends a refusal and returns the error.
  Result<void> sendVerdict(const std::string& target, const Verdict& verdict);
  /// Records the answer; `good` also stores an approval for a year.
  [[nodiscard]] Result<void> record(const std::string& what, Answer answer) const;
  /// Writes to the terminal without blocking; what does not fit is dropped.
  void write(std::string_view text) const;
  /// Prints a last line and restores the terminal's settings.
  void closeTerminal(std::string_view last_words);
  /// The answer that a typed line stands for; `no` for anything unknown.
  [[nodiscard]] Answer meaningOf(std::string_view word) const;

  const Span span_;
  const std::string sandbox_id_;
  const Tell tell_;
  std::deque<std::string> waiting_;  ///< "host:port" each; the first is on the screen
  std::size_t asked_ = 0;            ///< number of prompts
  bool never_ = false;               ///< the user answered "never"
  sys::Fd terminal_;
  termios before_{};
  std::string typed_;
  std::optional<Clock::time_point> deadline_;
};

}  // namespace caisson::supervise
