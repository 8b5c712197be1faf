// `--result FILE`, `--learn FILE`: writes the file atomically, under a name that was resolved before the payload ran.
//
// The payload may own the directory (a writable workspace) and plant links or swap directories while
// it runs. So the directory is opened before the run and everything after is relative to that
// descriptor; the new file is created exclusively and renamed over the name, which follows no link.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "sys/fd.h"

namespace caisson::cli {

class ResultFile {
 public:
  /// Opens FILE's directory. Fails if FILE exists and is not a regular file, since a rename would destroy it.
  static Result<ResultFile> prepare(std::string_view path, std::string_view option = "--result");

  /// The present content of a policy file, or nothing if there is no file. Fails above 1 MiB.
  [[nodiscard]] Result<std::optional<std::string>> read() const;

  /// Whether FILE exists and `path` names the same file. Follows links only in `path`.
  [[nodiscard]] bool isSameFile(const std::string& path) const;

  /// Writes the file with this content.
  Result<void> write(std::string_view content) const;

 private:
  /// An error if the name exists and is not a regular file.
  [[nodiscard]] Result<void> checkReplaceable() const;
  [[nodiscard]] Error fileError(std::string_view call, const std::string& object, int failure) const;

  sys::Fd directory_;
  std::string name_;
  std::string path_;    ///< as given, for messages
  std::string option_;  ///< that gave it
};

}  // namespace caisson::cli
