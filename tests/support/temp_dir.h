// Directories and files that a test creates and that are removed with it.
#pragma once

#include <string>

namespace caisson::test {

/// A new private directory. The destructor removes it with its content, without following links or crossing mounts,
/// since a payload may have filled it.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  /// The path of an entry in it.
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  /// Creates a file in it, with missing directories; returns its path.
  std::string write(const std::string& name, const std::string& content, unsigned mode = 0644) const;
  std::string makeDir(const std::string& name, unsigned mode = 0755) const;
  /// Opens the directory to other users (root's payloads run under another uid).
  const TempDir& openToAll() const;

 private:
  std::string path_;
};

/// Empty if the file cannot be read.
std::string readFile(const std::string& path);
bool exists(const std::string& path);

/// A file that an attack must not be able to read or change. It contains a unique secret, so a leak shows in any
/// output, and remembers its state, so changes are detected as well.
class Canary {
 public:
  /// Creates the canary at `path`, which must be in one of the test's directories.
  explicit Canary(std::string path);
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const std::string& secret() const { return secret_; }
  /// Same inode, content, mode, owner and modification time as at creation.
  [[nodiscard]] bool untouched() const;
  [[nodiscard]] bool leakedInto(const std::string& output) const { return output.find(secret_) != std::string::npos; }

 private:
  [[nodiscard]] std::string state() const;

  std::string path_;
  std::string secret_;
  std::string planted_state_;
};

}  // namespace caisson::test
