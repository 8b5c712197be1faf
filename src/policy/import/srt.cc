// Settings of srt (sandbox-runtime): lists of domains, of paths that may not be read, and of paths that may be written.
// There the whole file system can be read unless a path is denied; here only what is named is visible.
#include <algorithm>
#include <filesystem>
#include <map>

#include "policy/decode/syntax.h"
#include "policy/import/builder.h"
#include "policy/import/permission_rules.h"
#include "policy/import/shown_path.h"
#include "policy/rules/denied_names.h"

namespace caisson::policy {

namespace {

using SrtNote = ImportNote::Kind;

bool isTemporary(const std::string& path) {
  return isWithin(path, "/tmp") || isWithin(path, "/private/tmp") || isWithin(path, "/var/tmp");
}

/// A path of the settings, resolved: in the workspace or on the host.
struct SrtPath {
  bool in_workspace = false;
  bool all_below = false;  ///< named as all that is in a directory: "conf/", "conf/*", "conf/**"
  std::string path;        ///< of the host, or below the workspace ("" for itself)
};

SrtPath resolveSrtPath(const std::string& text, const std::string& workspace) {
  const std::string expanded = expandHome(text).value_or(text);
  std::string plain = withoutAllBelow(expanded);
  const bool all_below = plain != expanded;
  if (!plain.starts_with('/') && !workspace.empty()) plain = workspace + "/" + plain;
  if (plain.starts_with('/')) {
    std::string path =
        normalPath(hasWildcards(plain) ? plain : std::filesystem::path(plain).lexically_normal().string());
    if (workspace.empty()) return {false, all_below, path};
    if (!isWithin(path, workspace)) {
      const std::string place = realPlace(path);
      if (!isWithin(place, workspace)) return {false, all_below, path};
      path = place;
    }
    return {true, all_below, path == workspace ? "" : path.substr(workspace == "/" ? 1 : workspace.size() + 1)};
  }
  std::string_view rest = plain;
  while (rest.starts_with("./")) rest.remove_prefix(2);
  return {true, all_below, rest == "." ? "" : std::string(rest)};
}

/// A path that may not be written as patterns of protected files, which match at every depth; none if it has no such.
/// One for a file and one for a directory, unless it names all that is in a directory.
ImportBuilder::Texts protectedPatterns(const SrtPath& path) {
  constexpr std::string_view kAnywhere = "**/";
  std::string pattern = path.path;
  while (pattern.starts_with(kAnywhere)) pattern.erase(0, kAnywhere.size());
  const bool other_wildcards = pattern.find_first_of("?[{\\") != std::string::npos;
  if (other_wildcards || ("/" + pattern).find("/**") != std::string::npos) return {};
  if (findFlaw(Syntax::protected_pattern, pattern)) return {};
  return path.all_below ? ImportBuilder::Texts{pattern + "/"} : ImportBuilder::Texts{pattern, pattern + "/"};
}

/// A path or pattern of the host that is denied.
struct Denial {
  std::string path, text, key;
};

/// The time that a path or a pattern takes for each one that it is compared with: its length, and what each costs.
std::uint64_t stepsFor(const std::string& path) { return path.size() + 32; }

class Denials {
 public:
  /// Denies the path by its name, and the place where it leads now.
  void add(const Denial& denial) {
    const std::string name = normalPath(denial.path), place = realPlace(name);
    addName({name, denial.text, denial.key});
    if (place != name) addName({place, denial.text, denial.key});
  }

  /// A denial of this path, of one above it or of one in it; null if there is none. Links in the path are followed.
  [[nodiscard]] const Denial* findFor(const std::string& path) const {
    const Denial* found = findForName(path);
    if (found != nullptr) return found;
    const std::string place = realPlace(path);
    return place == path ? nullptr : findForName(place);
  }

  /// The steps of all patterns, with each of which findFor() compares a path.
  [[nodiscard]] std::uint64_t steps() const { return steps_; }

 private:
  void addName(Denial denial) {
    if (hasWildcards(denial.path)) {
      steps_ += stepsFor(denial.path);
      DeniedEntry entry(denial.path);
      return patterns_.push_back({std::move(entry), std::move(denial)});
    }
    std::string path = denial.path;
    paths_.try_emplace(std::move(path), std::move(denial));
  }

  [[nodiscard]] const Denial* findForName(const std::string& path) const {
    const std::string inside = path == "/" ? path : path + "/";
    if (const auto next = paths_.lower_bound(inside); next != paths_.end() && next->first.starts_with(inside))
      return &next->second;
    for (std::size_t end = path.size(); end != 0 && end != std::string::npos; end = path.rfind('/', end - 1)) {
      const auto found = paths_.find(path.substr(0, end));
      if (found != paths_.end()) return &found->second;
    }
    if (const auto root = paths_.find("/"); root != paths_.end()) return &root->second;
    const auto meant = std::ranges::find_if(patterns_, [&](const Pattern& one) { return concerns(one.entry, path); });
    return meant == patterns_.end() ? nullptr : &meant->denial;
  }

  struct Pattern {
    DeniedEntry entry;
    Denial denial;
  };
  std::map<std::string, Denial> paths_;  ///< by the normal path
  std::vector<Pattern> patterns_;
  std::uint64_t steps_ = 0;
};

class SrtImport {
 public:
  explicit SrtImport(ImportBuilder& in) : in_(in) {}

  void domains(std::string_view key, const ImportBuilder::Texts& allowed) {
    for (const std::string& host : allowed) {
      if (host == "localhost" || host.starts_with("localhost:") || host.starts_with("127.") ||
          host.starts_with("[::1]")) {
        in_.note(SrtNote::unsafe, key, host + " would open the whole loopback; network.host_ports names single ports");
        continue;
      }
      in_.append(key, "network.allowed_hosts", host);
      if (hosts_key_.empty()) hosts_key_ = key;
    }
  }

  void denyDomains(std::string_view key, const ImportBuilder::Texts& denied) {
    for (const std::string& host : denied) in_.append(key, "network.denied_hosts", host);
  }

  void allowWrite(std::string_view key, const ImportBuilder::Texts& paths) {
    for (const std::string& text : paths) {
      const SrtPath path = resolveSrtPath(text, in_.workspace());
      if (text.find('*') != std::string::npos) {
        in_.note(SrtNote::lossy, key, text + ": patterns are not taken over");
      } else if (path.in_workspace && path.path.empty()) {
        writes_workspace_ = key;
      } else if (path.in_workspace) {
        in_.note(SrtNote::lossy, key, text + ": the workspace is writable as a whole or not at all");
      } else if (isTemporary(path.path)) {
        in_.note(SrtNote::lossy, key, text + " is a private directory here, not the host's");
      } else {
        show(key, text, path.path, true);
      }
    }
  }

  void allowRead(std::string_view key, const ImportBuilder::Texts& paths) {
    for (const std::string& text : paths) {
      const SrtPath path = resolveSrtPath(text, in_.workspace());
      if (path.in_workspace) continue;  // it can be read in any case
      if (text.find('*') != std::string::npos) {
        in_.note(SrtNote::lossy, key, text + ": patterns are not taken over");
      } else {
        show(key, text, path.path, false);
      }
    }
  }

  /// Call after allowWrite(): a denied path wins over an allowed one.
  void denyWrite(std::string_view key, const ImportBuilder::Texts& paths) {
    for (const std::string& text : paths) {
      if (refusesLength(key, text)) return;
      const SrtPath path = resolveSrtPath(text, in_.workspace());
      if (!path.in_workspace) {
        denyWriteOnHost(key, text, path.path);
        const WorkspacePart part = partByEachName(path.path);
        if (part.whole) denyWriteInWorkspace(key, text, {.in_workspace = true, .all_below = true, .path = ""});
        for (const std::string& below : part.below) denyWriteInWorkspace(key, text, {true, path.all_below, below});
        continue;
      }
      if (!in_.workspace().empty()) denyWriteOnHost(key, text, in_.workspace() + "/" + path.path);
      denyWriteInWorkspace(key, text, path);
    }
  }

  /// Call after allowRead().
  void denyRead(std::string_view key, const ImportBuilder::Texts& paths) {
    for (const std::string& text : paths) {
      if (refusesLength(key, text)) return;
      const SrtPath path = resolveSrtPath(text, in_.workspace());
      if (text.find('{') != std::string::npos)
        in_.note(SrtNote::unsafe, key, text + ": braces are part of the name, and list no names");
      if (path.in_workspace && path.path.empty()) {
        hideWorkspace(key, text);
      } else if (path.in_workspace) {
        denyReadInWorkspace(key, text, path.path);
      } else if (hasWildcards(path.path)) {
        denyReadOfPattern(key, text, path.path);
      } else if (isWithin(expandHome("~").value_or("/"), path.path)) {
        in_.note(SrtNote::lossy, key, text + " is not shown here in any case, except for the workspace");
      } else {
        in_.append(key, "filesystem.denied", path.path);
      }
    }
  }

  void finish(std::string_view key) {
    in_.note(SrtNote::lossy, "filesystem",
             "the rest of the host's files cannot be read here; filesystem.read_only names what is needed");
    if (!hosts_key_.empty()) {
      in_.set(hosts_key_, "network.mode", "proxy");
      in_.widen(hosts_key_, "network.mode", "network access through the egress filter by default");
      in_.note(SrtNote::lossy, "network.allowedDomains",
               "a domain without a port is reached on ports 80 and 443; network.allowed_ports names others");
    }
    showPaths();
    if (hides_workspace_) return in_.set(key, "filesystem.workspace.mode", "none");
    if (!writes_workspace_.empty() && !overlay_instead_) {
      in_.set(writes_workspace_, "filesystem.workspace.mode", "rw");
      in_.widen(writes_workspace_, "filesystem.workspace.mode", "the workspace is changed directly");
    }
    if (writes_workspace_.empty()) in_.set(key, "filesystem.workspace.mode", "ro");
  }

 private:
  /// A path of the host that is to be shown, unless a denial concerns it.
  struct Shown {
    std::string path, text, key;
    bool writable = false;
  };

  void show(std::string_view key, const std::string& text, const std::string& path, bool writable) {
    const ShownPath judged = judgeShownPath(path, writable);
    if (!judged.why_not.empty()) return in_.note(SrtNote::unsafe, key, text + ": " + judged.why_not);
    if (writable && judged.only_readable)
      in_.note(SrtNote::unsafe, key, text + " is not writable: programs of the host use what is in it");
    const bool changed = writable && !judged.only_readable;
    shown_.push_back({pathToShow(path, judged, in_.workspace()), withPlace(changed ? path : text, judged),
                      std::string(key), changed});
  }

  bool refusesLength(std::string_view key, const std::string& text) {
    if (!isLongerThanAPath(text)) return false;
    in_.refuse(key, "a path is longer than 4095 bytes");
    return true;
  }

  /// Each path is compared with each denied pattern. A document for which that takes seconds is refused, for none of
  /// its patterns may be ignored.
  bool refusesComparisons() {
    constexpr std::uint64_t kMost = std::uint64_t{1} << 30;
    std::uint64_t steps = 0;
    for (const Shown& one : shown_) steps += stepsFor(one.path);
    if (steps * (unreadable_.steps() + unwritable_.steps()) <= kMost) return false;
    in_.refuse(shown_.front().key, "too many paths to compare with the patterns that are denied",
               "name directories that hold the paths, or fewer patterns");
    return true;
  }

  /// What a path or pattern of the host means in the workspace, by its name and by the place where links in it lead.
  [[nodiscard]] WorkspacePart partByEachName(const std::string& path) const {
    WorkspacePart part = partOfWorkspace(path, in_.workspace());
    const std::string place = realPlace(path);
    if (place == path) return part;
    const WorkspacePart there = partOfWorkspace(place, in_.workspace());
    part.whole = part.whole || there.whole;
    for (const std::string& below : there.below)
      if (std::ranges::find(part.below, below) == part.below.end()) part.below.push_back(below);
    return part;
  }

  void denyWriteOnHost(std::string_view key, const std::string& text, const std::string& path) {
    unwritable_.add({path, text, std::string(key)});
    if (!writes_workspace_.empty() && in_.workspace().empty() && !isWithin(path, "/workspace"))
      in_.note(SrtNote::lossy, key, text + ": a path in the workspace is kept read-only if it is given relative to it");
  }

  /// A writable path that contains one that may not be written, or lies in it, is shown read-only: a directory is
  /// writable as a whole or not at all. One that a denied pattern concerns is not shown.
  void showPaths() {
    if (refusesComparisons()) return;
    std::vector<Shown> changed;
    const auto showReadOnly = [&](const Shown& one) {
      in_.append(one.key, "filesystem.read_only", one.path);
      in_.widen(one.key, "filesystem.read_only", one.text + " is shown, read-only");
    };
    for (const Shown& one : shown_) {
      if (const Denial* denial = unreadable_.findFor(one.path)) {
        in_.note(SrtNote::unsafe, denial->key,
                 one.path + " is not shown, because " + denial->text + " may not be read");
        continue;
      }
      const Denial* denial = one.writable ? unwritable_.findFor(one.path) : nullptr;
      if (denial != nullptr) {
        in_.note(SrtNote::unsafe, denial->key,
                 one.path + " is not writable, because " + denial->text + " may not be written");
        changed.push_back({one.path, one.text, denial->key, false});
      } else if (one.writable) {
        in_.append(one.key, "filesystem.read_write", one.path);
        in_.widen(one.key, "filesystem.read_write", one.text + " is changed directly");
      } else {
        showReadOnly(one);
      }
    }
    for (const Shown& one : changed) showReadOnly(one);
  }

  void denyWriteInWorkspace(std::string_view key, const std::string& text, const SrtPath& path) {
    if (writes_workspace_.empty()) return;
    const ImportBuilder::Texts patterns = protectedPatterns(path);
    if (patterns.empty())
      return useOverlay(key, text + " cannot be kept read-only in a writable workspace: it becomes an overlay");
    for (const std::string& pattern : patterns) in_.append(key, "filesystem.workspace.protected_files", pattern);
  }

  void denyReadInWorkspace(std::string_view key, const std::string& text, const std::string& path) {
    in_.append(key, "filesystem.denied", "/workspace/" + path);
    if (hasWildcards(path) && !writes_workspace_.empty())
      useOverlay(key, text + ": a pattern cannot be hidden in a writable workspace: it becomes an overlay");
  }

  /// A pattern of the host: what it means in the workspace is denied, and no path that it concerns is shown.
  void denyReadOfPattern(std::string_view key, const std::string& text, const std::string& path) {
    const WorkspacePart part = partByEachName(path);
    if (part.whole) hideWorkspace(key, text);
    for (const std::string& below : part.below) denyReadInWorkspace(key, text, below);
    in_.note(SrtNote::unsafe, key,
             text + ": patterns outside the workspace are not taken over; name the files, or filesystem.denied");
    unreadable_.add({path, text, std::string(key)});
  }

  void hideWorkspace(std::string_view key, const std::string& text) {
    in_.note(SrtNote::unsafe, key, text + ": the workspace cannot be hidden; filesystem.workspace.mode is \"none\"");
    hides_workspace_ = true;
  }

  void useOverlay(std::string_view key, const std::string& why) {
    in_.note(SrtNote::unsafe, key, why);
    overlay_instead_ = true;
  }

  ImportBuilder& in_;
  std::vector<Shown> shown_;
  Denials unwritable_, unreadable_;
  std::string hosts_key_, writes_workspace_;  ///< the key that allows a host, or to write; or ""
  bool hides_workspace_ = false, overlay_instead_ = false;
};

void refuseWhenTrue(ImportBuilder& in, std::string_view key, std::string text) {
  if (in.reader().boolean(key).value_or(false)) in.note(SrtNote::unsafe, key, std::move(text));
}

}  // namespace

void importSrt(ImportBuilder& in) {
  SrtImport srt(in);
  ImportReader& reader = in.reader();
  const PermissionRules allowed = takePermissionRules(in, "permissions.allow", false);
  const PermissionRules denied = takePermissionRules(in, "permissions.deny", true);
  srt.domains("permissions.allow", allowed.domains);
  srt.denyDomains("permissions.deny", denied.domains);
  srt.domains("network.allowedDomains", reader.texts("network.allowedDomains"));
  srt.denyDomains("network.deniedDomains", reader.texts("network.deniedDomains"));
  srt.allowWrite("permissions.allow", allowed.writes);
  srt.allowWrite("filesystem.allowWrite", reader.texts("filesystem.allowWrite"));
  srt.allowRead("permissions.allow", allowed.reads);
  srt.allowRead("filesystem.allowRead", reader.texts("filesystem.allowRead"));
  srt.denyWrite("permissions.deny", denied.writes);
  srt.denyWrite("filesystem.denyWrite", reader.texts("filesystem.denyWrite"));
  srt.denyRead("permissions.deny", denied.reads);
  srt.denyRead("filesystem.denyRead", reader.texts("filesystem.denyRead"));
  srt.finish("filesystem");

  refuseWhenTrue(in, "filesystem.disabled", "the file system stays isolated");
  refuseWhenTrue(in, "filesystem.allowGitConfig", "git configurations can name programs for the host to run");
  refuseWhenTrue(in, "network.allowAllUnixSockets", "sockets of the host are never handed in");
  refuseWhenTrue(in, "enableWeakerNestedSandbox", "a weaker sandbox is chosen by name: isolation.tier, --allow-weaker");
  refuseWhenTrue(in, "enableWeakerNetworkIsolation", "the network stays isolated");
  if (!reader.texts("network.allowUnixSockets").empty())
    in.note(SrtNote::unsafe, "network.allowUnixSockets", "sockets of the host are never handed in");
  if (const auto proxy = reader.text("network.parentProxy.http")) {
    in.set("network.parentProxy.http", "network.upstream_proxy",
           proxy->ends_with('/') ? proxy->substr(0, proxy->size() - 1) : *proxy);
    in.widen("network.parentProxy.http", "network.upstream_proxy", *proxy + " learns which hosts are used");
  }
  for (const char* key : {"network.parentProxy.https", "network.parentProxy.noProxy"})
    in.lossy(key, "all traffic goes through network.upstream_proxy");
  in.lossy("network.allowLocalBinding", "always possible here: the loopback is the sandbox's own");
  in.lossy("network.strictAllowlist", "always so without a terminal");
  in.lossy("credentials", "network.credentials adds secrets outside the sandbox; the environment is always clean");
  for (const char* key : {"network.httpProxyPort", "network.socksProxyPort", "network.mitmProxy",
                          "network.tlsTerminate", "network.deniedDomainReasons"})
    in.lossy(key, "caisson's own egress filter is used");
  for (const char* key : {"ignoreViolations", "ripgrep", "mandatoryDenySearchDepth", "seccomp", "bwrapPath",
                          "socatPath", "javaAgentJarPath", "git", "allowPty", "$schema"})
    in.lossy(key, "has no counterpart, and none is needed");
  for (const char* key : {"network.allowMachLookup", "allowAppleEvents", "windows"})
    in.lossy(key, "for another operating system");
}

}  // namespace caisson::policy
