// Settings of srt (sandbox-runtime): lists of domains, of paths that may not be read, and of paths that may be written.
// There the whole file system can be read unless a path is denied; here only what is named is visible.
#include <algorithm>

#include "policy/decode/syntax.h"
#include "policy/import/builder.h"

namespace caisson::policy {

namespace {

using SrtNote = ImportNote::Kind;

bool isTemporary(const std::string& path) {
  return isWithin(path, "/tmp") || isWithin(path, "/private/tmp") || isWithin(path, "/var/tmp");
}

/// A path of the settings, resolved: in the workspace or on the host.
struct SrtPath {
  bool in_workspace = false;
  std::string path;  ///< of the host, or below the workspace ("" for itself)
};

SrtPath resolveSrtPath(const std::string& text) {
  const std::string expanded = expandHome(text).value_or(text);
  if (expanded.starts_with('/')) return {false, normalPath(expanded)};
  std::string_view rest = expanded;
  while (rest.starts_with("./")) rest.remove_prefix(2);
  while (rest.ends_with('/')) rest.remove_suffix(1);
  return {true, rest == "." ? "" : std::string(rest)};
}

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
      any_host_ = true;
    }
  }

  void denyDomains(std::string_view key, const ImportBuilder::Texts& denied) {
    for (const std::string& host : denied) in_.append(key, "network.denied_hosts", host);
  }

  void allowWrite(std::string_view key, const ImportBuilder::Texts& paths) {
    for (const std::string& text : paths) {
      const SrtPath path = resolveSrtPath(text);
      if (text.find('*') != std::string::npos) {
        in_.note(SrtNote::lossy, key, text + ": patterns are not taken over");
      } else if (path.in_workspace && path.path.empty()) {
        writes_workspace_ = true;
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
      const SrtPath path = resolveSrtPath(text);
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
      const SrtPath path = resolveSrtPath(text);
      if (path.in_workspace) {
        if (!writes_workspace_) continue;
        if (findFlaw(Syntax::protected_pattern, path.path)) {
          in_.note(SrtNote::unsafe, key,
                   text + " cannot be kept read-only in a writable workspace: it becomes an overlay");
          overlay_instead_ = true;
        } else {
          in_.append(key, "filesystem.workspace.protected_files", path.path);
        }
        continue;
      }
      denyWriteOnHost(key, text, path.path);
    }
  }

  void denyRead(std::string_view key, const ImportBuilder::Texts& paths) {
    for (const std::string& text : paths) {
      const SrtPath path = resolveSrtPath(text);
      if (path.in_workspace && path.path.empty()) {
        in_.note(SrtNote::unsafe, key,
                 text + ": the workspace cannot be hidden; filesystem.workspace.mode is \"none\"");
        hides_workspace_ = true;
      } else if (path.in_workspace) {
        in_.append(key, "filesystem.denied", "/workspace/" + path.path);
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
    if (any_host_) {
      in_.set(key, "network.mode", "proxy");
      in_.note(SrtNote::widening, "network.allowedDomains", "network access through the egress filter by default");
      in_.note(SrtNote::lossy, "network.allowedDomains",
               "a domain without a port is reached on ports 80 and 443; network.allowed_ports names others");
    }
    for (const std::string& path : written_) {
      in_.append(key, "filesystem.read_write", path);
      in_.note(SrtNote::widening, "filesystem.allowWrite", path + " is changed directly");
    }
    if (hides_workspace_) return in_.set(key, "filesystem.workspace.mode", "none");
    if (writes_workspace_ && !overlay_instead_) {
      in_.set(key, "filesystem.workspace.mode", "rw");
      in_.note(SrtNote::widening, "filesystem.allowWrite", "the workspace is changed directly");
    }
    if (!writes_workspace_) in_.set(key, "filesystem.workspace.mode", "ro");
  }

 private:
  void show(std::string_view key, const std::string& text, const std::string& path, bool writable) {
    const ShownPath judged = judgeShownPath(path, writable);
    if (!judged.why_not.empty()) return in_.note(SrtNote::unsafe, key, text + ": " + std::string(judged.why_not));
    if (writable && !judged.only_readable) return written_.push_back(path);
    if (judged.only_readable)
      in_.note(SrtNote::unsafe, key, text + " is not writable: programs of the host use what is in it");
    in_.append(key, "filesystem.read_only", path);
    in_.note(SrtNote::widening, key, text + " is shown, read-only");
  }

  /// Makes every writable path that contains `path`, or lies in it, read-only: a directory is writable as a whole or
  /// not at all.
  void denyWriteOnHost(std::string_view key, const std::string& text, const std::string& path) {
    std::erase_if(written_, [&](const std::string& written) {
      if (!isWithin(path, written) && !isWithin(written, path)) return false;
      in_.note(SrtNote::unsafe, key, written + " is not writable, because " + text + " may not be written");
      in_.append(key, "filesystem.read_only", written);
      return true;
    });
    if (writes_workspace_)
      in_.note(SrtNote::lossy, key, text + ": a path in the workspace is kept read-only if it is given relative to it");
  }

  ImportBuilder& in_;
  std::vector<std::string> written_;
  bool any_host_ = false, writes_workspace_ = false, hides_workspace_ = false, overlay_instead_ = false;
};

void refuseWhenTrue(ImportBuilder& in, std::string_view key, std::string text) {
  if (in.reader().boolean(key).value_or(false)) in.note(SrtNote::unsafe, key, std::move(text));
}

/// Rules of older settings: "WebFetch(domain:example.org)", "Edit(src)", "Read(~/.ssh)".
struct SrtRules {
  ImportBuilder::Texts domains, reads, writes;
};

SrtRules takeRules(ImportBuilder& in, std::string_view key) {
  SrtRules rules;
  for (const std::string& rule : in.reader().texts(key)) {
    const std::size_t open = rule.find('(');
    const std::string tool = rule.substr(0, open);
    std::string argument =
        open != std::string::npos && rule.ends_with(')') ? rule.substr(open + 1, rule.size() - open - 2) : "";
    while (argument.ends_with('*') || (argument.size() > 1 && argument.ends_with('/'))) argument.pop_back();
    if (tool == "WebFetch" && argument.starts_with("domain:")) {
      rules.domains.push_back(argument.substr(7));
    } else if ((tool == "Edit" || tool == "Write") && !argument.empty()) {
      rules.writes.push_back(argument);
    } else if (tool == "Read" && !argument.empty()) {
      rules.reads.push_back(argument);
    } else {
      in.note(SrtNote::lossy, key, rule + " has no counterpart here");
    }
  }
  return rules;
}

}  // namespace

void importSrt(ImportBuilder& in) {
  SrtImport srt(in);
  ImportReader& reader = in.reader();
  const SrtRules allowed = takeRules(in, "permissions.allow");
  const SrtRules denied = takeRules(in, "permissions.deny");
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
    in.note(SrtNote::widening, "network.parentProxy.http", *proxy + " learns which hosts are used");
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
