#include "service/inbox.h"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <memory>

#include "approval/store.h"
#include "approval/what.h"
#include "base/json_document.h"
#include "service/tokens.h"
#include "sys/state_home.h"

namespace caisson::service {
namespace {

constexpr std::size_t kMaxPending = 64;  ///< of one caller
constexpr std::int64_t kKeptFor = 24 * 3600;
constexpr std::uint64_t kMaxRequestFile = std::uint64_t{64} << 10U;
constexpr std::string_view kAnsweredBy = "api";

/// The session of a grant. One for a new sandbox is stored under the caller's id, so that no other token can redeem it;
/// one for exactly this content is not valid for another.
std::string grantedTo(const std::string& sandbox, const std::string& caller, const std::string& exactly) {
  return (sandbox.empty() ? caller : sandbox) + (exactly.empty() ? "" : "#" + exactly);
}

std::string meaningOf(const PendingApproval& pending) {
  if (pending.exactly.empty()) return approval::meaning(pending.what);
  if (const auto text = textAt(pending.content, "meaning")) return *text;
  // Asked of an earlier version, which did not store the changes.
  return "one commit is written, digest " + pending.exactly +
         ", whose changes were not recorded; deny it, and the caller's next request shows them";
}

}  // namespace

Result<std::unique_ptr<Inbox>> Inbox::open() {
  auto opened = sys::openStateDirectory("server/inbox");
  if (!opened) return std::unexpected(opened.error());
  auto directory = sys::RootDir::adopt(std::move(*opened), {});
  if (!directory) return std::unexpected(directory.error());
  return std::unique_ptr<Inbox>(new Inbox(*std::move(directory)));
}

Result<void> Inbox::write(const PendingApproval& pending) const {
  const Json value{
      {"what", pending.what},     {"sandbox", pending.sandbox},         {"exactly", pending.exactly},
      {"caller", pending.caller}, {"caller_name", pending.caller_name}, {"asked", describeInstant(pending.asked)},
      {"state", pending.state},   {"content", pending.content}};
  const std::string text = writeJson(value);
  if (text.size() > kMaxRequestFile)  // readAll() would not see it
    return std::unexpected(Error{.stage = Stage::usage,
                                 .call = "approval",
                                 .object = pending.what.substr(0, 80),
                                 .sys_errno = EINVAL,
                                 .reason = "the request is too long to be approved"});
  return directory_.writeFileAtomic(pending.id + ".json", text, 0600);
}

void Inbox::removeIfOld(const std::string& name, const Instant& now) const {
  constexpr std::int64_t kWriting = 60;  // a file that is being written has another name for a moment
  const auto info = directory_.stat(name);
  if (info && info->modified_ns / 1'000'000'000 < now.wall - kWriting) (void)directory_.remove(name);
}

Result<std::vector<PendingApproval>> Inbox::readAll() const {
  const auto files = directory_.list("");
  if (!files) return std::unexpected(files.error());
  std::vector<PendingApproval> all;
  const Instant now = Instant::now();
  for (const sys::DirectoryEntry& file : *files) {
    const auto text = directory_.readFile(file.name, kMaxRequestFile);
    if (!text && text.error().sys_errno != EFBIG) continue;
    const auto value = text ? parseJson(*text) : std::unexpected(std::string());
    if (!value || !value->is_object()) {
      removeIfOld(file.name, now);
      continue;
    }
    PendingApproval one{.id = file.name.substr(0, file.name.rfind('.')),
                        .what = textAt(*value, "what").value_or(""),
                        .sandbox = textAt(*value, "sandbox").value_or(""),
                        .exactly = textAt(*value, "exactly").value_or(""),
                        .caller = textAt(*value, "caller").value_or(""),
                        .caller_name = textAt(*value, "caller_name").value_or(""),
                        .asked = readInstant(find(*value, "asked")),
                        .state = textAt(*value, "state").value_or("")};
    if (now.since(one.asked) > kKeptFor) {
      (void)directory_.remove(file.name);
      continue;
    }
    if (const Json* content = find(*value, "content"); content != nullptr && content->is_object())
      one.content = *content;
    one.meaning = meaningOf(one);
    all.push_back(std::move(one));
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.asked.wall < b.asked.wall; });
  return all;
}

Result<bool> Inbox::require(const Principal& caller, const std::string& sandbox, const std::vector<std::string>& what,
                            std::vector<PendingApproval>& missing, const ExactContent& exactly) {
  if (what.empty()) return true;
  for (const std::string& one : what)
    if (auto valid = approval::checkWhat(one); !valid) return std::unexpected(valid.error());
  if (caller.owner) {
    for (const std::string& one : what)
      if (auto recorded = approval::recordAnswer(one, kAnsweredBy, true, sandbox); !recorded)
        return std::unexpected(recorded.error());
    return true;
  }
  auto store = approval::Store::open();
  if (!store) return std::unexpected(store.error());
  const std::int64_t now = std::time(nullptr);
  const std::string session = grantedTo(sandbox, caller.id, exactly.digest);
  const auto granted = store->list(now);
  if (!granted) return std::unexpected(granted.error());
  const auto isGranted = [&](const std::string& one) {
    return std::any_of(granted->begin(), granted->end(), [&](const approval::Approval& grant) {
      return grant.what == one && grant.scope == approval::Scope::session && grant.session == session;
    });
  };
  std::vector<std::string> unanswered;
  for (const std::string& one : what)
    if (!isGranted(one)) unanswered.push_back(one);
  if (!unanswered.empty()) {
    if (auto asked = ask(caller, sandbox, unanswered, missing, exactly); !asked) return std::unexpected(asked.error());
    return false;
  }
  for (const std::string& one : what)
    if (auto used = store->use(one, session, now); !used) return std::unexpected(used.error());
  return true;
}

Result<void> Inbox::ask(const Principal& caller, const std::string& sandbox, const std::vector<std::string>& what,
                        std::vector<PendingApproval>& missing, const ExactContent& exactly) {
  Json content;
  if (exactly.describe) {  // before the lock: it reads the sandbox's files
    auto described = exactly.describe();
    if (!described) return std::unexpected(described.error());
    content = *std::move(described);
  }
  const Instant now = Instant::now();
  const std::lock_guard lock(mutex_);
  auto all = readAll();
  if (!all) return std::unexpected(all.error());
  for (const std::string& one : what) {
    const auto known = std::find_if(all->begin(), all->end(), [&](const PendingApproval& other) {
      return other.what == one && other.sandbox == sandbox && other.exactly == exactly.digest &&
             other.caller == caller.id && other.state == "pending";
    });
    if (known != all->end()) {
      if (known->content != content) {
        known->content = content;
        known->meaning = meaningOf(*known);
        if (auto written = write(*known); !written) return std::unexpected(written.error());
      }
      missing.push_back(*known);
      continue;
    }
    const auto own =
        std::count_if(all->begin(), all->end(), [&](const auto& other) { return other.caller == caller.id; });
    if (static_cast<std::size_t>(own) + missing.size() >= kMaxPending)
      return std::unexpected(Error{.stage = Stage::usage,
                                   .call = "approval",
                                   .object = one,
                                   .sys_errno = EUSERS,
                                   .reason = "too many requests wait for the owner",
                                   .hint = "wait for an answer"});
    if (auto asked = approval::recordQuestion(one, kAnsweredBy, sandbox); !asked) return std::unexpected(asked.error());
    PendingApproval pending{.id = "ap-" + randomName(16),
                            .what = one,
                            .sandbox = sandbox,
                            .exactly = exactly.digest,
                            .content = content,
                            .caller = caller.id,
                            .caller_name = caller.name,
                            .asked = now,
                            .state = "pending"};
    pending.meaning = meaningOf(pending);
    if (auto written = write(pending); !written) return std::unexpected(written.error());
    missing.push_back(std::move(pending));
  }
  return {};
}

Result<std::vector<PendingApproval>> Inbox::list(const Principal& caller) {
  const std::lock_guard lock(mutex_);
  auto all = readAll();
  if (!all) return all;
  if (!caller.owner) std::erase_if(*all, [&](const PendingApproval& one) { return one.caller != caller.id; });
  return all;
}

Result<PendingApproval> Inbox::answer(const std::string& id, bool allow, std::int64_t seconds) {
  const std::lock_guard lock(mutex_);
  auto all = readAll();
  if (!all) return std::unexpected(all.error());
  const auto found = std::find_if(all->begin(), all->end(), [&](const PendingApproval& one) { return one.id == id; });
  if (found == all->end() || found->state != "pending")
    return std::unexpected(Error{.stage = Stage::usage,
                                 .call = "approval",
                                 .object = id.substr(0, 80),
                                 .sys_errno = ENOENT,
                                 .reason = "no such pending approval",
                                 .hint = "list them with GET /v1/approvals"});
  PendingApproval pending = *found;
  pending.state = allow ? "allowed" : "denied";
  if (!allow) {
    if (auto recorded = approval::recordAnswer(pending.what, kAnsweredBy, false, pending.sandbox); !recorded)
      return std::unexpected(recorded.error());
  } else {
    auto store = approval::Store::open();
    if (!store) return std::unexpected(store.error());
    const std::int64_t now = std::time(nullptr);
    approval::Approval grant{.what = pending.what, .scope = approval::Scope::session, .by = std::string(kAnsweredBy)};
    grant.session = grantedTo(pending.sandbox, pending.caller, pending.exactly);
    if (seconds > 0) grant.expires = now + seconds;
    if (auto granted = store->grant(std::move(grant), now); !granted) return std::unexpected(granted.error());
  }
  if (auto written = write(pending); !written) return std::unexpected(written.error());
  return pending;
}

}  // namespace caisson::service
