// The content that tracked files of the real workspace had when a session began, for three-way merges.
//
// Copying every file at the beginning would make a session as slow as its tree is large. Git has the content already:
// a file that matches its entry in the index (size, times, inode) holds the blob that the entry names. So the names of
// these blobs are written down when the session begins, and the content is read when it is needed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/error.h"
#include "session/store/metadata.h"
#include "sys/root_dir.h"

namespace caisson::session {

/// Records the blob ids of tracked files that are unchanged, at most 50,000 files and for 50 ms. Errors are ignored: a
/// merge then has no base. May be called after the session began: files that changed after `began` are left out.
void recordGitBases(const sys::RootDir& session, const Metadata& metadata);
/// Copies the record to a fork, which began at the same moment.
void copyGitBases(const sys::RootDir& from, const sys::RootDir& to);

class GitBases {
 public:
  /// What recordGitBases() wrote for this session; empty when there is none. `session` and `real`, the real
  /// directory, must outlive the result.
  static GitBases load(const sys::RootDir& session, const Metadata& metadata, const sys::RootDir* real);

  [[nodiscard]] bool has(const std::string& path) const { return blobs_.contains(path); }
  /// The content of the file at the session's beginning, or nothing when it is not known. Runs git, for at most ten
  /// seconds.
  [[nodiscard]] std::optional<std::string> content(const std::string& path) const;

 private:
  struct Blob {
    std::string id;
    std::uint32_t size = 0;
  };
  const sys::RootDir* session_ = nullptr;
  const sys::RootDir* real_ = nullptr;
  std::unordered_map<std::string, Blob> blobs_;
};

}  // namespace caisson::session
