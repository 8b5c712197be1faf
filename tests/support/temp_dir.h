// Directories and files that a test makes and that vanish with it.
#pragma once

#include <string>

namespace caisson::test {

/// A fresh private directory. Removed with everything in it by the destructor, never following a link and
/// never crossing a mount: a payload may have filled it.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  /// The path of an entry below.
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  /// Creates a file below, with any directories on the way; returns its path.
  std::string write(const std::string& name, const std::string& content, unsigned mode = 0644) const;
  std::string makeDir(const std::string& name, unsigned mode = 0755) const;
  /// Opens the directory to other users (root's payloads run under another uid).
  const TempDir& openToAll() const;

 private:
  std::string path_;
};

std::string readFile(const std::string& path);
bool exists(const std::string& path);

/// A file that an attack should not be able to read or change. It holds a secret that occurs nowhere else,
/// so a leak shows in any output, and it remembers its own state, so damage shows as well.
class Canary {
 public:
  /// Plants the canary as `path`, which must lie in a directory of the test's own.
  explicit Canary(std::string path);
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const std::string& secret() const { return secret_; }
  /// Same inode, content, mode, owner and modification time as when it was planted.
  [[nodiscard]] bool untouched() const;
  [[nodiscard]] bool leakedInto(const std::string& output) const { return output.find(secret_) != std::string::npos; }

 private:
  [[nodiscard]] std::string state() const;

  std::string path_;
  std::string secret_;
  std::string planted_state_;
};

}  // namespace caisson::test
