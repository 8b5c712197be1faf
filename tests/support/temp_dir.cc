#include "support/temp_dir.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <vector>

namespace caisson::test {
namespace {

std::string temporaryRoot() {
  const char* configured = std::getenv("TMPDIR");
  return configured != nullptr && *configured != '\0' ? configured : "/tmp";
}

void removeEntries(int directory, dev_t device);

/// Removes one entry relative to an open directory. Removes a link without following it; skips mounts.
void removeEntry(int parent, const char* name, dev_t device) {
  struct stat status{};
  if (fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) != 0) return;
  if (!S_ISDIR(status.st_mode)) {
    unlinkat(parent, name, 0);
    return;
  }
  if (status.st_dev != device) return;
  if (unlinkat(parent, name, AT_REMOVEDIR) == 0) return;
  int child = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (child < 0) {
    // A payload may have removed the permissions of its directory. O_PATH pins the object that is changed.
    const int pinned = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (pinned < 0) return;
    const std::string by_descriptor = "/proc/self/fd/" + std::to_string(pinned);
    chmod(by_descriptor.c_str(), 0700);
    close(pinned);
    child = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (child < 0) return;
  }
  fchmod(child, 0700);
  removeEntries(child, device);
  unlinkat(parent, name, AT_REMOVEDIR);
}

/// Empties an open directory and closes it.
void removeEntries(int directory, dev_t device) {
  struct stat status{};
  DIR* stream = nullptr;
  if (fstat(directory, &status) != 0 || status.st_dev != device || (stream = fdopendir(directory)) == nullptr) {
    close(directory);
    return;
  }
  while (const dirent* entry = readdir(stream)) {
    if (std::strcmp(entry->d_name, ".") == 0 || std::strcmp(entry->d_name, "..") == 0) continue;
    removeEntry(directory, entry->d_name, device);
  }
  closedir(stream);
}

std::string randomHex() {
  std::vector<unsigned char> bytes(16);
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw std::runtime_error("getrandom failed");
  }
  std::ostringstream text;
  for (const unsigned char byte : bytes) text << std::hex << static_cast<int>(byte);
  return text.str();
}

}  // namespace

TempDir::TempDir() {
  std::string pattern = temporaryRoot() + "/caisson-test-XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed: " + pattern);
  path_ = pattern;
}

TempDir::~TempDir() {
  const int directory = open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  struct stat status{};
  if (directory < 0) return;
  if (fstat(directory, &status) == 0) {
    removeEntries(directory, status.st_dev);
  } else {
    close(directory);
  }
  rmdir(path_.c_str());
}

std::string TempDir::write(const std::string& name, const std::string& content, unsigned mode) const {
  if (const std::size_t slash = name.rfind('/'); slash != std::string::npos) makeDir(name.substr(0, slash));
  const std::string path = *this / name;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << content;
  file.close();
  if (!file || chmod(path.c_str(), mode) != 0) throw std::runtime_error("can't write " + path);
  return path;
}

std::string TempDir::makeDir(const std::string& name, unsigned mode) const {
  for (std::size_t end = name.find('/'); end != std::string::npos; end = name.find('/', end + 1)) {
    mkdir((*this / name.substr(0, end)).c_str(), 0755);
  }
  const std::string path = *this / name;
  mkdir(path.c_str(), mode);
  if (!exists(path)) throw std::runtime_error("can't make " + path);
  return path;
}

const TempDir& TempDir::openToAll() const {
  chmod(path_.c_str(), 0755);
  return *this;
}

std::string readFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

bool exists(const std::string& path) {
  struct stat status{};
  return lstat(path.c_str(), &status) == 0;
}

Canary::Canary(std::string path) : path_(std::move(path)), secret_("canary-" + randomHex()) {
  std::ofstream file(path_, std::ios::binary | std::ios::trunc);
  file << secret_ << '\n';
  file.close();
  if (!file) throw std::runtime_error("can't plant " + path_);
  planted_state_ = state();
}

bool Canary::untouched() const { return state() == planted_state_; }

std::string Canary::state() const {
  struct stat status{};
  if (lstat(path_.c_str(), &status) != 0) return "gone";
  std::ostringstream text;
  text << status.st_ino << ' ' << status.st_mode << ' ' << status.st_uid << ' ' << status.st_gid << ' '
       << status.st_nlink << ' ' << status.st_mtim.tv_sec << '.' << status.st_mtim.tv_nsec << ' ' << readFile(path_);
  return text.str();
}

}  // namespace caisson::test
