#include "host/root_image.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "approval/image_signatures.h"
#include "host/executables.h"
#include "host/facts.h"
#include "host/named_open.h"
#include "host/root_view.h"
#include "image/layout.h"
#include "image/lookup.h"
#include "plan/denied_paths.h"
#include "plan/executables.h"
#include "plan/filesystem.h"
#include "plan/image_root.h"
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
  const NamedOpen found = openNamed(path);
  const sys::Fd& directory = found.opened;
  if (!found.why_not.empty()) return refuse(root, found.why_not, found.remedy);
  if (!directory) return refuse(root, "it cannot be opened: " + errnoName(found.error), "name an existing directory");
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

/// The path without links: layers are opened again without following any.
Result<std::string> canonical(const std::string& path) {
  const sys::Fd directory(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return fail(sysError(Stage::host, "open", path, errno));
  return sys::canonicalPath(directory.get());
}

/// The owner may require signatures since the image was stored.
Result<void> checkSignature(const image::StoredImage& image) {
  // Intermediate images of builds: their names are reserved, and the images of FROM are checked.
  if (image.name.empty() || image.name.starts_with(image::kBuildCache)) return {};
  const auto owner = approval::loadOwner();
  if (!owner) return fail(owner.error());
  if (owner->images.signatures.empty()) return {};
  const auto reference = image::Reference::parse(image.name);
  if (!reference) return fail(reference.error());
  return approval::requireSignedBy(reference->name(), reference->familiar(), image.signed_by, owner->images);
}

void findImage(const std::string& reference, plan::RootFacts& root) {
  auto image = image::lookup(reference);
  const auto allowed = image ? checkSignature(*image) : fail(image.error());
  if (!allowed) {
    const Error& error = allowed.error();
    return refuse(root, error.reason.empty() ? error.message() : error.reason, error.hint);
  }
  for (auto layer = image->layers.rbegin(); layer != image->layers.rend(); ++layer) {
    auto path = canonical(*layer);
    if (!path) return refuse(root, path.error().message(), "caisson image verify");
    root.layers.push_back(*std::move(path));
  }
  root.digest = image->manifest.text();
  root.environment = std::move(image->config.env);
  root.working_directory = std::move(image->config.working_dir);
  root.user = std::move(image->config.user);
  root.in_use = std::make_shared<const std::vector<sys::Fd>>(std::move(image->in_use));
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
  if (policy.filesystem.root.starts_with('/')) {
    findDirectory(policy.filesystem.root, root);
  } else {
    findImage(policy.filesystem.root, root);
  }
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
  if (!root.working_directory.starts_with('/') || !view->isDirectory(root.working_directory))
    root.working_directory.clear();
  resolveDenied(policy, *view, facts);
  std::string path(plan::kProgramPath);
  for (const std::string& variable : root.environment) {
    if (variable.starts_with("PATH=")) path = variable.substr(5);
  }
  facts.executables = observeExecutables(policy, *view, path);
}

Result<std::vector<std::string>> imageCommand(const policy::Policy& policy) {
  const std::string& root = policy.filesystem.root;
  if (!plan::hasOtherRoot(policy) || root.starts_with('/')) return std::vector<std::string>();
  auto image = image::lookup(root);
  if (!image) return fail(image.error());
  std::vector<std::string> command = std::move(image->config.entrypoint);
  command.insert(command.end(), image->config.cmd.begin(), image->config.cmd.end());
  return command;
}

}  // namespace caisson::host
