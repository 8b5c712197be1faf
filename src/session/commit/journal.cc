#include "session/commit/journal.h"

#include <cerrno>
#include <charconv>

#include "base/version.h"
#include "session/commit/seal.h"

namespace caisson::session {
namespace {

/// Raise the number when a type that the journal contains changes.
constexpr std::string_view kFormatLine = "caisson commit journal 7\n", kFormatName = "caisson commit journal ";
constexpr std::int64_t kJournalFormat = 7;
constexpr std::uint64_t kMaxBytes = 1U << 30;

}  // namespace

HostIdentity HostIdentity::of(const sys::FileInfo& info) {
  return {info.type, info.device, info.inode, info.size, info.modified_ns, info.changed_ns, info.mode};
}

std::string HostIdentity::text() const {
  std::string text = std::string(sys::name(type)) + " " + std::to_string(inode) + " " + std::to_string(mode);
  if (type == sys::FileType::directory) return text;
  return text + " " + std::to_string(size) + " " + std::to_string(modified_ns) + " " + std::to_string(changed_ns);
}

bool HostIdentity::matches(const sys::FileInfo& now, bool renamed) const {
  if (now.type != type || now.device != device || now.inode != inode) return false;
  if (type == sys::FileType::directory) return true;  // names in it come and go with the commit itself
  return now.size == size && now.modified_ns == modified_ns && now.mode == mode &&
         (renamed || now.changed_ns == changed_ns);
}

Result<void> writeJournal(const sys::RootDir& session, const Transaction& transaction) {
  const std::string body = codec::encode(transaction, codec::Layout::fixed);
  const auto text = sealed(kFormatLine, body);
  return text ? session.writeFileAtomic(kJournal, *text, 0600) : fail(text.error());
}

Result<std::optional<Transaction>> readJournal(const sys::RootDir& session,
                                               const std::function<Result<void>()>& before_renaming) {
  const auto text = session.readFile(kJournal, kMaxBytes);
  if (!text && text.error().sys_errno == ENOENT) return std::nullopt;
  if (!text) return fail(text.error());
  if (text->starts_with(kFormatName)) {
    FormatVersion format{.oldest = kJournalFormat, .newest = kJournalFormat};
    const char* const number = text->c_str() + kFormatName.size();
    const auto [end, problem] = std::from_chars(number, text->c_str() + text->size(), format.found);
    if (problem == std::errc() && *end == '\n' && !format.isKnown()) {
      return fail(
          unknownFormat(kJournal, format,
                        "the commit was interrupted: use the session once with the caisson that began it, which "
                        "finishes the commit"));
    }
  }
  const auto body = unsealed(kFormatLine, *text);
  if (!body) return fail(body.error());
  auto transaction = *body ? codec::decode<Transaction>(**body, codec::Layout::fixed) : std::nullopt;
  if (transaction) return std::move(*transaction);
  if (before_renaming) {
    if (auto saved = before_renaming(); !saved) return fail(saved.error());
  }
  return fail(keepAside(session, kJournal, "session commit",
                        "a commit was interrupted, and is not finished: compare the real workspace with the session"));
}

}  // namespace caisson::session
