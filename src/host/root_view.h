// Reads a root that consists of layers, as the overlay of them would show it, without mounting it.
//
// The layers are hostile: links lead to paths of this root only, and nothing but directories and regular files is
// opened.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "sys/fd.h"

namespace caisson::host {

class RootView {
 public:
  /// `layers`: canonical directories, uppermost first.
  static Result<RootView> open(const std::vector<std::string>& layers);

  /// The path without links. Missing last parts stay as they are; nothing: a loop, or a path through a file.
  [[nodiscard]] std::optional<std::string> resolve(std::string_view path) const;
  /// The same for a path to something that exists; nothing: it does not.
  [[nodiscard]] std::optional<std::string> realPath(std::string_view path) const;
  /// The regular file that `path` leads to, open for reading; invalid: there is none.
  [[nodiscard]] sys::Fd openFile(std::string_view path) const;
  /// The content of the regular file that `path` leads to; nothing: there is none, or it is larger.
  [[nodiscard]] std::optional<std::string> readFile(std::string_view path, std::size_t max_bytes) const;
  /// Whether `path` leads to a directory, to a regular file, to one that can be executed.
  [[nodiscard]] bool isProgram(std::string_view path) const;
  [[nodiscard]] bool isDirectory(std::string_view path) const;
  [[nodiscard]] bool isFile(std::string_view path) const;
  /// The entries of the root: "lib" -> "usr/lib" for a link, "" for all else. Nothing: there are too many.
  [[nodiscard]] std::optional<std::map<std::string, std::string>> topLevel() const;

 private:
  struct Entry {
    mode_t mode = 0;
    std::string link;                  ///< text of a link
    std::vector<sys::Fd> directories;  ///< of a directory: in each layer that contributes to it
    sys::Fd object;                    ///< of all else: O_PATH
  };

  explicit RootView(std::vector<sys::Fd> layers) : layers_(std::move(layers)) {}
  /// The entry `name` of a directory, which is not followed if it is a link; nothing if it is absent.
  static std::optional<Entry> child(const std::vector<sys::Fd>& directories, const std::string& name);
  /// Walks to where `path` leads. `found`: nothing if the last parts are missing.
  std::optional<std::string> walk(std::string_view path, std::optional<Entry>& found) const;

  std::vector<sys::Fd> layers_;
};

}  // namespace caisson::host
