#include "sys/path_reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <string_view>

#include "sys/root_dir_resolve.h"

namespace caisson::sys {
namespace {

std::unexpected<Error> failed(std::string_view call, const std::string& path, int error) {
  return fail(sysError(Stage::state, call, path, error));
}

}  // namespace

Result<int> PathReader::parentOf(const std::string& path, const char*& name) {
  const std::size_t slash = path.rfind('/');
  const std::string_view directory =
      slash == std::string::npos ? std::string_view() : std::string_view(path.data(), slash);
  name = path.c_str() + (slash == std::string::npos ? 0 : slash + 1);
  if (*name == '\0' || std::string_view(name) == "." || std::string_view(name) == "..") {
    return failed("open", path, EINVAL);
  }
  if (!known_ || directory != directory_) {
    auto entered = root_->enter(directory);
    known_ = true;
    directory_ = directory;
    parent_.reset();
    problem_.reset();
    if (entered) {
      parent_ = std::move(*entered);
    } else {
      problem_ = entered.error();
    }
  }
  if (!parent_) return failed("open", path, problem_->sys_errno != 0 ? problem_->sys_errno : EINVAL);
  return parent_->descriptor();
}

Result<FileInfo> PathReader::stat(const std::string& path) {
  const char* name = nullptr;
  const auto parent = parentOf(path, name);
  if (!parent) return fail(parent.error());
  const auto info = inspect(*parent, name);
  if (!info) return failed("stat", path, info.error());
  return fileInfoOf(*info);
}

Result<std::string> PathReader::readLink(const std::string& path) {
  const char* name = nullptr;
  const auto parent = parentOf(path, name);
  if (!parent) return fail(parent.error());
  std::array<char, PATH_MAX> text;
  const ssize_t length = ::readlinkat(*parent, name, text.data(), text.size());
  if (length < 0) return failed("readlink", path, errno);
  return std::string(text.data(), static_cast<std::size_t>(length));
}

Result<OpenedFile> PathReader::open(const std::string& path) {
  const char* name = nullptr;
  const auto parent = parentOf(path, name);
  if (!parent) return fail(parent.error());
  Fd file(::openat(*parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file) return failed("open", path, errno);
  const auto info = inspect(file.get(), "");
  if (!info) return failed("open", path, info.error());
  OpenedFile opened{std::move(file), fileInfoOf(*info)};
  if (opened.info.type != FileType::regular) return failed("open", path, EINVAL);
  return opened;
}

}  // namespace caisson::sys
