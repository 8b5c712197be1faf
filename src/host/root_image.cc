#include "host/root_image.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "host/facts.h"
#include "host/root_view.h"
#include "plan/denied_paths.h"
#include "plan/filesystem.h"
#include "plan/workspace.h"
#include "policy/decode/syntax.h"
#include "sys/descriptor_path.h"
#include "sys/fd.h"

namespace caisson::host {
namespace {

constexpr std::size_t kMaxAccounts = 256 * 1024;  // bytes of /etc/passwd

void refuse(plan::RootFacts& root, std::string why, std::string hint) {
  root.why_not = std::move(why);
  root.hint = std::move(hint);
}

void findDirectory(const std::string& path, plan::RootFacts& root) {
  const sys::Fd directory(::open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!directory) return refuse(root, "it cannot be opened: " + errnoName(errno), "name an existing directory");
  struct stat status;
  if (::fstat(directory.get(), &status) != 0 || !S_ISDIR(status.st_mode))
    return refuse(root, "it is not a directory", "name a directory, or import an archive with `caisson image import`");
  auto real = sys::canonicalPath(directory.get());
  if (!real) return refuse(root, real.error().message(), "name an existing directory");
  // The kernel refuses such a layer in a user namespace.
  if (*real != "/" && hasMountsBelow(*real))
    return refuse(root, "file systems are mounted below it", "unmount them, or copy the directory");
  root.layers = {*std::move(real)};
}

/// Denied paths lead through links of this root, not of the host's, except in trees of the host that are shown.
void resolveDenied(const policy::Policy& policy, const RootView& view, plan::HostFacts& facts) {
  for (const std::string& entry : policy.filesystem.denied) {
    const std::string path = policy::normalPath(entry);
    const auto shows = [&](const plan::HostPath& shown) { return plan::below(path, shown.path); };
    if (plan::isPattern(entry) || plan::below(path, plan::kWorkspace) || plan::below(path, facts.workspace.path) ||
        std::ranges::any_of(facts.read_only, shows) || std::ranges::any_of(facts.read_write, shows)) {
      continue;
    }
    facts.denied_real.erase(path);
    const auto real = view.resolve(path);
    if (real && *real != path) facts.denied_real.emplace(path, *real);
  }
}

}  // namespace

void observeRootImage(const policy::Policy& policy, plan::HostFacts& facts) {
  plan::RootFacts& root = facts.root;
  if (!policy.filesystem.root.starts_with('/')) return refuse(root, "images are not in this build", "name a directory");
  findDirectory(policy.filesystem.root, root);
  if (!root.why_not.empty()) return;
  auto view = RootView::open(root.layers);
  if (!view) return refuse(root, view.error().message(), "name a directory that you can enter");
  auto entries = view->topLevel();
  if (!entries) return refuse(root, "it has too many entries", "name the directory of a root file system");
  root.top_level = *std::move(entries);
  root.passwd = view->readFile("/etc/passwd", kMaxAccounts).value_or("");
  root.group = view->readFile("/etc/group", kMaxAccounts).value_or("");
  root.has_apt = view->isDirectory("/etc/apt/apt.conf.d");
  root.has_git_config = view->isFile("/etc/gitconfig");
  resolveDenied(policy, *view, facts);
}

}  // namespace caisson::host
