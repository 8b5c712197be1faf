#include "approval/store.h"

#include <algorithm>
#include <cerrno>

#include "approval/what.h"
#include "audit/log.h"
#include "base/version.h"
#include "policy/document/document.h"
#include "sys/descriptor_path.h"
#include "sys/file_lock.h"
#include "sys/random_hex.h"
#include "sys/state_home.h"

namespace caisson::approval {

namespace {

constexpr std::string_view kFile = "approvals.json";
constexpr std::uint64_t kMaxBytes = 1 << 20;
constexpr std::size_t kMaxApprovals = 1000;
constexpr std::int64_t kFormatVersion = 1;
/// How long a used approval can be given back.
constexpr std::int64_t kGiveBackSeconds = 60;

Error damaged(std::string_view why) {
  return plainError(Stage::state, "read", kFile, why,
                    "remove CAISSON_HOME/approvals/approvals.json: what it approved must then be approved again");
}

std::string textOf(const policy::Node& node, std::string_view key) {
  const policy::Node* member = node.find(key);
  return member != nullptr && member->type == policy::Node::Type::text ? member->text : "";
}

std::int64_t numberOf(const policy::Node& node, std::string_view key) {
  const policy::Node* member = node.find(key);
  return member != nullptr && member->type == policy::Node::Type::integer ? member->integer : 0;
}

Result<Approval> fromNode(const policy::Node& node) {
  Approval approval;
  approval.id = textOf(node, "id");
  approval.what = textOf(node, "what");
  approval.session = textOf(node, "session");
  approval.by = textOf(node, "by");
  approval.place = textOf(node, "place");
  approval.given = numberOf(node, "given");
  approval.expires = numberOf(node, "expires");
  const std::string scope = textOf(node, "scope");
  bool known = false;
  for (const Scope one : {Scope::once, Scope::session, Scope::timed}) {
    if (scope != name(one)) continue;
    approval.scope = one;
    known = true;
  }
  if (!known || approval.id.empty() || !checkWhat(approval.what))
    return fail(damaged("damaged: an entry has invalid fields"));
  return approval;
}

audit::Fields fieldsOf(const Approval& approval) {
  audit::Fields fields;
  fields.text("id", approval.id).text("what", approval.what).text("scope", name(approval.scope));
  fields.text("session", approval.session).number("given", approval.given).number("expires", approval.expires);
  fields.text("by", approval.by);
  if (!approval.place.empty()) fields.text("place", approval.place);
  return fields;
}

bool isValid(const Approval& approval, std::int64_t now) {
  // One from the future was given before the clock was set back: its remaining time is unknown, so it is invalid.
  return approval.expires > now && approval.given <= now;
}

}  // namespace

std::string_view name(Scope scope) {
  switch (scope) {
    case Scope::once: return "once";
    case Scope::session: return "session";
    case Scope::timed: return "time";
  }
  return "once";
}

Result<void> recordAnswer(std::string_view what, std::string_view by, bool yes, std::string_view session) {
  auto log = audit::Log::open();
  if (!log) return fail(log.error());
  const auto type = yes ? audit::EventType::approval_given : audit::EventType::approval_denied;
  audit::Fields fields;
  fields.text("what", what).text("scope", "once").text("by", by);
  if (!session.empty()) fields.text("session", session);
  return log->append({type, audit::Severity::warn, "", fields});
}

Result<void> recordQuestion(std::string_view what, std::string_view by, std::string_view session) {
  auto log = audit::Log::open();
  if (!log) return fail(log.error());
  audit::Fields fields;
  fields.text("what", what).text("by", by);
  if (!session.empty()) fields.text("session", session);
  return log->append({audit::EventType::approval_asked, audit::Severity::info, "", fields});
}

Result<Store> Store::open() {
  auto directory = sys::openStateDirectory("approvals");
  if (!directory) return fail(directory.error());
  return adopt(std::move(*directory), true);
}

Result<Store> Store::adopt(sys::Fd directory, bool audited, std::chrono::milliseconds lock_timeout) {
  auto root = sys::RootDir::adopt(std::move(directory), {.known_as = "approvals"});
  if (!root) return fail(root.error());
  return Store(std::move(*root), audited, lock_timeout);
}

Result<sys::Fd> Store::lock() const {
  auto file = directory_.openFile("lock", {.flags = O_RDWR | O_CREAT, .mode = 0600});
  if (!file) return file;
  const auto path = sys::canonicalPath(file->get());
  auto locked = sys::lockFile(file->get(), sys::LockKind::exclusive, lock_timeout_, path ? *path : "approvals/lock");
  if (!locked) return fail(locked.error());
  return file;
}

Result<Store::Content> Store::read(std::int64_t now) const {
  auto text = directory_.readFile(kFile, kMaxBytes);
  if (!text) {
    if (text.error().sys_errno == ENOENT) return Content{};
    return fail(text.error());
  }
  auto document = policy::readText(*text, policy::Format::json, std::string(kFile));
  if (!document) return fail(damaged("it is not valid JSON of this store"));
  if (const policy::Node* format = document->root.find("format_version");
      format == nullptr || format->type != policy::Node::Type::integer)
    return fail(damaged("its format_version is missing"));
  const FormatVersion format{
      .found = numberOf(document->root, "format_version"), .oldest = kFormatVersion, .newest = kFormatVersion};
  if (!format.isKnown()) {
    return fail(unknownFormat("approvals/" + std::string(kFile), format,
                              "use the caisson that wrote it, or move the file away and approve again what is needed"));
  }
  const policy::Node* list = document->root.find("approvals");
  if (list == nullptr || list->type != policy::Node::Type::list) return fail(damaged("its list is missing"));
  Content content;
  for (const policy::Node& item : list->items) {
    auto approval = fromNode(item);
    if (!approval) return fail(approval.error());
    if (isValid(*approval, now)) content.approvals.push_back(std::move(*approval));
  }
  const policy::Node* used = document->root.find("used");
  if (used == nullptr || used->type != policy::Node::Type::list) return content;
  for (const policy::Node& item : used->items) {
    auto approval = fromNode(item);
    if (!approval) return fail(approval.error());
    const std::int64_t at = numberOf(item, "used");
    if (isValid(*approval, now) && at <= now && at > now - kGiveBackSeconds)
      content.used.push_back({std::move(*approval), textOf(item, "claimed_by"), at});
  }
  return content;
}

Result<void> Store::write(const Content& content) const {
  std::string text = "{\"format_version\":1,\"approvals\":[";
  for (std::size_t at = 0; at < content.approvals.size(); ++at)
    text += (at == 0 ? "\n" : ",\n") + fieldsOf(content.approvals[at]).json();
  text += "\n],\"used\":[";
  for (std::size_t at = 0; at < content.used.size(); ++at) {
    const Used& one = content.used[at];
    text += (at == 0 ? "\n" : ",\n") +
            fieldsOf(one.approval).text("claimed_by", one.claimed_by).number("used", one.at).json();
  }
  return directory_.writeFileAtomic(kFile, text + "\n]}\n", 0600);
}

Result<void> Store::record(std::string_view event, const Approval& approval) const {
  if (!audited_) return {};
  auto log = audit::Log::open();
  if (!log) return fail(log.error());
  audit::Fields fields;
  fields.text("what", approval.what).text("approval", approval.id).text("scope", name(approval.scope));
  fields.text("session", approval.session).text("by", approval.by).number("expires", approval.expires);
  fields.text("action", event);
  const auto type = event == "revoke" ? audit::EventType::approval_revoked : audit::EventType::approval_given;
  return log->append({type, audit::Severity::warn, "", fields});
}

Result<Approval> Store::grant(Approval approval, std::int64_t now) {
  if (auto checked = checkWhat(approval.what); !checked) return fail(checked.error());
  if ((approval.scope == Scope::session) == approval.session.empty()) {
    return fail(plainError(Stage::usage, "approve", approval.what, "a session is named exactly when the scope is one"));
  }
  const std::int64_t most = now + (approval.scope == Scope::timed ? kMaxValidSeconds : kMaxUnused);
  if (approval.scope != Scope::timed && approval.expires == 0) approval.expires = most;
  if (approval.expires <= now || approval.expires > most) {
    return fail(plainError(Stage::usage, "approve", approval.what, "the time is over already, or longer than a year"));
  }
  const auto id = sys::randomHex(8);
  if (!id) return fail(sysError(Stage::state, "getrandom", "", errno));
  approval.id = *id;
  approval.given = now;
  auto held = lock();
  if (!held) return fail(held.error());
  auto content = read(now);
  if (!content) return fail(content.error());
  if (content->approvals.size() >= kMaxApprovals) {
    return fail(plainError(Stage::state, "approve", approval.what, "a thousand approvals are in force already",
                           "revoke some: caisson approvals list"));
  }
  if (auto recorded = record("grant", approval); !recorded) return fail(recorded.error());
  content->approvals.push_back(approval);
  if (auto written = write(*content); !written) return fail(written.error());
  return approval;
}

Result<std::vector<Approval>> Store::list(std::int64_t now) const {
  auto content = read(now);
  if (!content) return fail(content.error());
  return std::move(content->approvals);
}

Result<bool> Store::redeem(std::string_view what, std::string_view session, std::int64_t now) {
  const auto used = use(what, session, now);
  if (!used) return fail(used.error());
  return used->has_value();
}

Result<std::optional<Approval>> Store::use(std::string_view what, std::string_view session, std::int64_t now) {
  const Claim claim{std::string(what), std::string(session)};
  auto used = useAll(std::span(&claim, 1), now);
  if (!used) return fail(used.error());
  if (!*used) return std::nullopt;
  return std::move((*used)->front());
}

Result<std::optional<std::vector<Approval>>> Store::useAll(std::span<const Claim> claims, std::int64_t now) {
  auto held = lock();
  if (!held) return fail(held.error());
  auto content = read(now);
  if (!content) return fail(content.error());
  std::vector<Approval>& approvals = content->approvals;
  const std::size_t before = approvals.size();
  std::vector<Approval> used;
  for (const Claim& claim : claims) {
    const auto found = std::ranges::find_if(approvals, [&](const Approval& one) {
      return one.what == claim.what &&
             (one.scope != Scope::session || (!claim.session.empty() && one.session == claim.session));
    });
    if (found == approvals.end()) return std::nullopt;
    used.push_back(*found);
    if (found->scope != Scope::once) continue;
    content->used.push_back({*found, claim.session, now});
    approvals.erase(found);
  }
  for (const Approval& one : used) {
    if (auto recorded = record("redeem", one); !recorded) return fail(recorded.error());
  }
  if (approvals.size() == before) return used;
  // Before use: a crash loses the approval instead of allowing it twice.
  if (auto written = write(*content); !written) return fail(written.error());
  return used;
}

Result<bool> Store::giveBack(std::string_view what, std::string_view session, std::int64_t now) {
  auto held = lock();
  if (!held) return fail(held.error());
  auto content = read(now);
  if (!content) return fail(content.error());
  const auto found = std::find_if(content->used.rbegin(), content->used.rend(), [&](const Used& one) {
    return one.approval.what == what && one.claimed_by == session;
  });
  if (found == content->used.rend()) return false;
  const Approval approval = found->approval;
  content->used.erase(std::next(found).base());
  if (auto recorded = record("give back", approval); !recorded) return fail(recorded.error());
  content->approvals.push_back(approval);
  if (auto written = write(*content); !written) return fail(written.error());
  return true;
}

Result<bool> Store::revoke(std::string_view id, std::int64_t now) {
  auto held = lock();
  if (!held) return fail(held.error());
  auto content = read(now);
  if (!content) return fail(content.error());
  // One that was used a moment ago must not come back, either.
  const std::size_t returnable = std::erase_if(content->used, [&](const Used& one) { return one.approval.id == id; });
  const auto found = std::ranges::find_if(content->approvals, [&](const Approval& one) { return one.id == id; });
  if (found == content->approvals.end()) {
    if (returnable == 0) return false;
    if (auto written = write(*content); !written) return fail(written.error());
    return false;
  }
  const Approval revoked = *found;
  content->approvals.erase(found);
  if (auto written = write(*content); !written) return fail(written.error());
  if (auto recorded = record("revoke", revoked); !recorded) return fail(recorded.error());
  return true;
}

}  // namespace caisson::approval
