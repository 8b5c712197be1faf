#include "policy/import/shown_path.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <vector>

#include "policy/decode/syntax.h"
#include "policy/rules/name_pattern.h"
#include "policy/rules/secret_files.h"

namespace caisson::policy {

namespace {

/// A directory and, if a link is in its path, its real place. Empty for "".
std::vector<std::string> bothNames(const std::string& directory) {
  if (directory.empty()) return {};
  const std::string place = realPlace(directory);
  return place == directory ? std::vector{directory} : std::vector{directory, place};
}

/// This user's home, that of root, and the directory of the others, each by both names.
struct Homes {
  std::vector<std::string> own = bothNames(expandHome("~").value_or("")), root = bothNames("/root"),
                           others = bothNames("/home");
};

/// The home directory that a path is or lies in: this user's, or one at the usual place. "" if none.
std::string homeAround(const Homes& homes, const std::string& path) {
  for (const std::string& own : homes.own)
    if (isWithin(path, own)) return own;
  for (const std::string& root : homes.root)
    if (isWithin(path, root)) return root;
  for (const std::string& top : homes.others)
    if (path.starts_with(top + "/")) return path.substr(0, path.find('/', top.size() + 1));
  return "";
}

/// Whether a path is a home, or leads to one.
bool holdsHomes(const Homes& homes, const std::string& path) {
  const auto isBelow = [&](const std::string& directory) { return isWithin(directory, path); };
  return path == homeAround(homes, path) || std::ranges::any_of(homes.others, isBelow) ||
         std::ranges::any_of(homes.own, isBelow);
}

/// Whether a path is, by its name, a socket of the host, or a directory where programs of the host keep theirs.
bool holdsSockets(const std::string& path) {
  for (const char* top : {"/run", "/var/run", "/tmp/.X11-unix", "/tmp/.ICE-unix"})
    if (isWithin(path, top)) return true;
  for (const char* whole : {"/tmp", "/var", "/var/lib", "/var/tmp"})
    if (path == whole) return true;
  return path.ends_with(".sock") || path.ends_with(".socket") || path.find("/tmp/ssh-") == 0;
}

/// Whether a path is by its name a secret directory or a secret of a home, or leads to one; `home` is that around it,
/// or "".
bool holdsSecrets(const std::string& path, const std::string& home) {
  if (isInSecretDirectory(path)) return true;
  static const std::vector<std::string> of_any_home = [] {
    std::vector<std::string> parts;
    for (const SecretPattern& secret : homeSecrets())
      if (secret.pattern.starts_with('.')) parts.push_back("/" + std::string(secret.pattern) + "/");
    return parts;
  }();
  const std::string ended = path + "/";
  if (std::ranges::any_of(of_any_home, [&](const auto& part) { return ended.find(part) != std::string::npos; }))
    return true;
  return !home.empty() && std::ranges::any_of(homeSecrets(), [&](const SecretPattern& secret) {
    return isWithin(home + "/" + std::string(secret.pattern), path);
  });
}

ShownPath judgePlace(const Homes& homes, const std::string& name, bool writable) {
  const std::string home = homeAround(homes, name);
  if (name == "/") return {.why_not = "it is the whole host"};
  if (holdsHomes(homes, name)) return {.why_not = "it holds a home directory"};
  if (holdsSockets(name)) return {.why_not = "sockets of the host are never handed in"};
  if (findFlaw(Syntax::shown_path, name)) return {.why_not = "it cannot be shown in a sandbox"};
  if (holdsSecrets(name, home)) return {.why_not = "it usually holds keys or passwords"};
  if (!writable || home.empty()) return {};
  const std::string_view rest = std::string_view(name).substr(home == "/" ? 1 : home.size() + 1);
  return {.only_readable = rest.starts_with('.') || isWithin(name, home + "/bin")};
}

}  // namespace

ShownPath judgeShownPath(const std::string& path, bool writable) {
  const Homes homes;
  const std::string name = normalPath(path);
  ShownPath judged = judgePlace(homes, name, writable);
  const std::string place = realPlace(name, &judged.links);
  if (place == name) return judged;
  judged.leads_to = place;
  const ShownPath there = judgePlace(homes, place, writable);
  if (judged.why_not.empty() && !there.why_not.empty()) judged.why_not = "it leads to " + place + ": " + there.why_not;
  judged.only_readable = judged.only_readable || there.only_readable;
  return judged;
}

std::string withPlace(const std::string& text, const ShownPath& judged) {
  return judged.leads_to.empty() ? text : text + " (leads to " + judged.leads_to + ")";
}

std::string pathToShow(const std::string& path, const ShownPath& judged, const std::string& workspace) {
  const bool changeable = !workspace.empty() && std::ranges::any_of(judged.links, [&](const std::string& link) {
    return isWithin(link, workspace);
  });
  return changeable && !judged.leads_to.empty() ? judged.leads_to : path;
}

std::string realPlace(const std::string& path, std::vector<std::string>* links) {
  constexpr int kMaxLinks = 40;               // as in the kernel, which opens no path with more
  constexpr std::size_t kLongestPath = 4096;  // nor a longer one
  if (path.size() >= kLongestPath) return normalPath(path);
  std::vector<std::string> rest;  // the next part is the last
  const auto put = [&](std::string_view text) {
    const std::vector<std::string_view> parts = splitParts(text, '/');
    for (auto part = parts.rbegin(); part != parts.rend(); ++part)
      if (!part->empty() && *part != ".") rest.emplace_back(*part);
  };
  put(path);
  std::string place;
  // Nothing in a directory that does not exist or cannot be read is a link that can be found: a look at each name would
  // take time in the square of the length.
  std::size_t known = std::string::npos;  // the length of the place up to which that is not so
  for (int followed = 0; !rest.empty();) {
    const std::string part = std::move(rest.back());
    rest.pop_back();
    if (part == "..") {
      place.resize(place.empty() ? 0 : place.rfind('/'));
      if (place.size() <= known) known = std::string::npos;
      continue;
    }
    const std::string next = place + "/" + part;
    // Links can lead deeper than a path can name, and from there to anywhere.
    if (next.size() >= kLongestPath) return "/";
    if (known != std::string::npos) {
      place = next;
      continue;
    }
    std::error_code none;
    const std::string target = std::filesystem::read_symlink(next, none).string();
    if (none || target.empty()) {
      if (none && none != std::errc::invalid_argument) known = place.size();
      place = next;
      continue;
    }
    if (++followed > kMaxLinks) return normalPath(path);
    if (links != nullptr) links->push_back(next);
    if (target.starts_with('/')) place.clear();
    put(target);
  }
  return place.empty() ? "/" : place;
}

}  // namespace caisson::policy
