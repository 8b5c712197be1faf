#include "session/store/metadata_cache.h"

#include <utility>

namespace caisson::session {
namespace {
constexpr std::size_t kMaxEntries = 512;
}

Result<Metadata> MetadataCache::read(const sys::RootDir& session) {
  auto text = readMetadataText(session);
  if (!text) return fail(text.error());
  {
    const std::lock_guard lock(mutex_);
    const auto known = entries_.find(session.knownAs());
    if (known != entries_.end() && known->second.text == *text) {
      Metadata metadata = known->second.metadata;
      addActivity(session, metadata);
      return metadata;
    }
  }
  auto metadata = metadataFromJson(*text, metadataName(session));
  if (!metadata) return metadata;
  remember(session, *std::move(text), *metadata);
  addActivity(session, *metadata);
  return metadata;
}

Result<sys::Fd> MetadataCache::exchange(const sys::RootDir& session, const Metadata& metadata) {
  auto replaced = exchangeMetadata(session, metadata);
  if (replaced) remember(session, metadata);
  return replaced;
}

void MetadataCache::remember(const sys::RootDir& session, std::string text, const Metadata& metadata) {
  const std::lock_guard lock(mutex_);
  if (entries_.size() >= kMaxEntries) entries_.erase(entries_.begin());
  entries_.insert_or_assign(session.knownAs(), Entry{std::move(text), metadata});
}

void MetadataCache::forget(const sys::RootDir& session) {
  const std::lock_guard lock(mutex_);
  entries_.erase(session.knownAs());
}

}  // namespace caisson::session
