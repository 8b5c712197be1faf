#include "supervise/network/host_prompter.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <utility>

#include "approval/store.h"
#include "approval/what.h"
#include "base/terminal_reset.h"
#include "egress/host_name.h"
#include "egress/shown_host.h"

namespace caisson::supervise {
namespace {

using Kind = egress::Change::Kind;

constexpr std::size_t kMaxQuestions = 32;
constexpr std::size_t kMaxTyped = 24;
constexpr auto kTimeout = std::chrono::minutes(2);
/// Longer than between two keys of a word. A pause alone proves nothing; the code does.
constexpr auto kQuiet = std::chrono::milliseconds(500);
constexpr char kInterrupt = 3;
constexpr std::string_view kBy = "terminal";

/// The parts of the prompt that differ between a run and a session.
struct Words {
  std::string_view letter, word, lasting, no, over;
};
constexpr Words kRun{
    .letter = "r",
    .word = "run",
    .lasting = "  r     for the rest of this run",
    .no = "  n     no, also for the rest of this run        never  no, and don't ask again in this run",
    .over = "the run is over"};
constexpr Words kSession{
    .letter = "s",
    .word = "session",
    .lasting = "  s     for this session, all its commands (caisson session network ID deny)",
    .no = "  n     no, also for the rest of this command    never  no, and don't ask again in this command",
    .over = "the command is over"};

const Words& wordsOf(HostPrompter::Span span) { return span == HostPrompter::Span::run ? kRun : kSession; }

/// Also clears the screen: what the program wrote there must not stand above the question as if it belonged to it.
std::string questionAbout(int terminal, const std::string& target, const Words& words) {
  winsize size{};
  const bool known = ::ioctl(terminal, TIOCGWINSZ, &size) == 0 && size.ws_row > 0;
  std::string text = freshScreen(std::getenv("TERM"), known ? std::min<unsigned>(size.ws_row, 500) : 24U);
  // The payload chose the name: a long one must not push the rest of the prompt away, nor hide whose host it is.
  constexpr std::size_t kMeaningBytes = 34;
  const std::string brief = "host:" + egress::shortened(target, kMeaningBytes);
  text += "caisson: approval needed: " + egress::shownQuestion(target) + "\r\n  " + approval::meaning(brief) + ".\r\n";
  text += "  o     once: the connections that wait for it now\r\n";
  text.append(words.lasting).append("\r\n");
  text += "  good  whenever a terminal is there, for a year (caisson approvals revoke)\r\n";
  text.append(words.no).append("\r\n  Keys are discarded until you pause; then a code to answer with is shown.\r\n");
  return text;
}

/// The last line of the prompt.
std::string answersWith(const std::string& code, const Words& words) {
  std::string text = "  Allow it? [o " + code + "/";
  text.append(words.letter).append(" " + code + "/good " + code + "/N] ");
  return text;
}

/// Four random digits; empty if the kernel gives none.
std::string randomCode() {
  std::uint32_t number = 0;
  if (::getrandom(&number, sizeof(number), 0) != static_cast<ssize_t>(sizeof(number))) return {};
  char digits[8];
  std::snprintf(digits, sizeof(digits), "%04u", static_cast<unsigned>(number % 10000));
  return digits;
}

}  // namespace

void HostPrompter::add(const egress::Request& request) {
  auto host = egress::canonicalHost(request.host);
  if (!host || request.port == 0) return;
  waiting_.push_back(egress::HostPort{std::move(*host), request.port}.text());
  if (!open()) askNext();
}

void HostPrompter::askNext() {
  while (!waiting_.empty()) {
    const std::string target = waiting_.front();
    const std::string what = "host:" + target;
    const StoredApproval before = onRecord(what);
    if (before == StoredApproval::nothing && ask(target)) return;
    waiting_.pop_front();
    const Kind kind = before == StoredApproval::nothing ? Kind::refuse
                      : before == StoredApproval::once  ? Kind::permit
                                                        : Kind::allow;
    (void)sendVerdict(target, {{kind, target}, before == StoredApproval::standing});
  }
}

HostPrompter::StoredApproval HostPrompter::onRecord(const std::string& what) const {
  if (!approval::checkWhat(what)) return StoredApproval::nothing;
  auto store = approval::Store::open();
  if (!store) return StoredApproval::nothing;
  const auto used =
      store->use(what, span_ == Span::session ? sandbox_id_ : "", static_cast<std::int64_t>(::time(nullptr)));
  if (!used || !*used) return StoredApproval::nothing;
  return (*used)->scope == approval::Scope::once ? StoredApproval::once : StoredApproval::standing;
}

bool HostPrompter::ask(const std::string& target) {
  const std::string what = "host:" + target;
  if (never_ || asked_ >= kMaxQuestions || !approval::checkWhat(what)) return false;
  code_ = randomCode();
  if (code_.empty()) return false;
  sys::Fd terminal(::open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
  // In the background the prompt would be invisible, and accessing the terminal would stop us.
  if (!terminal || ::tcgetpgrp(terminal.get()) != ::getpgrp()) return false;
  if (::tcgetattr(terminal.get(), &before_) != 0) return false;
  if (!approval::recordQuestion(what, kBy, sandbox_id_)) return false;
  termios raw = before_;
  ::cfmakeraw(&raw);
  terminal_ = std::move(terminal);
  if (::tcsetattr(terminal_.get(), TCSANOW, &raw) != 0) {
    closeTerminal({});
    return false;
  }
  // Discards input that was typed or pasted before, and shows the prompt then: an interrupt key that answers it counts.
  // Nothing here waits for the terminal: a stopped terminal must not stop the supervisor.
  ::tcflush(terminal_.get(), TCIFLUSH);
  write(questionAbout(terminal_.get(), target, wordsOf(span_)));
  ++asked_;
  typed_.clear();
  deadline_ = Clock::now() + kTimeout;
  quiet_until_ = Clock::now() + kQuiet;
  return true;
}

void HostPrompter::discardKeys(Clock::time_point now) {
  char keys[256];
  for (;;) {
    const ssize_t got = ::read(terminal_.get(), keys, sizeof(keys));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return applyAnswer(Answer::no);  // the terminal is gone
    if (std::string_view(keys, static_cast<std::size_t>(got)).find(kInterrupt) != std::string_view::npos) {
      return applyAnswer(Answer::never);
    }
    quiet_until_ = std::min(now + kQuiet, *deadline_);
  }
}

void HostPrompter::onInput() {
  if (quiet_until_) return discardKeys(Clock::now());
  char key = 0;
  for (;;) {
    const ssize_t got = ::read(terminal_.get(), &key, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return applyAnswer(Answer::no);  // the terminal is gone
    constexpr char kEnd = 4, kBackspace = 8, kDelete = 127;
    // A program can ask about one host after the other: without "never" the user would need Ctrl-C for each of them.
    if (key == kInterrupt) return applyAnswer(Answer::never);
    if (key == kEnd) return applyAnswer(Answer::no);
    if (key == '\r' || key == '\n') return applyAnswer(parseAnswer(typed_));
    if ((key == kBackspace || key == kDelete) && !typed_.empty()) {
      typed_.pop_back();
      write("\b \b");
    } else if (typed_.size() < kMaxTyped) {
      typed_ += key;  // also control bytes: an answer mixed with a terminal's reply is unclear
      if (key > ' ' && key < kDelete) write({&key, 1});
    }
  }
}

HostPrompter::Answer HostPrompter::parseAnswer(std::string_view line) const {
  if (line == "never") return Answer::never;
  if (line.empty() || line == "n" || line == "no") return Answer::no;
  // Anything else without the code is no. Prompting again would let one line end discard a terminal's reply to a
  // payload's escape sequence, and count the second line as the answer.
  if (!line.ends_with(code_)) return Answer::unclear;
  std::string_view word = line.substr(0, line.size() - code_.size());
  while (word.ends_with(' ')) word.remove_suffix(1);
  if (word == "o" || word == "once") return Answer::once;
  if (word == wordsOf(span_).letter || word == wordsOf(span_).word) return Answer::lasting;
  return word == "good" ? Answer::good : Answer::unclear;
}

void HostPrompter::applyAnswer(Answer answer) {
  const std::string target = waiting_.front();
  waiting_.pop_front();
  never_ = never_ || answer == Answer::never;
  std::string words = target + " stays refused";
  if (answer == Answer::unclear) words += ": the answer is none of those shown, with the code";
  if (answer == Answer::never) words += ", and every other host without a prompt";
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

Result<void> HostPrompter::record(const std::string& what, Answer answer) const {
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
                               .expires = now + approval::kMaxValidSeconds,
                               .by = std::string(kBy)},
                              now);
  if (!granted) return fail(granted.error());
  return {};
}

void HostPrompter::look(Clock::time_point now) {
  if (!deadline_) return;
  if (now >= *deadline_) return applyAnswer(Answer::no);
  if (!quiet_until_) return;
  discardKeys(now);
  if (!quiet_until_ || now < *quiet_until_) return;
  quiet_until_.reset();
  write(answersWith(code_, wordsOf(span_)));
}

void HostPrompter::withdraw() {
  waiting_.clear();
  if (open()) closeTerminal("\r\ncaisson: " + std::string(wordsOf(span_).over) + "; nothing was allowed\r\n");
}

Result<void> HostPrompter::sendVerdict(const std::string& target, const Verdict& verdict) {
  auto told = send_(verdict);
  if (!told && verdict.change.kind != Kind::refuse) (void)send_({{Kind::refuse, target}});
  return told;
}

void HostPrompter::write(std::string_view text) const {
  // A stopped terminal (Ctrl-S) shows less of it; the event loop must not wait for it.
  while (!text.empty()) {
    const ssize_t done = ::write(terminal_.get(), text.data(), text.size());
    if (done <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(done));
  }
}

void HostPrompter::closeTerminal(std::string_view last_words) {
  write(last_words);
  ::tcsetattr(terminal_.get(), TCSANOW, &before_);
  terminal_.reset();
  deadline_.reset();
  quiet_until_.reset();
}

}  // namespace caisson::supervise
