// devcontainer.json: what a development container gets. The image, the editor's settings and the set-up commands have
// no counterpart; what would open the host (privileges, sockets, the host's network) is refused.
#include <algorithm>
#include <set>

#include "policy/decode/syntax.h"
#include "policy/import/builder.h"
#include "policy/import/mount.h"
#include "policy/import/shown_path.h"
#include "policy/units.h"

namespace caisson::policy {

namespace {

using DevNote = ImportNote::Kind;

constexpr std::string_view kNoImage = "images are chosen with filesystem.root; the host's system is used";

/// Replaces `${localEnv:HOME}` at the start by ~ and drops `${localEnv:USERPROFILE}` right after it. Nothing if a
/// variable remains.
std::optional<std::string> withoutVariables(std::string text) {
  constexpr std::string_view kHome = "${localEnv:HOME}", kWindowsHome = "${localEnv:USERPROFILE}";
  if (text.starts_with(kHome)) {
    text.replace(0, kHome.size(), "~");
    if (text.substr(1).starts_with(kWindowsHome)) text.erase(1, kWindowsHome.size());
  }
  if (text.find("${") != std::string::npos) return std::nullopt;
  return text;
}

void takeMount(ImportBuilder& in, std::string_view key, const ParsedMount& parsed) {
  if (!parsed) return in.refuse(key, parsed.error(), "remove it; nothing is dropped in silence");
  const ContainerMount& mount = *parsed;
  for (const std::string& option : mount.ignored)
    in.note(DevNote::lossy, key, mount.source + ": \"" + option + "\" is not taken over");
  if (mount.type != "bind" && mount.type != "")
    return in.note(DevNote::lossy, key, mount.type + " " + mount.source + " is not taken over");
  if (mount.source.find("docker.sock") != std::string::npos || mount.source.find("podman.sock") != std::string::npos)
    return in.note(DevNote::unsafe, key, mount.source + ": the engine's socket is control over the host");
  if (mount.source.starts_with("${localWorkspaceFolder}"))
    return in.note(DevNote::lossy, key, mount.source + " is in the workspace");
  const auto named = withoutVariables(mount.source);
  const auto path = named ? expandHome(*named) : std::unexpected(Flaw{});
  if (!path || !path->starts_with('/'))
    return in.note(DevNote::lossy, key, mount.source + ": a path with this variable cannot be resolved here");
  const ShownPath judged = judgeShownPath(*path, !mount.read_only);
  if (!judged.why_not.empty()) return in.note(DevNote::unsafe, key, mount.source + ": " + judged.why_not);
  if (judged.only_readable)
    in.note(DevNote::unsafe, key, mount.source + " is shown read-only: programs of the host use what is in it");
  const bool read_only = mount.read_only || judged.only_readable;
  const std::string_view ours = read_only ? "filesystem.read_only" : "filesystem.read_write";
  in.append(key, ours, pathToShow(*path, judged, in.workspace()));
  in.widen(key, ours,
           withPlace(*path, judged) + (read_only ? " is shown, read-only" : " is shown and changed directly") +
               (mount.target.empty() || mount.target == *path ? "" : ", at its own path and not at " + mount.target));
}

void takeVariable(ImportBuilder& in, std::string_view key, const std::string& name, const std::string& value) {
  if (findFlaw(Syntax::variable, name)) {
    in.note(DevNote::lossy, key, "\"" + name + "\" is not the name of a variable");
  } else if (value == "${localEnv:" + name + "}") {
    in.append(key, "environment.pass", name);
    in.widen(key, "environment.pass", "your variable " + name + " is passed on");
  } else if (value.find("${") != std::string::npos) {
    in.note(DevNote::lossy, key, name + " refers to other variables");
  } else {
    in.append(key, "environment.set", name + "=" + value);
    // A variable gives no access by itself, but decides what programs do: LD_PRELOAD, HTTPS_PROXY.
    in.widen(key, "environment.set", "the variable " + name + " is set");
  }
}

void takeVariables(ImportBuilder& in, std::string_view key) {
  const Node* table = in.reader().take(key);
  if (table == nullptr) return;
  for (const auto& [name, value] : table->members) {
    if (value.type == Node::Type::text) {
      takeVariable(in, key, name, value.text);
    } else {
      in.note(DevNote::lossy, key, name + " is removed there; it does not exist here");
    }
  }
}

/// Collects the ports of the foreign `key` with those of others.
void takePorts(ImportBuilder& in, std::string_view key, std::vector<std::pair<std::string, std::string>>& ports) {
  const Node* node = in.reader().take(key);
  if (node == nullptr) return;
  std::vector<Node> one{*node};
  for (const Node& item : node->type == Node::Type::list ? node->items : one) {
    const std::string text = item.type == Node::Type::integer ? std::to_string(item.integer) : item.text;
    if (findFlaw(Syntax::port, text)) {
      in.note(DevNote::lossy, key, text + ": only ports of the sandbox itself can be exposed");
    } else {
      ports.emplace_back(key, text);
    }
  }
}

void takeAllPorts(ImportBuilder& in) {
  std::vector<std::pair<std::string, std::string>> ports;
  takePorts(in, "forwardPorts", ports);
  takePorts(in, "appPort", ports);
  if (!ports.empty()) in.setList(ports.front().first, "network.exposed_ports", {});
  std::set<std::string> known;
  for (const auto& [key, port] : ports)
    if (known.insert(port).second) in.append(key, "network.exposed_ports", port);
}

/// One option of `docker run` with its value, or "".
class RunArgument {
 public:
  RunArgument(ImportBuilder& in, std::string name, std::string value)
      : in_(in), name_(std::move(name)), value_(std::move(value)) {}

  void take() {
    if (givesPrivileges()) {
      in_.note(DevNote::unsafe, kKey, name_ + " " + value_ + ": no sandbox gets privileges or devices");
    } else if (name_ == "--security-opt" && weakensSecurity(value_)) {
      in_.note(DevNote::unsafe, kKey, value_ + ": the protection stays");
    } else if (name_ == "--network" || name_ == "--net") {
      if (value_ != "none")
        in_.note(DevNote::unsafe, kKey, "network " + value_ + ": name hosts and use the mode proxy");
    } else if (name_ == "--pid" || name_ == "--ipc" || name_ == "--uts" || name_ == "--userns" ||
               name_ == "--cgroupns") {
      if (value_ == "host" || value_.starts_with("container:"))
        in_.note(DevNote::unsafe, kKey, name_ + "=" + value_ + ": namespaces are never shared");
    } else if (name_ == "--user" || name_ == "-u") {
      in_.note(isRootUser(value_) ? DevNote::unsafe : DevNote::lossy, kKey, "user " + value_ + ": always sandbox here");
    } else if (name_ == "--memory" || name_ == "-m") {
      in_.set(kKey, "resources.memory", sizeText());
    } else if (name_ == "--cpus") {
      in_.set(kKey, "resources.cpus", value_);
    } else if (name_ == "--pids-limit") {
      in_.set(kKey, "process.max_processes", value_);
    } else if (name_ == "--volume" || name_ == "-v") {
      takeMount(in_, kKey, parseVolume(value_));
    } else if (name_ == "--mount") {
      takeMount(in_, kKey, parseMountOptions(value_));
    } else if ((name_ == "--env" || name_ == "-e") && value_.find('=') != std::string::npos) {
      const std::size_t equals = value_.find('=');
      takeVariable(in_, kKey, value_.substr(0, equals), value_.substr(equals + 1));
    } else {
      in_.note(DevNote::lossy, kKey, name_ + (value_.empty() ? "" : " " + value_) + " has no counterpart");
    }
  }

  static bool needsValue(const std::string& name) {
    constexpr std::array kSwitches = {"--privileged", "--init", "--rm", "-it", "-i", "-t", "-d", "--read-only"};
    return std::ranges::find(kSwitches, name) == kSwitches.end();
  }

 private:
  static constexpr std::string_view kKey = "runArgs";

  [[nodiscard]] bool givesPrivileges() const {
    constexpr std::array kOptions = {"--privileged", "--cap-add",         "--device",       "--device-cgroup-rule",
                                     "--gpus",       "--group-add",       "--volumes-from", "--cgroup-parent",
                                     "--sysctl",     "--oom-kill-disable"};
    return value_ != "false" && std::ranges::find(kOptions, name_) != kOptions.end();
  }

  /// The value in our notation: "2G" for "2g", "512M" for "512mb". All are binary multiples.
  [[nodiscard]] std::string sizeText() const {
    std::string text = value_;
    if (text.size() > 1 && (text.back() == 'b' || text.back() == 'B') && text[text.size() - 2] > '9') text.pop_back();
    for (char& letter : text) letter = letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 32) : letter;
    return text;
  }

  ImportBuilder& in_;
  std::string name_, value_;
};

void takeRunArguments(ImportBuilder& in) {
  const ImportBuilder::Texts words = in.reader().texts("runArgs");
  for (std::size_t at = 0; at < words.size(); ++at) {
    const std::size_t equals = words[at].starts_with("-") ? words[at].find('=') : std::string::npos;
    const std::string name = words[at].substr(0, equals);
    std::string value = equals == std::string::npos ? "" : words[at].substr(equals + 1);
    const bool next = equals == std::string::npos && RunArgument::needsValue(name) && at + 1 < words.size() &&
                      !words[at + 1].starts_with("-");
    if (next) value = words[++at];
    RunArgument(in, name, std::move(value)).take();
  }
}

void takeMounts(ImportBuilder& in) {
  const Node* list = in.reader().take("mounts");
  if (list == nullptr) return;
  if (list->type != Node::Type::list) return in.refuse("mounts", "expected a list");
  for (const Node& item : list->items) takeMount(in, "mounts", parseMountEntry(item));
}

}  // namespace

void importDevcontainer(ImportBuilder& in) {
  ImportReader& reader = in.reader();
  in.lossy("name", "the policy is called after its shape");
  for (const char* key : {"image", "dockerFile", "dockerfile", "context", "build", "dockerComposeFile", "service",
                          "runServices", "features", "overrideFeatureInstallOrder"})
    in.lossy(key, std::string(kNoImage));
  takeVariables(in, "containerEnv");
  takeVariables(in, "remoteEnv");
  takeMounts(in);
  takeAllPorts(in);
  takeRunArguments(in);
  if (reader.boolean("privileged").value_or(false))
    in.note(DevNote::unsafe, "privileged", "no sandbox gets privileges");
  if (!reader.texts("capAdd").empty()) in.note(DevNote::unsafe, "capAdd", "no sandbox gets capabilities");
  for (const std::string& option : reader.texts("securityOpt")) {
    const bool open = weakensSecurity(option);
    in.note(open ? DevNote::unsafe : DevNote::lossy, "securityOpt",
            option + (open ? ": the protection stays" : " is not taken over"));
  }
  in.lossy("workspaceMount", "the workspace is the current directory; its mode stays overlay");
  in.lossy("workspaceFolder", "the workspace is at /workspace");
  for (const char* key : {"remoteUser", "containerUser", "updateRemoteUserUID", "init"}) {
    const Node* value = reader.take(key);
    if (value == nullptr) continue;
    in.note(isRootUser(value->text) ? DevNote::unsafe : DevNote::lossy, key,
            "always so here: user sandbox, and a pid 1 that reaps");
  }
  if (reader.take("initializeCommand") != nullptr)
    in.note(DevNote::unsafe, "initializeCommand", "it runs on the host, outside of any sandbox");
  for (const char* key :
       {"onCreateCommand", "updateContentCommand", "postCreateCommand", "postStartCommand", "postAttachCommand"})
    in.lossy(key, "not run: start it with caisson run or caisson session exec");
  in.lossy("hostRequirements", "requirements of a machine are not limits of a sandbox");
  in.lossy("secrets", "network.credentials adds secrets outside the sandbox");
  for (const char* key : {"$schema", "customizations", "extensions", "settings", "portsAttributes", "devPort",
                          "otherPortsAttributes", "waitFor", "shutdownAction", "overrideCommand", "userEnvProbe"})
    in.lossy(key, "for editors and container engines");
  in.note(DevNote::lossy, "network", "a container reaches every host; here network.allowed_hosts names them");
}

std::string withoutComments(std::string_view json) {
  std::string text(json);
  bool quoted = false;
  std::size_t comma = std::string::npos;  // the last one that only blanks follow
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char letter = text[at];
    if (quoted) {
      if (letter == '\\') ++at;
      if (letter == '"') quoted = false;
      continue;
    }
    if (letter == '/' && at + 1 < text.size() && (text[at + 1] == '/' || text[at + 1] == '*')) {
      const bool line = text[at + 1] == '/';
      std::size_t end = line ? text.find('\n', at) : text.find("*/", at + 2);
      if (end == std::string::npos && !line) return text;  // never closed: the reader reports it
      end = line ? std::min(end, text.size()) : end + 2;
      for (; at < end; ++at) text[at] = text[at] == '\n' ? '\n' : ' ';
      --at;
      continue;
    }
    if ((letter == '}' || letter == ']') && comma != std::string::npos) text[comma] = ' ';
    if (letter == '"') quoted = true;
    const bool blank = letter == ' ' || letter == '\t' || letter == '\n' || letter == '\r';
    if (!blank) comma = letter == ',' ? at : std::string::npos;
  }
  return text;
}

}  // namespace caisson::policy
