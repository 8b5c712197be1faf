// The two halves of RootDir's path handling: a lexical check of the request, and resolving a directory inside a root,
// with openat2 or by hand.
#pragma once

#include <sys/stat.h>

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "sys/fd.h"
#include "sys/root_dir.h"

namespace caisson::sys {

/// A parsed request: a directory to resolve, then a name to act on without following it.
struct RequestedPath {
  std::string directory;  ///< relative to the root, "" for the root itself
  std::string name;       ///< "" if the request is the root or ends in `..`
};

enum class BadRequest { climbs, nul_byte };  ///< `climbs`: it leads out of the root by `..` or another prefix

/// Purely lexical. `known_as` is the prefix of absolute requests. Removes `.`, doubled and trailing slashes: `link/`
/// with O_NOFOLLOW would follow the link.
std::expected<RequestedPath, BadRequest> splitPath(std::string_view requested, std::string_view known_as);

struct ResolveRules {
  bool stay_on_mount = false;  ///< fail with EXDEV instead of crossing a mount
  bool by_hand = false;        ///< do not use openat2
  /// Fail with kLeadsOut if a link leads out of the root.
  bool refuse_links_out = false;
  std::string_view known_as = {};  ///< absolute targets below this path are inside, if links out are refused
};

/// Not an errno: a link on the way leads out of the root.
inline constexpr int kLeadsOut = 1 << 16;

/// Returns an O_PATH descriptor of the directory at `path`, resolved with `root` as the root, or an errno. Uses
/// openat2; on ENOSYS (old kernel), EPERM (a seccomp filter) or repeated races with a rename, walks by hand.
std::expected<Fd, int> resolveDirectory(int root, const std::string& path, ResolveRules rules);

/// statx of `name` in `directory` ("": the descriptor itself), never following links, with mount id.
std::expected<struct statx, int> inspect(int directory, const char* name);

FileType fileTypeOf(mode_t mode);
FileInfo fileInfoOf(const struct statx& info);

/// Whether both are the same file: device, inode and file type.
bool sameObject(const struct statx& a, const struct statx& b);
/// Compares mount ids. st_dev does not work: a bind mount of the same file system has the same value, a btrfs subvolume
/// a different one. Before Linux 5.8, which reports no mount id, compares devices nevertheless.
bool sameMount(const struct statx& a, const struct statx& b);

}  // namespace caisson::sys
