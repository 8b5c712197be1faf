// Metadata of sessions that were read before. Parsing one takes longer than reading its file.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "session/store/metadata.h"

namespace caisson::session {

/// Thread-safe.
class MetadataCache {
 public:
  /// Like readMetadata(); does not parse a text again that the file had the last time.
  Result<Metadata> read(const sys::RootDir& session);
  /// Like exchangeMetadata(); the next read() does not parse it. Its end must be what setTtl() set.
  Result<sys::Fd> exchange(const sys::RootDir& session, const Metadata& metadata);
  /// The session's file has these metadata now, as toJson() writes them: the next read() does not parse it.
  void remember(const sys::RootDir& session, const Metadata& metadata) {
    remember(session, toJson(metadata), metadata);
  }
  /// Drops what is known of a session that was removed.
  void forget(const sys::RootDir& session);

 private:
  void remember(const sys::RootDir& session, std::string text, const Metadata& metadata);

  struct Entry {
    std::string text;
    Metadata metadata;
  };

  std::mutex mutex_;
  std::map<std::string, Entry> entries_;  ///< by the directory's name
};

}  // namespace caisson::session
