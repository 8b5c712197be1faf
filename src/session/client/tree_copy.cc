#include "session/client/tree_copy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "session/changes/left_out.h"
#include "session/changes/sparse_read.h"
#include "session/client/as_payload.h"
#include "session/commit/host_attributes.h"
#include "session/commit/object_moves.h"
#include "session/layers/steps.h"
#include "sys/remove_tree.h"

namespace caisson::session {
namespace {

using sys::Fd;
using sys::FileInfo;
using sys::FileType;

constexpr std::uint64_t kMaxEntries = 5'000'000;  // a payload may add directories while the copy runs
constexpr mode_t kCopiedModeBits = 0777;          // never setuid, setgid or sticky

/// Errors of the target that every further file would hit too.
bool endsCopy(int error) {
  return error == ENOSPC || error == EDQUOT || error == EROFS || error == EIO || error == EMFILE || error == ENFILE;
}

class TreeCopy {
 public:
  TreeCopy(const CopySide& from, const CopySide& to, const TreeCopyOptions& options)
      : from_(from), to_(to), options_(options) {}

  Result<CopyReport> run() {
    pending_.push_back({"", 0});
    for (std::uint64_t seen = 0; !pending_.empty(); ++seen) {
      const Pending next = std::move(pending_.back());
      pending_.pop_back();
      if (seen == kMaxEntries) {
        return fail(plainError(Stage::state, "session cp", from_.path, "it has more than five million entries",
                               "copy a part of it"));
      }
      if (auto copied = copyOne(next); !copied) return fail(copied.error());
    }
    return std::move(report_);
  }

 private:
  struct Pending {
    std::string below;  // "" is the top itself
    std::size_t depth;  // of its directory, below the top
  };

  static std::string join(const std::string& top, const std::string& below) {
    if (below.empty()) return top;
    return top.empty() ? below : top + "/" + below;
  }
  void leaveOut(const std::string& below, std::string reason) {
    addLeftOut(report_.left_out, join(from_.path, below), std::move(reason));
  }
  /// An error at the top fails the whole copy; below, the copy continues.
  Result<void> leaveOutOrFail(const Pending& one, Error error) {
    if (one.below.empty()) return fail(std::move(error));
    leaveOut(one.below, error.message());
    return {};
  }

  Result<void> copyOne(const Pending& one) {
    step("copy: one entry");
    if (options_.skip && !one.below.empty() && options_.skip(one.below)) return {};
    const auto info = [&] {
      const AsPayload identity(from_.identity);
      return from_.root->stat(join(from_.path, one.below));
    }();
    if (!info) return leaveOutOrFail(one, info.error());
    const std::string target = join(to_.path, one.below);
    if (const std::string why = options_.refuse ? options_.refuse(target, info->type) : ""; !why.empty()) {
      return leaveOutOrFail(one, plainError(Stage::usage, "session cp", target, why, "copy it to another place"));
    }
    if (const std::string why = options_.withhold ? options_.withhold(join(from_.path, one.below)) : ""; !why.empty()) {
      return leaveOutOrFail(one, plainError(Stage::usage, "session cp", join(from_.path, one.below), why));
    }
    if (info->type != FileType::link && isHeldBack(one, info->type, "")) return {};
    switch (info->type) {
      case FileType::regular: return copyFile(one);
      case FileType::directory: return copyDirectory(one, *info);
      case FileType::link: return copyLink(one);
      default: break;
    }
    const std::string reason = "a " + std::string(sys::name(info->type)) + " is not copied";
    if (one.below.empty()) return fail(plainError(Stage::usage, "session cp", from_.path, reason));
    leaveOut(one.below, reason);
    return {};
  }

  /// Lists what is held back in the report.
  bool isHeldBack(const Pending& one, FileType type, const std::string& link) {
    if (!options_.hold_back || one.below.empty()) return false;
    const std::string why = options_.hold_back(join(to_.path, one.below), type, link);
    if (!why.empty()) leaveOut(one.below, why + "; copy it by naming it");
    return !why.empty();
  }

  /// Returns the target directory of `path`, walked without following links, and the last name.
  Result<int> targetDirectory(const std::string& path, std::string& name) {
    const std::size_t slash = path.rfind('/');
    name = slash == std::string::npos ? path : path.substr(slash + 1);
    const std::string parent = slash == std::string::npos ? "" : path.substr(0, slash);
    if (name.empty() || name == "." || name == "..") return fail(sysError(Stage::state, "create", path, EINVAL));
    if (parent_ && parent == parent_path_) return parent_.get();
    Fd here(::openat(to_.root->descriptor(), ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
    for (std::size_t begin = 0; here && begin < parent.size();) {
      const std::size_t end = std::min(parent.find('/', begin), parent.size());
      const std::string part = parent.substr(begin, end - begin);
      here = Fd(::openat(here.get(), part.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      begin = end + 1;
    }
    if (!here) return fail(sysError(Stage::state, "open directory of", path, errno));
    parent_ = std::move(here);
    parent_path_ = parent;
    return parent_.get();
  }

  Result<void> copyDirectory(const Pending& one, const FileInfo& info) {
    auto entries = listed(one);
    if (!entries) return leaveOutOrFail(one, entries.error());
    if (auto made = makeDirectory(join(to_.path, one.below), info.mode); !made) {
      if (endsCopy(made.error().sys_errno)) return made;
      return leaveOutOrFail(one, made.error());
    }
    const std::size_t depth = one.below.empty() ? 0 : one.depth + 1;
    for (auto entry = entries->rbegin(); entry != entries->rend(); ++entry) {
      pending_.push_back({join(one.below, *entry), depth});
    }
    return {};
  }

  /// The names in a directory that are to be copied.
  Result<std::vector<std::string>> listed(const Pending& one) {
    if (options_.only && one.below.empty()) return std::vector{*options_.only};
    if (options_.only) return std::vector<std::string>{};
    const AsPayload identity(from_.identity);
    const auto entries = from_.root->list(join(from_.path, one.below));
    if (!entries) return fail(entries.error());
    std::vector<std::string> names;
    names.reserve(entries->size());
    for (const sys::DirectoryEntry& entry : *entries) names.push_back(entry.name);
    return names;
  }

  Result<void> makeDirectory(const std::string& path, mode_t mode) {
    const AsPayload identity(to_.identity);
    if (path.empty()) return {};  // the target's root
    std::string name;
    const auto parent = targetDirectory(path, name);
    if (!parent) return fail(parent.error());
    const mode_t wanted = (mode & kCopiedModeBits) | S_IRWXU;
    if (::mkdirat(*parent, name.c_str(), wanted) != 0) {
      if (errno != EEXIST) return fail(sysError(Stage::state, "mkdir", path, errno));
      struct stat there{};
      if (::fstatat(*parent, name.c_str(), &there, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(there.st_mode)) {
        return fail(sysError(Stage::state, "mkdir", path, ENOTDIR, "something else of this name is there"));
      }
    }
    return {};
  }

  /// A file or link in the target that is made under a temporary name first.
  struct NewEntry {
    int parent = -1;  ///< its directory
    std::string name, temporary;
  };
  /// Fills `entry` for the target path; its `parent` stays -1 if this one is left out. Call as the target's identity.
  Result<void> prepare(const Pending& one, const std::string& path, NewEntry& entry) {
    const auto parent = targetDirectory(path, entry.name);
    if (!parent) return leaveOutOrFail(one, parent.error());
    auto temporary = sys::unpredictableName();
    if (!temporary) return fail(sysError(Stage::state, "getrandom", path, errno));
    entry.parent = *parent;
    entry.temporary = *std::move(temporary);
    return {};
  }

  Result<void> copyLink(const Pending& one) {
    if (one.below.empty()) {
      return fail(plainError(Stage::usage, "session cp", from_.path, "it is a link", "name what it leads to"));
    }
    const auto target = [&] {
      const AsPayload identity(from_.identity);
      return from_.root->readLink(join(from_.path, one.below));
    }();
    if (!target) return leaveOutOrFail(one, target.error());
    if (options_.links_stay_inside && !staysInside(*target, one.depth)) {
      leaveOut(one.below, "a link that may lead out of the copied tree");
      return {};
    }
    if (isHeldBack(one, FileType::link, *target)) return {};
    const AsPayload identity(to_.identity);
    const std::string path = join(to_.path, one.below);
    NewEntry entry;
    if (auto prepared = prepare(one, path, entry); !prepared || entry.parent < 0) return prepared;
    if (::symlinkat(target->c_str(), entry.parent, entry.temporary.c_str()) != 0) {
      const Error error = sysError(Stage::state, "symlink", path, errno);
      if (endsCopy(error.sys_errno)) return fail(error);
      return leaveOutOrFail(one, error);
    }
    return putInPlace(one, entry);
  }

  /// Renames a temporary file to its final name. Never replaces a directory.
  Result<void> putInPlace(const Pending& one, const NewEntry& entry) {
    if (::renameat(entry.parent, entry.temporary.c_str(), entry.parent, entry.name.c_str()) == 0) {
      ++report_.files;
      return {};
    }
    const int error = errno;
    ::unlinkat(entry.parent, entry.temporary.c_str(), 0);
    return leaveOutOrFail(one, sysError(Stage::state, "replace", join(to_.path, one.below), error,
                                        error == EISDIR ? "a directory of this name is there" : ""));
  }

  Result<void> copyFile(const Pending& one) {
    auto source = [&] {
      const AsPayload identity(from_.identity);
      return from_.root->openFile(join(from_.path, one.below), {.flags = O_RDONLY});
    }();
    if (!source) return leaveOutOrFail(one, source.error());
    struct stat status{};
    if (::fstat(source->get(), &status) != 0) {
      return leaveOutOrFail(one, sysError(Stage::state, "fstat", one.below, errno));
    }
    const auto size = static_cast<std::uint64_t>(status.st_size);
    const auto holes = dataExtents(source->get(), size);
    const std::vector<Extent> extents = holes.value_or(std::vector<Extent>{{0, size}});
    std::uint64_t data = 0;
    for (const Extent& extent : extents) data += extent.length;
    if (options_.reserve) {
      if (auto reserved = options_.reserve(data); !reserved) return reserved;
    }
    const AsPayload identity(to_.identity);
    const std::string path = join(to_.path, one.below);
    NewEntry entry;
    if (auto prepared = prepare(one, path, entry); !prepared || entry.parent < 0) return prepared;
    mode_t mode = status.st_mode & kCopiedModeBits;
    const auto replaced = options_.exact_mode ? std::nullopt : infoAt(entry.parent, entry.name);
    const bool keeps_rights = replaced && replaced->type == FileType::regular;
    if (keeps_rights) mode &= ~accessOfOthers(replaced->mode) | replaced->mode;
    Fd target(
        ::openat(entry.parent, entry.temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
    int error = target ? 0 : errno;
    bool cut = false;
    if (error == 0) error = write(source->get(), target.get(), extents, size, cut);
    if (error == 0 && options_.exact_mode && ::fchmod(target.get(), mode) != 0) error = errno;
    if (error == 0 && keeps_rights) error = keepRights(entry, path, target.get());
    if (error == 0 && options_.keep_times) {
      const timespec times[2] = {status.st_atim, status.st_mtim};
      (void)::futimens(target.get(), times);
    }
    if (error != 0) {
      if (target) ::unlinkat(entry.parent, entry.temporary.c_str(), 0);
      if (endsCopy(error)) return fail(sysError(Stage::state, "write", path, error));
      return leaveOutOrFail(one, sysError(Stage::state, "write", path, error));
    }
    if (auto placed = putInPlace(one, entry); !placed) return placed;
    report_.bytes += data;
    if (cut) leaveOut(one.below, "it became shorter during the copy; its end is zeros in the copy");
    return {};
  }

  /// A file that replaces another keeps that one's access list and attributes. Returns 0 or the errno.
  static int keepRights(const NewEntry& entry, const std::string& path, int target) {
    struct stat made{};
    if (::fstat(target, &made) != 0) return errno;
    const auto attributes = readAttributes(entry.parent, entry.name, path);
    if (!attributes) return attributes.error().sys_errno;
    if (auto set = setAttributes(target, *attributes, path); !set) return set.error().sys_errno;
    return ::fchmod(target, made.st_mode & kCopiedModeBits) == 0 ? 0 : errno;
  }

  /// Returns 0, or the errno of the target.
  static int write(int source, int target, const std::vector<Extent>& extents, std::uint64_t size, bool& cut) {
    for (const Extent& extent : extents) {
      std::uint64_t at = extent.offset;
      int error = 0;
      (void)readExtent(source, extent, cut, [&](std::string_view bytes) {
        while (!bytes.empty()) {
          const ssize_t put = ::pwrite(target, bytes.data(), bytes.size(), static_cast<off_t>(at));
          if (put < 0 && errno == EINTR) continue;
          if (put < 0) {
            error = errno;
            return false;
          }
          at += static_cast<std::uint64_t>(put);
          bytes.remove_prefix(static_cast<std::size_t>(put));
        }
        return true;
      });
      if (error != 0) return error;
    }
    return ::ftruncate(target, static_cast<off_t>(size)) == 0 ? 0 : errno;
  }

  const CopySide& from_;
  const CopySide& to_;
  const TreeCopyOptions& options_;
  std::vector<Pending> pending_;
  Fd parent_;
  std::string parent_path_;
  CopyReport report_;
};

}  // namespace

bool staysInside(std::string_view target, std::size_t depth) {
  if (target.empty() || target.front() == '/') return false;
  bool below = false;
  std::size_t up = 0;
  for (std::size_t begin = 0; begin <= target.size();) {
    const std::size_t end = std::min(target.find('/', begin), target.size());
    const std::string_view part = target.substr(begin, end - begin);
    begin = end + 1;
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      below = true;
    } else if (below || ++up > depth) {
      return false;
    }
  }
  return true;
}

Result<CopyReport> copyTree(const CopySide& from, const CopySide& to, const TreeCopyOptions& options) {
  return TreeCopy(from, to, options).run();
}

}  // namespace caisson::session
