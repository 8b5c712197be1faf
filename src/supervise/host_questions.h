// The person at the terminal decides about a host that the policy does not name, while the connection to it waits
// (SPEC A1, A2): once, for this run or session, for good, or not.
//
// The payload decides when a question comes and which host it is about, so: the text is made here from a canonical
// name; the payload's own output waits while a question is on the screen, and cannot draw over it; what was typed
// before it is no answer to it; an answer takes a letter and the Enter key; and there is an end to the questions.
// Every question and answer is on record before it counts.
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
  /// What "allowed" lasts for: the run, or the session that the command is one of.
  enum class Span : std::uint8_t { run, session };
  struct Verdict {
    egress::Change change;        ///< allow, permit or refuse
    bool while_approved = false;  ///< allow: only as long as the approval on record stands
  };
  using Tell = std::function<Result<void>(const Verdict&)>;

  /// `tell` gets each answer, for the egress process; if it fails, it is told to refuse instead.
  HostQuestions(Span span, std::string sandbox_id, Tell tell)
      : span_(span), sandbox_id_(std::move(sandbox_id)), tell_(std::move(tell)) {}
  ~HostQuestions() { withdraw(); }
  HostQuestions(const HostQuestions&) = delete;
  HostQuestions& operator=(const HostQuestions&) = delete;

  /// What the egress process asks. Taken on trust no further than that some host is wanted.
  void add(const egress::Request& wish);
  /// Whether a question is on the screen: until it is answered nothing else may write to the terminal or read from it.
  [[nodiscard]] bool open() const { return terminal_.valid(); }
  [[nodiscard]] int descriptor() const { return terminal_.get(); }
  [[nodiscard]] std::optional<Clock::time_point> deadline() const { return deadline_; }
  void onInput();
  /// Nobody answers: no.
  void look(Clock::time_point now);
  /// The run or the command ends; the terminal is as it was.
  void withdraw();

 private:
  enum class Answer : std::uint8_t { once, lasting, good, no, never };
  enum class Before : std::uint8_t { nothing, once, standing };

  void askNext();
  bool ask(const std::string& target);
  Before onRecord(const std::string& what) const;
  void take(Answer answer);
  Result<void> decide(const std::string& target, const Verdict& verdict);
  [[nodiscard]] Result<void> record(const std::string& what, Answer answer) const;
  void write(std::string_view text) const;
  void closeTerminal(std::string_view last_words);
  [[nodiscard]] Answer meaningOf(std::string_view word) const;

  const Span span_;
  const std::string sandbox_id_;
  const Tell tell_;
  std::deque<std::string> waiting_;  ///< "host:port" each; the first is the one on the screen
  std::size_t asked_ = 0;
  bool never_ = false;
  sys::Fd terminal_;
  termios before_{};
  std::string typed_;
  std::optional<Clock::time_point> deadline_;
};

}  // namespace caisson::supervise
