#include "supervise/network/host_questions.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <utility>

#include "approval/store.h"
#include "approval/what.h"
#include "base/terminal_reset.h"
#include "egress/host_name.h"

namespace caisson::supervise {
namespace {

using Kind = egress::Change::Kind;

constexpr std::size_t kMaxQuestions = 32;
constexpr std::size_t kMaxTyped = 16;
constexpr auto kTimeout = std::chrono::minutes(2);
constexpr std::string_view kBy = "terminal";

/// The parts of the prompt that differ between a run and a session.
struct Words {
  std::string_view letter, word, lasting, no, over;
};
constexpr Words kRun{.letter = "r",
                     .word = "run",
                     .lasting = "  r  for the rest of this run",
                     .no = "  n  no, also for the rest of this run        never  no, and don't ask again in this run",
                     .over = "the run is over"};
constexpr Words kSession{
    .letter = "s",
    .word = "session",
    .lasting = "  s  for this session, all its commands (caisson session network ID deny)",
    .no = "  n  no, also for the rest of this command    never  no, and don't ask again in this command",
    .over = "the command is over"};

const Words& wordsOf(HostQuestions::Span span) { return span == HostQuestions::Span::run ? kRun : kSession; }

std::string questionAbout(const std::string& target, const Words& words) {
  std::string text(terminalReset(std::getenv("TERM")));
  text += "caisson: approval needed: host:" + target + "\r\n  " + approval::meaning("host:" + target) + ".\r\n";
  text += "  o  once: the connections that wait for it now\r\n";
  text.append(words.lasting).append("\r\n");
  text += "  g  for good: whenever a terminal is there, for a year (caisson approvals revoke)\r\n";
  text.append(words.no).append("\r\n  Allow it? [o/").append(words.letter).append("/g/N] ");
  return text;
}

}  // namespace

void HostQuestions::add(const egress::Request& request) {
  auto host = egress::canonicalHost(request.host);
  if (!host || request.port == 0) return;
  waiting_.push_back(egress::HostPort{std::move(*host), request.port}.text());
  if (!open()) askNext();
}

void HostQuestions::askNext() {
  while (!waiting_.empty()) {
    const std::string target = waiting_.front();
    const std::string what = "host:" + target;
    const Before before = onRecord(what);
    if (before == Before::nothing && ask(target)) return;
    waiting_.pop_front();
    const Kind kind = before == Before::nothing ? Kind::refuse : before == Before::once ? Kind::permit : Kind::allow;
    (void)sendVerdict(target, {{kind, target}, before == Before::standing});
  }
}

HostQuestions::Before HostQuestions::onRecord(const std::string& what) const {
  if (!approval::checkWhat(what)) return Before::nothing;
  auto store = approval::Store::open();
  if (!store) return Before::nothing;
  const auto used =
      store->use(what, span_ == Span::session ? sandbox_id_ : "", static_cast<std::int64_t>(::time(nullptr)));
  if (!used || !*used) return Before::nothing;
  return (*used)->scope == approval::Scope::once ? Before::once : Before::standing;
}

bool HostQuestions::ask(const std::string& target) {
  const std::string what = "host:" + target;
  if (never_ || asked_ >= kMaxQuestions || !approval::checkWhat(what)) return false;
  sys::Fd terminal(::open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
  // In the background the prompt would be invisible, and accessing the terminal would stop us.
  if (!terminal || ::tcgetpgrp(terminal.get()) != ::getpgrp()) return false;
  if (::tcgetattr(terminal.get(), &before_) != 0) return false;
  if (!approval::recordQuestion(what, kBy, sandbox_id_)) return false;
  termios raw = before_;
  ::cfmakeraw(&raw);
  terminal_ = std::move(terminal);
  const std::string question = questionAbout(target, wordsOf(span_));
  const std::size_t end = question.rfind('[');
  write(std::string_view(question).substr(0, end));
  if (::tcsetattr(terminal_.get(), TCSANOW, &raw) != 0) {
    closeTerminal({});
    return false;
  }
  // Discards input that was typed or pasted before the prompt was shown, but nothing that answers its end. Nothing here
  // waits for the terminal: a stopped terminal must not stop the supervisor.
  ::tcflush(terminal_.get(), TCIFLUSH);
  write(std::string_view(question).substr(end));
  ++asked_;
  typed_.clear();
  deadline_ = Clock::now() + kTimeout;
  return true;
}

void HostQuestions::onInput() {
  char key = 0;
  for (;;) {
    const ssize_t got = ::read(terminal_.get(), &key, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return take(Answer::no);  // the terminal is gone
    constexpr char kInterrupt = 3, kEnd = 4, kBackspace = 8, kDelete = 127;
    if (key == kInterrupt || key == kEnd) return take(Answer::no);
    if (key == '\r' || key == '\n') return take(meaningOf(typed_));
    if ((key == kBackspace || key == kDelete) && !typed_.empty()) {
      typed_.pop_back();
      write("\b \b");
    } else if (typed_.size() < kMaxTyped) {
      typed_ += key;  // also control bytes: an answer mixed with a terminal's reply is unclear
      if (key > ' ' && key < kDelete) write({&key, 1});
    }
  }
}

HostQuestions::Answer HostQuestions::meaningOf(std::string_view word) const {
  if (word == "o" || word == "once") return Answer::once;
  if (word == wordsOf(span_).letter || word == wordsOf(span_).word) return Answer::lasting;
  if (word == "g" || word == "good") return Answer::good;
  // Anything else is no. Prompting again would let one line end discard a terminal's reply to a payload's escape
  // sequence, and count the second line as the answer.
  return word == "never" ? Answer::never : Answer::no;
}

void HostQuestions::take(Answer answer) {
  const std::string target = waiting_.front();
  waiting_.pop_front();
  never_ = never_ || answer == Answer::never;
  std::string words = target + " stays refused";
  Kind kind = Kind::refuse;
  if (answer == Answer::once || answer == Answer::lasting || answer == Answer::good) {
    words = target + (answer == Answer::once ? " is allowed once" : " is allowed");
    kind = answer == Answer::once ? Kind::permit : Kind::allow;
  }
  if (const auto recorded = record("host:" + target, answer); !recorded) {
    // Also if recording a "no" failed: the user should see that.
    kind = Kind::refuse;
    words = target + " stays refused: " + recorded.error().message();
  }
  if (const auto decided = sendVerdict(target, {{kind, target}, answer == Answer::good}); !decided) {
    words = target + " stays refused: " + decided.error().message();
  }
  closeTerminal("\r\ncaisson: " + words + "\r\n");
  askNext();
}

Result<void> HostQuestions::record(const std::string& what, Answer answer) const {
  if (answer != Answer::good) {
    const bool yes = answer == Answer::once || answer == Answer::lasting;
    return approval::recordAnswer(what, kBy, yes, sandbox_id_);
  }
  auto store = approval::Store::open();
  if (!store) return fail(store.error());
  const auto now = static_cast<std::int64_t>(::time(nullptr));
  auto granted = store->grant({.id = {},
                               .what = what,
                               .scope = approval::Scope::timed,
                               .session = {},
                               .expires = now + approval::kLongest,
                               .by = std::string(kBy)},
                              now);
  if (!granted) return fail(granted.error());
  return {};
}

void HostQuestions::look(Clock::time_point now) {
  if (deadline_ && now >= *deadline_) take(Answer::no);
}

void HostQuestions::withdraw() {
  waiting_.clear();
  if (open()) closeTerminal("\r\ncaisson: " + std::string(wordsOf(span_).over) + "; nothing was allowed\r\n");
}

Result<void> HostQuestions::sendVerdict(const std::string& target, const Verdict& verdict) {
  auto told = tell_(verdict);
  if (!told && verdict.change.kind != Kind::refuse) (void)tell_({{Kind::refuse, target}});
  return told;
}

void HostQuestions::write(std::string_view text) const {
  // A stopped terminal (Ctrl-S) shows less of it; the event loop must not wait for it.
  while (!text.empty()) {
    const ssize_t done = ::write(terminal_.get(), text.data(), text.size());
    if (done <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(done));
  }
}

void HostQuestions::closeTerminal(std::string_view last_words) {
  write(last_words);
  ::tcsetattr(terminal_.get(), TCSANOW, &before_);
  terminal_.reset();
  deadline_.reset();
}

}  // namespace caisson::supervise
