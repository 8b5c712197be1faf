#include "cli/approval.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <optional>

#include "approval/store.h"
#include "approval/what.h"
#include "base/terminal_reset.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/policy_options.h"
#include "cli/safe_text.h"
#include "policy/model.h"
#include "sys/fd.h"

namespace caisson::cli {
namespace {

winsize sizeOf(const sys::Fd& terminal) {
  winsize size{};
  if (::ioctl(terminal.get(), TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) return {24, 80, 0, 0};
  size.ws_row = std::clamp<unsigned short>(size.ws_row, 10, 500);
  return size;
}

/// Shows the text on a fresh screen and waits for a line; nothing if that fails. `text` ends with the answers, "[y/N]
/// ".
std::optional<std::string> answerTo(const sys::Fd& terminal, std::string_view text) {
  // A payload may have left escape sequences in effect on this terminal, and text that looks like ours.
  if (writeAll(terminal.get(), freshScreen(std::getenv("TERM"), sizeOf(terminal).ws_row)) != 0) return std::nullopt;
  // Discard input that was typed or pasted before the prompt was shown, but nothing that answers its end.
  const std::string_view end = text.substr(std::min(text.rfind('['), text.size()));
  if (writeAll(terminal.get(), safeLines(text.substr(0, text.size() - end.size()))) != 0) return std::nullopt;
  ::tcflush(terminal.get(), TCIFLUSH);
  if (writeAll(terminal.get(), end) != 0) return std::nullopt;
  std::string answer;
  char next = 0;
  while (answer.size() < 16) {
    const ssize_t got = ::read(terminal.get(), &next, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::nullopt;
    if (next == '\n') break;
    answer += next;
  }
  return answer;
}

bool answersYes(const sys::Fd& terminal, std::string_view question) {
  const auto answer = answerTo(terminal, question);
  return answer == "y" || answer == "Y" || answer == "yes";
}

bool isTyped(const Arguments& arguments, std::string_view option) {
  return std::ranges::any_of(arguments.given, [&](const Given& given) { return given.option->name == option; });
}

bool isRungTyped(const Arguments& arguments, std::string_view rung) {
  return std::ranges::any_of(arguments.given, [&](const Given& given) {
    if (given.option->name != kAllowWeaker.name) return false;
    std::string list(given.value);
    std::ranges::replace(list, '-', '_');
    return std::ranges::count(split(list, ','), rung) > 0;
  });
}

/// The flag by which the user chose what lowers the protection, or "".
std::string typedFor(const Arguments& arguments, std::string_view what) {
  const std::string_view kind = what.substr(0, what.find(':'));
  if (kind == "weaker" && isRungTyped(arguments, what.substr(kind.size() + 1))) return "--allow-weaker";
  if (kind != "audit" && isTyped(arguments, kind)) return "--" + std::string(kind);
  return isTyped(arguments, kProfile.name) ? "--profile" : "";
}

/// A policy file decides about less isolation only with an owner's approval: a repository may have brought it.
/// What the user typed is the user's decision, and recorded. A caisson.toml was approved as a whole (`policy trust`).
Result<std::vector<std::string>> neededFor(const Arguments& arguments, const policy::Policy& policy) {
  std::vector<std::string> needed;
  if (policy.isolation.level == policy::Level::none) needed.emplace_back("level:none");
  if (policy.network.mode == policy::NetworkMode::host) needed.emplace_back("net:host");
  for (const std::string& word : policy.approvals.required) needed.push_back("policy:" + word);
  for (std::string& what : approval::loweredProtection(policy)) {
    const std::string flag = typedFor(arguments, what);
    if (flag.empty()) {
      if (isTyped(arguments, kPolicyFile.name)) needed.push_back(std::move(what));
      continue;
    }
    const auto recorded = approval::recordAnswer(what, flag + " on the command line", true);
    if (!recorded) return fail(recorded.error());
  }
  return needed;
}

/// Returns how the owner approved: with --approve on a terminal, by a stored approval, or at a prompt now.
Result<std::string> obtain(const std::string& what, bool named, const sys::Fd& terminal, std::string_view question) {
  if (auto checked = approval::checkWhat(what); !checked) return fail(checked.error());
  constexpr std::string_view kNamed = "--approve on a terminal";
  if (named && terminal) {
    if (auto recorded = approval::recordAnswer(what, kNamed, true); !recorded) return fail(recorded.error());
    return std::string(kNamed);
  }
  if (named) {
    auto store = approval::Store::open();
    if (!store) return fail(store.error());
    auto redeemed = store->redeem(what, "", static_cast<std::int64_t>(::time(nullptr)));
    if (!redeemed) return fail(redeemed.error());
    if (*redeemed) return "an approval from before";
    return fail(usageError("--approve " + what,
                           "counts as an owner's answer on a terminal, or redeems one given before; there is neither",
                           "on a terminal: caisson approvals grant " + what + " --for 1h"));
  }
  const bool yes = terminal && answersYes(terminal, question);
  if (terminal) {
    if (auto recorded = approval::recordAnswer(what, "terminal", yes); !recorded) return fail(recorded.error());
  }
  if (yes) return "terminal";
  std::string hint = "add --approve " + what + " on a terminal";
  if (what == "level:none") hint += ", or use --level full";
  if (what == "level:process") hint += ", or type the level: --level process or --level full";
  if (what.starts_with("weaker:")) hint += ", or type it: --allow-weaker " + what.substr(std::size("weaker:") - 1);
  if (what == "tier:landlock") hint += ", or type it: --tier landlock";
  return fail(
      usageError(what == "level:none" ? "level none" : what, "needs an owner's approval, which was not given", hint));
}

std::string questionFor(const std::string& what) {
  return "caisson: approval needed: " + what + "\n  " + approval::meaning(what) +
         ".\n  Allow it for this one run? [y/N] ";
}

sys::Fd controllingTerminal() { return sys::Fd(::open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC)); }

}  // namespace

bool askOwner(std::string_view question) {
  const sys::Fd terminal = controllingTerminal();
  return terminal && answersYes(terminal, question);
}

bool askOwnerAbout(std::string_view list, std::string_view question) {
  const sys::Fd terminal = controllingTerminal();
  if (!terminal) return false;
  const winsize size = sizeOf(terminal);
  const auto lines = static_cast<unsigned>(std::ranges::count(question, '\n')) + 3;
  const std::vector<std::string> pages =
      screenPages(list, size.ws_row - std::min(lines, size.ws_row - 3U), size.ws_col);
  for (std::size_t at = 0; at + 1 < pages.size(); ++at) {
    const std::string shown = pages[at] + "caisson: page " + std::to_string(at + 1) + " of " +
                              std::to_string(pages.size()) + "; the question is on the last [Enter/n] ";
    const auto answer = answerTo(terminal, shown);
    if (!answer || !answer->empty()) return false;
  }
  return answersYes(terminal, pages.back() + std::string(question));
}

Result<std::vector<std::string>> namedApprovals(const Arguments& arguments) {
  std::vector<std::string> approvals;
  for (const Given& given : arguments.given) {
    if (given.option->name != kApprove.name) continue;
    if (auto checked = approval::checkWhat(given.value); !checked) {
      return fail(usageError("--approve " + checked.error().object, checked.error().reason, checked.error().hint));
    }
    approvals.emplace_back(given.value);
  }
  return approvals;
}

Result<std::string> obtainApproval(const Arguments& arguments, const std::string& what, std::string_view question) {
  const auto named = namedApprovals(arguments);
  if (!named) return fail(named.error());
  const bool by_name = std::ranges::find(*named, what) != named->end();
  return obtain(what, by_name, controllingTerminal(), question);
}

Result<std::vector<std::string>> obtainApprovals(const Arguments& arguments, const policy::Policy& policy) {
  auto named = namedApprovals(arguments);
  if (!named) return named;
  std::vector<std::string> wanted = *named;
  auto needed = neededFor(arguments, policy);
  if (!needed) return needed;
  for (std::string& what : *needed) {
    if (std::ranges::find(wanted, what) == wanted.end()) wanted.push_back(std::move(what));
  }
  if (wanted.empty()) return wanted;
  const sys::Fd terminal = controllingTerminal();
  for (std::size_t at = 0; at < wanted.size(); ++at) {
    const std::string& what = wanted[at];
    const auto obtained = obtain(what, at < named->size(), terminal, questionFor(what));
    if (!obtained) return fail(obtained.error());
  }
  return wanted;
}

}  // namespace caisson::cli
