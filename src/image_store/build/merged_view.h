// The root that an image's layers show together, without mounting them: for COPY, which must follow the image's links.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "sys/root_dir.h"

namespace caisson::image {

class MergedView {
 public:
  /// `layers`: directories in the overlay's format, bottom first.
  static Result<MergedView> open(const std::vector<std::string>& layers);

  struct Entry {
    std::size_t layer = 0;  ///< which one shows it
    sys::FileInfo info;
  };
  /// The entry itself; nothing if it does not exist. `path` contains no links (see resolve()).
  [[nodiscard]] std::optional<Entry> find(const std::string& path) const;
  /// The names in a directory.
  [[nodiscard]] Result<std::vector<std::string>> list(const std::string& path) const;
  /// The path with all links followed, the last component included if it is a link to something that exists; components
  /// that do not exist stay. Nothing for a loop.
  [[nodiscard]] std::optional<std::string> resolve(const std::string& path) const;
  [[nodiscard]] const sys::RootDir& layer(std::size_t number) const { return layers_[number]; }

 private:
  explicit MergedView(std::vector<sys::RootDir> layers) : layers_(std::move(layers)) {}
  /// The layers, top first, that contribute to a directory.
  [[nodiscard]] std::vector<std::size_t> contributors(const std::string& directory) const;
  [[nodiscard]] bool opaque(std::size_t layer, const std::string& directory) const;

  std::vector<sys::RootDir> layers_;  ///< bottom first
};

}  // namespace caisson::image
