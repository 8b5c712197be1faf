// `--result FILE`: the file appears whole or not at all, under a name that was settled before the payload ran.
//
// The payload may own the directory (a writable workspace) and plant links or swap directories while
// it runs. So the directory is opened before the run and everything after is relative to that
// descriptor; the new file is created exclusively and renamed over the name, which follows no link.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "sys/fd.h"

namespace caisson::cli {

class ResultFile {
 public:
  /// Opens FILE's directory. Refuses what a rename would destroy: anything there that is no regular file.
  static Result<ResultFile> prepare(std::string_view path);

  /// Puts a file with this content in place.
  Result<void> write(std::string_view content) const;

 private:
  [[nodiscard]] Result<void> checkReplaceable() const;

  sys::Fd directory_;
  std::string name_;
  std::string path_;  ///< as given, for messages
};

}  // namespace caisson::cli
