// Prompts the user for a host that the policy does not name, while the connection to it waits. Answers:
// once, for this run or session, for good, or no.
//
// The payload controls when a prompt appears and for which host, and sees every key before it: it can open a prompt in
// the middle of a word that the user types for the program. So the text is built here from a canonical name; the
// payload's output waits while a prompt is on the screen and cannot draw over it; input typed before it, and until the
// user has paused, is discarded; an answer that allows something needs a random code, which is on the user's terminal
// only; and the number of prompts is limited. Every prompt and answer is recorded before it takes effect.
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

class HostPrompter {
 public:
  using Clock = std::chrono::steady_clock;
  /// How long an approval lasts: for the run, or for the session of the command.
  enum class Span : std::uint8_t { run, session };
  struct Verdict {
    egress::Change change;        ///< allow, permit or refuse
    bool while_approved = false;  ///< allow: only while the stored approval is valid
  };
  using SendVerdict = std::function<Result<void>(const Verdict&)>;

  /// `send` sends each answer to the egress process; if that fails, a refusal is sent instead.
  HostPrompter(Span span, std::string sandbox_id, SendVerdict send)
      : span_(span), sandbox_id_(std::move(sandbox_id)), send_(std::move(send)) {}
  ~HostPrompter() { withdraw(); }
  HostPrompter(const HostPrompter&) = delete;
  HostPrompter& operator=(const HostPrompter&) = delete;

  /// Queues a host that the egress process asks about, and prompts if no prompt is open. The request is trusted only
  /// for the fact that some host is wanted.
  void add(const egress::Request& request);
  /// Whether a prompt is on the screen: until it is answered nothing else may use the terminal.
  [[nodiscard]] bool open() const { return terminal_.valid(); }
  /// The terminal, to be polled for input; -1 without a prompt.
  [[nodiscard]] int descriptor() const { return terminal_.get(); }
  /// When to call look() next: at the end of the pause in typing, or when the prompt times out.
  [[nodiscard]] std::optional<Clock::time_point> deadline() const { return quiet_until_ ? quiet_until_ : deadline_; }
  /// The terminal is readable: handles the keys that were typed. Ctrl-C refuses all hosts that wait, and those to come.
  void onInput();
  /// Call at the deadline: shows the code once the user has paused. No answer in time means no.
  void look(Clock::time_point now);
  /// The run or the command ends: withdraws the prompt and restores the terminal. Waiting hosts get no answer.
  void withdraw();

 private:
  /// `lasting`: for the run or session; `good`: stored for later ones, too; `never`: no, and no more prompts;
  /// `unclear`: no, since the line is none of the answers, or lacks the code.
  enum class Answer : std::uint8_t { once, lasting, good, no, never, unclear };
  /// A stored approval of the host: none, for one use, or a lasting one.
  enum class StoredApproval : std::uint8_t { nothing, once, standing };

  /// Handles waiting hosts until a prompt is open: those with a stored approval are allowed, those that cannot be
  /// prompted for are refused.
  void askNext();
  /// Records and shows the prompt without its last line. False: the user cannot be prompted (no terminal, too many
  /// prompts, "never").
  bool ask(const std::string& target);
  /// Before the code is shown: discards the keys, and waits for a pause again if there were some.
  void discardKeys(Clock::time_point now);
  /// Looks up a stored approval; one for a single use is consumed.
  StoredApproval onRecord(const std::string& what) const;
  /// Records the answer to the open prompt, sends the verdict, closes the prompt and opens the next.
  void applyAnswer(Answer answer);
  /// Sends the verdict to the egress process; if that fails, sends a refusal and returns the error.
  Result<void> sendVerdict(const std::string& target, const Verdict& verdict);
  /// Records the answer; `good` also stores an approval for a year.
  [[nodiscard]] Result<void> record(const std::string& what, Answer answer) const;
  /// Writes to the terminal without blocking; what does not fit is dropped.
  void write(std::string_view text) const;
  /// Prints a last line and restores the terminal's settings.
  void closeTerminal(std::string_view last_words);
  /// The answer that a typed line stands for; only one that ends with the code allows something.
  [[nodiscard]] Answer parseAnswer(std::string_view line) const;

  const Span span_;
  const std::string sandbox_id_;
  const SendVerdict send_;
  std::deque<std::string> waiting_;  ///< "host:port" each; the first is on the screen
  std::size_t asked_ = 0;            ///< number of prompts
  bool never_ = false;               ///< the user answered "never"
  sys::Fd terminal_;
  termios before_{};
  std::string code_;  ///< of the open prompt
  std::string typed_;
  std::optional<Clock::time_point> deadline_;     ///< the prompt times out
  std::optional<Clock::time_point> quiet_until_;  ///< keys are discarded, and the code is not shown yet
};

}  // namespace caisson::supervise
