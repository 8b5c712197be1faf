#include "sys/own_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace caisson::sys {
namespace {

/// Opens component by component, rejecting links. Invalid, with errno, on failure.
Fd openWithoutLinks(const std::string& path) {
  Fd directory(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  std::size_t begin = 1;
  while (directory) {
    const std::size_t end = path.find('/', begin);
    const std::string part = path.substr(begin, end == std::string::npos ? end : end - begin);
    if (end == std::string::npos) {
      // O_NONBLOCK: opening a FIFO without a writer would block forever.
      return Fd(::openat(directory.get(), part.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    }
    directory = Fd(::openat(directory.get(), part.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    begin = end + 1;
  }
  return {};
}

}  // namespace

Result<Fd> openOwnFile(const std::string& path, Privacy privacy) {
  if (!path.starts_with('/')) return fail(sysError(Stage::policy, "open", path, EINVAL, "name it in full"));
  Fd file = openWithoutLinks(path);
  if (!file) {
    return fail(sysError(Stage::policy, "open", path, errno, "name a file of yours by its real path, without links"));
  }
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) return fail(sysError(Stage::policy, "fstat", path, errno));
  if (!S_ISREG(info.st_mode)) return fail(plainError(Stage::policy, "open", path, "it is not a regular file"));
  const bool secret = privacy == Privacy::secret;
  if (info.st_uid != ::geteuid() && (secret || info.st_uid != 0)) {
    return fail(plainError(Stage::policy, "open", path, "it belongs to another user", "use a file of your own"));
  }
  const mode_t others = secret ? S_IRWXG | S_IRWXO : S_IWGRP | S_IWOTH;
  if ((info.st_mode & others) != 0) {
    return fail(plainError(Stage::policy, "open", path, secret ? "others may read it" : "others may write it",
                           (secret ? "chmod 600 " : "chmod go-w ") + path));
  }
  return file;
}

Result<std::string> readSecretFile(const std::string& path) {
  constexpr std::size_t kMaxSecretBytes = std::size_t{64} << 10U;
  const Fd file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file) return fail(sysError(Stage::usage, "open", path, errno, "name a file that this user can read"));
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) return fail(sysError(Stage::usage, "fstat", path, errno));
  if (!S_ISREG(info.st_mode)) return fail(plainError(Stage::usage, "open", path, "it is not a regular file"));
  if (info.st_uid != ::geteuid() && info.st_uid != 0) {
    return fail(plainError(Stage::usage, "open", path, "it holds a secret and belongs to another user",
                           "use a file of your own, or of root"));
  }
  const mode_t others = S_IRWXO | S_IWGRP | (info.st_uid == 0 ? 0 : S_IRGRP);
  if ((info.st_mode & others) != 0) {
    return fail(plainError(Stage::usage, "open", path, "it holds a secret, and other users may read or change it",
                           "chmod 600 " + path));
  }
  std::string text(kMaxSecretBytes + 1, '\0');
  std::size_t size = 0;
  for (ssize_t got = 1; got != 0 && size < text.size();) {
    got = ::read(file.get(), text.data() + size, text.size() - size);
    if (got < 0 && errno != EINTR) return fail(sysError(Stage::usage, "read", path, errno));
    if (got > 0) size += static_cast<std::size_t>(got);
  }
  if (size > kMaxSecretBytes) return fail(plainError(Stage::usage, "read", path, "it is longer than 64 KiB"));
  text.resize(size);
  return text;
}

}  // namespace caisson::sys
