#include "session/commit_reference.h"

#include <dirent.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace caisson::test {
namespace {

std::string attribute(const std::string& path, const char* name) {
  char value[512];
  const ssize_t size = ::lgetxattr(path.c_str(), name, value, sizeof(value));
  return size <= 0 ? "" : std::string(name) + "=" + std::string(value, static_cast<std::size_t>(size)) + ";";
}

void readBelow(const std::string& top, const std::string& below, Tree& tree) {
  DIR* const stream = ::opendir((top + "/" + below).c_str());
  if (stream == nullptr) return;
  while (const dirent* entry = ::readdir(stream)) {
    const std::string name = entry->d_name;
    if (name == "." || name == ".." || name.starts_with(".caisson-")) continue;
    const std::string path = below.empty() ? name : below + "/" + name, whole = top + "/" + path;
    struct stat status{};
    if (::lstat(whole.c_str(), &status) != 0) continue;
    Seen seen{.mode = status.st_mode & 07777U};
    if (S_ISLNK(status.st_mode)) {
      char target[512];
      const ssize_t size = ::readlink(whole.c_str(), target, sizeof(target));
      seen = {.type = 'l', .content = std::string(target, static_cast<std::size_t>(std::max<ssize_t>(size, 0)))};
    } else {
      seen.type = S_ISDIR(status.st_mode) ? 'd' : 'f';
      for (const char* one : {"user.note", "system.posix_acl_access", "system.posix_acl_default"}) {
        seen.rights += attribute(whole, one);
      }
    }
    if (seen.type == 'f') {
      std::ifstream file(whole, std::ios::binary);
      seen.content = std::string(std::istreambuf_iterator<char>(file), {});
      seen.modified_ns = status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec;
    }
    tree.emplace(path, seen);
    if (seen.type == 'd') readBelow(top, path, tree);
  }
  ::closedir(stream);
}

const Seen* find(const Tree& tree, const std::string& path) {
  const auto found = tree.find(path);
  return found == tree.end() ? nullptr : &found->second;
}

bool isSame(const Seen* one, const Seen* other) {
  return one == nullptr || other == nullptr ? one == other : one->isSame(*other);
}

std::string textOf(const Seen* seen) { return seen == nullptr ? "nothing" : seen->text(); }

std::set<std::string> pathsOf(const Tree& one, const Tree& other) {
  std::set<std::string> paths;
  for (const Tree* tree : {&one, &other}) {
    for (const auto& [path, object] : *tree) paths.insert(path);
  }
  return paths;
}

std::vector<std::string> directoriesAbove(const std::string& path) {
  std::vector<std::string> above;
  for (std::size_t at = path.find('/'); at != std::string::npos; at = path.find('/', at + 1)) {
    above.push_back(path.substr(0, at));
  }
  return above;
}

bool coveredBy(const std::set<std::string>& names, const std::string& path) {
  const auto above = directoriesAbove(path);
  return names.contains(path) || std::ranges::any_of(above, [&](const auto& one) { return names.contains(one); });
}

const ManifestEntry* entryOf(const CommitFacts& facts, const std::string& path) {
  const auto found = std::ranges::find(facts.shown, path, &ManifestEntry::path);
  return found == facts.shown.end() ? nullptr : &*found;
}

/// Whether the manifest names this change of a path, or a directory above that goes as a whole.
bool isShown(const std::string& path, const Tree& before, const Tree& after, const CommitFacts& facts) {
  if (entryOf(facts, path) != nullptr) return true;
  if (find(after, path) != nullptr) return false;
  return std::ranges::any_of(directoriesAbove(path), [&](const std::string& above) {
    const Seen *was = find(before, above), *is = find(after, above);
    return entryOf(facts, above) != nullptr && was != nullptr && was->type == 'd' && (is == nullptr || is->type != 'd');
  });
}

/// What is wrong with a new object, or empty.
std::string checkNew(const std::string& path, const Seen* old, const Seen& now, const CommitFacts& facts) {
  const Seen* const view = find(facts.view, path);
  if (view == nullptr || view->type != now.type || (now.type != 'd' && view->content != now.content)) {
    return path + " became " + now.text() + ", but the session has " + textOf(view);
  }
  const ManifestEntry* const entry = entryOf(facts, path);
  if (entry != nullptr && now.type == 'l' && entry->target != now.content) return path + ": another target was shown";
  if (entry != nullptr && now.type != 'l' && entry->mode != (now.mode & 0777U))
    return path + ": another mode was shown";
  if (now.type == 'l') return "";
  const bool same_type = old != nullptr && old->type == now.type;
  const mode_t had = same_type ? old->mode : 0;
  if ((now.mode & ~had & ~mode_t{0755}) != 0 && !(now.type == 'd' && (now.mode & ~had & ~mode_t{02755}) == 0)) {
    return path + " got a mode that no commit gives: " + now.text();
  }
  const mode_t access = now.type == 'd' ? 077 : 066 | (011 & ~((had & 044) >> 2));
  if (same_type && !facts.named.contains(path) && (now.mode & ~had & access) != 0) {
    return path + " was " + old->text() + " and gives others access now: " + now.text();
  }
  if (same_type && old->rights != now.rights) return path + " lost its access list or attributes: " + old->text();
  return "";
}

}  // namespace

std::string Seen::text() const {
  std::ostringstream text;
  text << type << std::oct << mode << " " << rights << " " << content;
  return text.str();
}

Tree readTree(const std::string& top) {
  Tree tree;
  readBelow(top, "", tree);
  return tree;
}

std::string differences(const Tree& expected, const Tree& found, bool times) {
  std::string text;
  for (const std::string& path : pathsOf(expected, found)) {
    const Seen *one = find(expected, path), *other = find(found, path);
    const bool other_time =
        times && one != nullptr && other != nullptr && one->type == 'f' && one->modified_ns != other->modified_ns;
    if (isSame(one, other) && !other_time) continue;
    text += path + ": expected " + textOf(one) + ", found " + textOf(other) + (other_time ? " with another time" : "") +
            "\n";
  }
  return text;
}

Knowledge::Knowledge(const Tree& begun) {
  for (const auto& [path, object] : begun) {
    if (path != ".env" && !path.ends_with("/.env")) add(path, object);
  }
}

bool Knowledge::covers(const std::string& path, const Seen& object) const {
  const auto found = known_.find(path);
  return found != known_.end() && found->second.contains(object.text());
}

std::string checkCommit(const Tree& before, const Tree& after, const Knowledge& knowledge, const CommitFacts& facts) {
  for (const std::string& path : pathsOf(before, after)) {
    const Seen *old = find(before, path), *now = find(after, path);
    if (isSame(old, now)) continue;
    if (!isShown(path, before, after, facts)) return path + " was changed and not shown: it was " + textOf(old);
    if (old != nullptr && !coveredBy(facts.theirs, path) && !knowledge.covers(path, *old)) {
      return path + " was " + old->text() + ", which the session did not see, and became " + textOf(now);
    }
    if (now == nullptr) continue;
    if (std::string why = checkNew(path, old, *now, facts); !why.empty()) return why;
  }
  return "";
}

std::string checkAllOrNothing(const Tree& before, const Tree& after, const CommitFacts& facts) {
  if (differences(before, after).empty()) return "";
  for (const ManifestEntry& entry : facts.shown) {
    const Seen *view = find(facts.view, entry.path), *now = find(after, entry.path);
    const bool done = entry.kind == ChangeKind::deleted
                          ? now == nullptr
                          : now != nullptr && view != nullptr && now->type == view->type &&
                                (now->type == 'd' || now->content == view->content);
    if (!done) return entry.path + " is not done, but others are: " + textOf(now);
  }
  return "";
}

std::string checkOldOrNew(const Tree& before, const Tree& between, const Tree& after) {
  for (const std::string& path : pathsOf(before, between)) {
    const Seen* const now = find(between, path);
    if (isSame(now, find(before, path)) || isSame(now, find(after, path))) continue;
    // A directory is made first and gets its permissions then.
    if (now != nullptr && now->type == 'd' && find(after, path) != nullptr && find(after, path)->type == 'd') continue;
    return path + " is neither old nor new: " + textOf(now);
  }
  return "";
}

std::set<std::string> unseenContents(const Tree& tree, const Knowledge& knowledge) {
  std::set<std::string> contents;
  for (const auto& [path, object] : tree) {
    if (object.type != 'd' && !knowledge.covers(path, object)) contents.insert(object.content);
  }
  return contents;
}

std::string checkContents(const std::set<std::string>& contents, const Tree& after) {
  std::set<std::string> left;
  for (const auto& [path, object] : after) left.insert(object.content);
  for (const std::string& content : contents) {
    if (!left.contains(content)) return "lost, and the session did not see it: " + content;
  }
  return "";
}

std::string checkUncommit(const Tree& begun, const Tree& left, const Tree& before, const Tree& after) {
  for (const std::string& path : pathsOf(before, after)) {
    const Seen *old = find(before, path), *now = find(after, path);
    if (isSame(old, now)) continue;
    if (!isSame(old, find(left, path)))
      return path + " was changed since the commit: " + textOf(old) + ", is " + textOf(now);
    if (!isSame(now, find(begun, path)))
      return path + " became " + textOf(now) + ", but was " + textOf(find(begun, path));
  }
  return "";
}

}  // namespace caisson::test
