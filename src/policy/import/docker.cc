#include "policy/import/builder.h"
#include "policy/units.h"

namespace caisson::policy {

namespace {

using NoteKind = ImportNote::Kind;

/// What decides where names are resolved, and through which server all requests go.
void setRoute(ImportBuilder& in, const std::string& key, const char* ours, const ImportBuilder::Texts& servers) {
  if (std::string_view(ours) == "network.upstream_proxy") {
    in.set(key, ours, servers.front());
  } else {
    in.setList(key, ours, servers);
  }
  for (const std::string& server : servers) in.widen(key, ours, server + " learns which hosts are used");
}

}  // namespace

void importDocker(ImportBuilder& in) {
  in.lossy("sandbox.image", "images are chosen with filesystem.root; the host's system is used");
  if (const auto seconds = in.reader().seconds("sandbox.timeout"))
    in.set("sandbox.timeout", "resources.wall_seconds", formatNumber(*seconds));
  in.takeMemory("sandbox.memory_limit");
  if (const auto cpus = in.reader().number("sandbox.cpu_limit"))
    in.set("sandbox.cpu_limit", "resources.cpus", formatNumber(*cpus));
  if (const auto runtime = in.reader().text("sandbox.runtime")) {
    in.note(NoteKind::lossy, "sandbox.runtime", "\"" + *runtime + "\" is not used: caisson's own isolation is");
  }
  if (const auto mode = in.reader().text("sandbox.network_mode")) {
    if (*mode == "bridge") {
      in.set("sandbox.network_mode", "network.mode", "proxy");
      in.setList("sandbox.network_mode", "network.allowed_hosts", {"*"});
      constexpr std::string_view kBridge =
          "\"bridge\" becomes \"proxy\" to any public host; private addresses stay blocked";
      in.widen("sandbox.network_mode", "network.mode", std::string(kBridge));
      in.markReported("sandbox.network_mode", "network.allowed_hosts");
    } else if (*mode == "host") {
      in.note(NoteKind::unsafe, "sandbox.network_mode", "\"host\": the network of the host needs an owner's approval");
    } else {
      in.set("sandbox.network_mode", "network.mode", *mode);
    }
  }
  if (const ImportBuilder::Texts servers = in.reader().texts("sandbox.dns_servers"); !servers.empty())
    setRoute(in, "sandbox.dns_servers", "network.dns_servers", servers);
  if (const auto proxy = in.reader().text("sandbox.http_proxy"))
    setRoute(in, "sandbox.http_proxy", "network.upstream_proxy", {*proxy});
  if (const auto access = in.reader().text("sandbox.workspace_access")) {
    if (*access == "rw")
      in.widen("sandbox.workspace_access", "filesystem.workspace.mode", "the workspace is changed directly");
    in.set("sandbox.workspace_access", "filesystem.workspace.mode", *access);
  }
}

}  // namespace caisson::policy
