#include "supervise/syscalls/file_attributes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdio>
#include <optional>
#include <string_view>
#include <utility>

#include "base/syscall_names.h"
#include "plan/workspace.h"
#include "supervise/syscalls/link_target.h"
#include "sys/change_mode.h"
#include "sys/descriptor_path.h"
#include "sys/effective_ids.h"
#include "sys/file_identity.h"
#include "sys/process_view.h"

namespace caisson::supervise {
namespace {

constexpr int kMaxLinks = 40;  // as the kernel
constexpr mode_t kSetIdBits = S_ISUID | S_ISGID;
constexpr sys::FileTypes kAnyType = {
    sys::FileType::regular, sys::FileType::directory,        sys::FileType::link,        sys::FileType::fifo,
    sys::FileType::socket,  sys::FileType::character_device, sys::FileType::block_device};

enum class AttributeChange : std::uint8_t { mode, owner, times };
enum class TimeFormat : std::uint8_t { none, timespec, timeval, utimbuf };

/// Where a call has its arguments; -1: it has none.
struct AttributeCall {
  std::string_view name;
  AttributeChange change = AttributeChange::mode;
  int directory = -1, path = -1, descriptor = -1;
  int value = -1;  ///< mode, uid (the gid follows) or address of the times
  int flags = -1;
  bool follow = true;
  TimeFormat times = TimeFormat::none;
};

constexpr AttributeCall kAttributeCalls[] = {
    {.name = "chmod", .path = 0, .value = 1},
    {.name = "fchmod", .descriptor = 0, .value = 1},
    {.name = "fchmodat", .directory = 0, .path = 1, .value = 2},
    {.name = "fchmodat2", .directory = 0, .path = 1, .value = 2, .flags = 3},
    {.name = "chown", .change = AttributeChange::owner, .path = 0, .value = 1},
    {.name = "lchown", .change = AttributeChange::owner, .path = 0, .value = 1, .follow = false},
    {.name = "fchown", .change = AttributeChange::owner, .descriptor = 0, .value = 1},
    {.name = "fchownat", .change = AttributeChange::owner, .directory = 0, .path = 1, .value = 2, .flags = 4},
    {.name = "utime", .change = AttributeChange::times, .path = 0, .value = 1, .times = TimeFormat::utimbuf},
    {.name = "utimes", .change = AttributeChange::times, .path = 0, .value = 1, .times = TimeFormat::timeval},
    {.name = "futimesat",
     .change = AttributeChange::times,
     .directory = 0,
     .path = 1,
     .value = 2,
     .times = TimeFormat::timeval},
    {.name = "utimensat",
     .change = AttributeChange::times,
     .directory = 0,
     .path = 1,
     .value = 2,
     .flags = 3,
     .times = TimeFormat::timespec},
};

const AttributeCall* attributeCall(int number) {
  const std::string_view name = syscallName(number);
  for (const AttributeCall& call : kAttributeCalls) {
    if (call.name == name) return &call;
  }
  return nullptr;
}

using FileTimes = std::array<timespec, 2>;

struct AttributeRequest {
  std::optional<std::string> path;  ///< none: the descriptor itself
  int descriptor = AT_FDCWD;        ///< or the directory of a relative path
  bool follow = true;
  mode_t mode = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  std::optional<FileTimes> times;  ///< none: now
};

/// Copies the times from the payload's memory. False: unreadable or, for microseconds, out of range.
bool readTimes(pid_t process, std::uint64_t address, TimeFormat format, FileTimes& times) {
  std::int64_t numbers[4] = {};
  const std::size_t count = format == TimeFormat::utimbuf ? 2 : 4;
  if (!sys::readMemory(process, address, {reinterpret_cast<char*>(numbers), count * sizeof(numbers[0])})) return false;
  for (std::size_t i = 0; i < 2; ++i) {
    if (format == TimeFormat::utimbuf) {
      times[i] = {.tv_sec = numbers[i], .tv_nsec = 0};
      continue;
    }
    times[i] = {.tv_sec = numbers[2 * i], .tv_nsec = numbers[2 * i + 1]};
    if (format != TimeFormat::timeval) continue;
    if (times[i].tv_nsec < 0 || times[i].tv_nsec >= 1'000'000) return false;
    times[i].tv_nsec *= 1000;
  }
  return true;
}

/// The number in "/proc/self/fd/7", by which the C library changes a link or what O_PATH opened; -1 for other paths.
int descriptorNamedBy(std::string_view path) {
  constexpr std::string_view kPrefix = "/proc/self/fd/";
  if (!path.starts_with(kPrefix)) return -1;
  path.remove_prefix(kPrefix.size());
  int number = -1;
  const auto [end, error] = std::from_chars(path.data(), path.data() + path.size(), number);
  return error == std::errc() && end == path.data() + path.size() ? number : -1;
}

/// Copies the arguments of the call, once. Returns its errno if they are invalid.
int readArguments(const AttributeCall& call, const Attempt& attempt, AttributeRequest& request) {
  const std::uint64_t* arguments = attempt.arguments;
  const auto flags = call.flags < 0 ? 0U : static_cast<std::uint32_t>(arguments[call.flags]);
  if ((flags & ~std::uint32_t{AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH}) != 0) return EINVAL;
  request.follow = call.follow && (flags & AT_SYMLINK_NOFOLLOW) == 0;
  if (call.descriptor >= 0) request.descriptor = static_cast<int>(arguments[call.descriptor]);
  if (call.directory >= 0) request.descriptor = static_cast<int>(arguments[call.directory]);
  if (call.descriptor >= 0 && request.descriptor < 0) return EBADF;
  // utimensat and futimesat accept a null pointer for "the descriptor itself".
  const bool null =
      call.path >= 0 && arguments[call.path] == 0 && call.change == AttributeChange::times && call.directory >= 0;
  if (null && request.descriptor == AT_FDCWD) return EFAULT;
  if (call.path >= 0 && !null) {
    request.path = sys::readText(attempt.pid, arguments[call.path]);
    if (!request.path) return EFAULT;
    if (request.path->empty()) {
      if ((flags & AT_EMPTY_PATH) == 0) return ENOENT;
      request.path.reset();
    } else if (const int named = descriptorNamedBy(*request.path); named >= 0 && request.follow) {
      request.path.reset();
      request.descriptor = named;
    }
  }
  const std::uint64_t value = arguments[call.value];
  if (call.change == AttributeChange::mode) request.mode = static_cast<mode_t>(value) & 07777U;
  if (call.change == AttributeChange::owner) {
    request.uid = static_cast<uid_t>(value);
    request.gid = static_cast<gid_t>(arguments[call.value + 1]);
  }
  if (call.change == AttributeChange::times && value != 0) {
    if (!readTimes(attempt.pid, value, call.times, request.times.emplace())) return EFAULT;
  }
  return 0;
}

int errnoOfLookup(const Error& error) { return error.sys_errno != 0 ? error.sys_errno : EPERM; }

}  // namespace

FileAttributes::FileAttributes(const plan::Plan& plan)
    : uid_(plan.identity.outside_uid), gid_(plan.identity.outside_gid), own_user_(uid_ == ::geteuid()) {
  for (const std::string& path : plan.attribute_trees) {
    const auto rule = std::ranges::find_if(
        plan.landlock.rules, [&](const plan::LandlockRule& one) { return one.opened && one.path == path; });
    if (rule != plan.landlock.rules.end()) {
      if (auto root = sys::RootDir::share(rule->opened->get(), {.known_as = path}))
        trees_.push_back({path, *std::move(root)});
      continue;
    }
    // One of ours. A program that can write above it could have put a link there.
    auto opened = sys::openWithoutLinks(path);
    auto root = opened ? sys::RootDir::adopt(*std::move(opened), {.known_as = path}) : fail(opened.error());
    if (root) trees_.push_back({path, *std::move(root)});
  }
}

const FileAttributes::Tree* FileAttributes::treeOf(const std::string& path) const {
  for (const Tree& tree : trees_) {
    if (plan::below(path, tree.path)) return &tree;
  }
  return nullptr;
}

FileAttributes::Found FileAttributes::find(std::string path, bool follow) const {
  for (int links = 0; links <= kMaxLinks; ++links) {
    const Tree* tree = treeOf(path);
    if (tree == nullptr) return {.object = {}, .error = EPERM};
    auto object = tree->root.openFile(path.substr(std::min(tree->path.size() + 1, path.size())),
                                      {.flags = O_PATH, .types = kAnyType});
    if (!object) return {.object = {}, .error = errnoOfLookup(object.error())};
    struct stat status{};
    if (::fstat(object->get(), &status) != 0) return {.object = {}, .error = errno};
    if (!follow || !S_ISLNK(status.st_mode)) return {.object = std::move(*object), .error = 0};
    if (const int error = followLinkAt(object->get(), path); error != 0) return {.object = {}, .error = error};
  }
  return {.object = {}, .error = ELOOP};
}

FileAttributes::Found FileAttributes::findDescriptor(pid_t process, int descriptor) const {
  Found found = find(sys::directoryOf(process, descriptor), false);
  if (found.error != 0) return found;
  // The name may lead to another file meanwhile, or the file has no name any more.
  char link[64];
  if (descriptor == AT_FDCWD) {
    std::snprintf(link, sizeof(link), "/proc/%d/cwd", process);
  } else {
    std::snprintf(link, sizeof(link), "/proc/%d/fd/%d", process, descriptor);
  }
  struct stat named{}, meant{};
  if (::fstat(found.object.get(), &named) != 0 || ::stat(link, &meant) != 0) return {.object = {}, .error = EPERM};
  if (named.st_dev != meant.st_dev || named.st_ino != meant.st_ino) return {.object = {}, .error = EPERM};
  return found;
}

FileAttributes::Found FileAttributes::findRelative(pid_t process, int directory, const std::string& path,
                                                   bool follow) const {
  const std::string base = sys::directoryOf(process, directory);
  if (base.empty()) return {.object = {}, .error = EPERM};
  if (treeOf(base) != nullptr) {
    if (Found found = findDescriptor(process, directory); found.error != 0) return found;
  }
  return find(base == "/" ? base + path : base + "/" + path, follow);
}

int FileAttributes::change(const Attempt& attempt, const Listener& listener) const {
  const AttributeCall* call = attributeCall(attempt.number);
  if (call == nullptr) return ENOSYS;
  // A root caller's payload: with its rights its memory can be read, and the kernel checks them on each file.
  const sys::EffectiveIds ids(uid_, gid_);
  if (!ids.valid()) return EPERM;
  AttributeRequest request;
  if (const int error = readArguments(*call, attempt, request); error != 0) return error;
  const Found found = !request.path ? findDescriptor(attempt.pid, request.descriptor)
                      : request.path->front() == '/'
                          ? find(*request.path, request.follow)
                          : findRelative(attempt.pid, request.descriptor, *request.path, request.follow);
  // Everything read so far belongs to the caller only if it still waits: its pid could have been reused.
  if (!listener.isValid(attempt)) return ESRCH;
  if (found.error != 0) return found.error;

  struct stat status{};
  if (::fstat(found.object.get(), &status) != 0) return errno;
  if (!own_user_ && status.st_uid != uid_) return EPERM;  // our supplementary groups could allow more
  switch (call->change) {
    case AttributeChange::mode:
      if ((request.mode & kSetIdBits) != 0) return EPERM;
      if (S_ISLNK(status.st_mode)) return EOPNOTSUPP;
      return sys::changeMode(found.object.get(), request.mode);
    case AttributeChange::owner:
      if (request.uid != static_cast<uid_t>(-1) && request.uid != uid_) return EPERM;
      if (request.gid != static_cast<gid_t>(-1) && request.gid != gid_) return EPERM;
      return ::fchownat(found.object.get(), "", request.uid, request.gid, AT_EMPTY_PATH) == 0 ? 0 : errno;
    case AttributeChange::times:
      return ::utimensat(found.object.get(), "", request.times ? request.times->data() : nullptr, AT_EMPTY_PATH) == 0
                 ? 0
                 : errno;
  }
  return ENOSYS;
}

}  // namespace caisson::supervise
