#include "cli/result/file.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>

#include "cli/output.h"
#include "policy/document/document.h"

namespace caisson::cli {

Error ResultFile::fileError(std::string_view call, const std::string& object, int failure) const {
  return sysError(Stage::state, call, object, failure, "give " + option_ + " a file in a directory you can write to");
}

Result<ResultFile> ResultFile::prepare(std::string_view path, std::string_view option) {
  ResultFile file;
  file.path_ = path;
  file.option_ = option;
  const std::size_t slash = path.rfind('/');
  file.name_ = slash == std::string_view::npos ? path : path.substr(slash + 1);
  if (file.name_.empty() || file.name_ == "." || file.name_ == ".." || path == "-")
    return fail(plainError(Stage::usage, "parse", file.option_ + " " + file.path_, "expected the name of a file",
                           option == "--result" ? "--json prints the result to standard output" : ""));
  const std::string directory = slash == std::string_view::npos ? "." : std::string(path.substr(0, slash + 1));
  file.directory_ = sys::Fd(::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!file.directory_) return fail(file.fileError("open", directory, errno));
  if (auto replaceable = file.checkReplaceable(); !replaceable) return fail(replaceable.error());
  return file;
}

Result<void> ResultFile::checkReplaceable() const {
  struct stat status{};
  if (::fstatat(directory_.get(), name_.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return {};
    return fail(fileError("fstatat", path_, errno));
  }
  if (S_ISREG(status.st_mode)) return {};
  return fail(plainError(Stage::state, "rename", path_,
                         "it exists and is not a regular file; replacing it would destroy it",
                         "give " + option_ + " another name"));
}

Result<std::optional<std::string>> ResultFile::read() const {
  // O_NONBLOCK: a FIFO may have taken the name since.
  const sys::Fd file(::openat(directory_.get(), name_.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file && errno == ENOENT) return std::nullopt;
  if (!file) return fail(fileError("open", path_, errno));
  std::string text;
  char piece[16 * 1024];
  while (text.size() <= policy::kMaxDocumentBytes) {
    const ssize_t count = ::read(file.get(), piece, sizeof(piece));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(fileError("read", path_, errno));
    if (count == 0) return text;
    text.append(piece, static_cast<std::size_t>(count));
  }
  return fail(plainError(Stage::state, "read", path_, "it is larger than 1 MiB, which no policy file is",
                         "give " + option_ + " another name"));
}

bool ResultFile::isSameFile(const std::string& path) const {
  struct stat own{}, other{};
  return ::fstatat(directory_.get(), name_.c_str(), &own, AT_SYMLINK_NOFOLLOW) == 0 &&
         ::stat(path.c_str(), &other) == 0 && own.st_dev == other.st_dev && own.st_ino == other.st_ino;
}

Result<void> ResultFile::write(std::string_view content) const {
  std::uint64_t random = 0;
  if (::getrandom(&random, sizeof random, 0) != sizeof random) return fail(fileError("getrandom", path_, errno));
  char suffix[17];
  std::snprintf(suffix, sizeof suffix, "%016llx", static_cast<unsigned long long>(random));
  const std::string temporary = std::string(".caisson-result-") + suffix;

  const sys::Fd output(::openat(directory_.get(), temporary.c_str(),
                                O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                                S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH));
  if (!output) return fail(fileError("openat", path_, errno));
  struct stat before{};  // a private file stays private; a payload may have made it writable by others
  if (::fstatat(directory_.get(), name_.c_str(), &before, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(before.st_mode)) {
    ::fchmod(output.get(), before.st_mode & 0644);
  }
  int failure = writeAll(output.get(), content);
  if (failure == 0 && ::fsync(output.get()) != 0) failure = errno;
  if (failure == 0) {
    if (auto replaceable = checkReplaceable(); !replaceable) {
      ::unlinkat(directory_.get(), temporary.c_str(), 0);
      return replaceable;
    }
    if (::renameat(directory_.get(), temporary.c_str(), directory_.get(), name_.c_str()) == 0) return {};
    failure = errno;
  }
  ::unlinkat(directory_.get(), temporary.c_str(), 0);
  return fail(fileError("write", path_, failure));
}

}  // namespace caisson::cli
