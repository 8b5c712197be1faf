// The two halves of RootDir's path handling: judging a request lexically, and resolving a directory inside a root,
// by openat2 or by hand.
#pragma once

#include <sys/stat.h>

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "sys/fd.h"
#include "sys/root_dir.h"

namespace caisson::sys {

/// A request taken apart: directories to resolve, then the name to act on without following it.
struct RequestedPath {
  std::string directory;  ///< relative to the root, "" for the root itself
  std::string name;       ///< "" when the request is the root or ends in `..`
};

enum class BadRequest { climbs, nul_byte };

/// Purely lexical. `known_as` is the prefix under which absolute requests are inside. `.`, doubled and trailing slashes
/// go away: `link/` with O_NOFOLLOW would follow the link.
std::expected<RequestedPath, BadRequest> takeApart(std::string_view requested, std::string_view known_as);

struct ResolveRules {
  bool stay_on_mount = false;  ///< EXDEV instead of crossing a mount
  bool by_hand = false;        ///< do not use openat2
};

/// An O_PATH descriptor of the directory at `path`, resolved with `root` as the root, or an errno.
/// openat2 where the kernel lets us; where it answers ENOSYS (old) or EPERM (a seccomp filter), a walk by hand.
std::expected<Fd, int> resolveDirectory(int root, const std::string& path, ResolveRules rules);

/// statx of `name` in `directory` ("": the descriptor itself), never following, mount id included.
std::expected<struct statx, int> inspect(int directory, const char* name);

FileInfo fileInfoOf(const struct statx& info);

bool sameObject(const struct statx& a, const struct statx& b);
/// By mount id. st_dev would not do: a bind mount of the same file system has the same one, a btrfs subvolume a
/// different one.
bool sameMount(const struct statx& a, const struct statx& b);

}  // namespace caisson::sys
