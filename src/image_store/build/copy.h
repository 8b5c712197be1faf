// COPY and ADD: files of the build context, or of another stage, for a new layer.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "image_store/build/layer_archive.h"
#include "image_store/build/merged_view.h"

namespace caisson::image {

/// Where files are copied from. Paths are relative and without `..`.
struct CopySource {
  std::function<std::optional<sys::FileInfo>(const std::string& path)> stat;
  std::function<Result<std::vector<std::string>>(const std::string& path)> list;
  std::function<Result<sys::Fd>(const std::string& path)> open;
  std::function<Result<std::string>(const std::string& path)> readLink;
  std::function<bool(const std::string& path)> ignored;
};

/// A directory of the user. Links are copied, never followed, so nothing outside is read.
CopySource contextSource(const sys::RootDir& context, std::vector<std::string> ignore);
CopySource viewSource(const MergedView& view);

struct CopyRequest {
  std::vector<std::string> sources;  ///< may contain wildcards
  std::string target;                ///< absolute
  std::optional<std::uint32_t> mode;
};

/// Adds the files to the archive at the place that `target` names in the image, its links followed.
Result<void> copyInto(LayerArchive& archive, const MergedView& image, const CopySource& source,
                      const CopyRequest& request);

}  // namespace caisson::image
