#include "policy/rules/network_client.h"

#include <algorithm>
#include <string_view>

namespace caisson::policy {
namespace {

using ClientWords = std::vector<std::string>;

struct ClientRow {
  std::string_view program;
  std::string_view subcommands;  ///< " a b c "; empty: every use
  std::string_view preset;       ///< the hosts it needs if its arguments name none
};

constexpr ClientRow kClients[] = {
    {"curl", "", ""},
    {"wget", "", ""},
    {"ssh", "", ""},
    {"scp", "", ""},
    {"sftp", "", ""},
    {"ftp", "", ""},
    {"telnet", "", ""},
    {"nc", "", ""},
    {"ncat", "", ""},
    {"git", " clone fetch pull push ls-remote ", "preset:git"},
    {"npm", " install i ci update publish ", "preset:npm"},
    {"pnpm", " install i add update publish ", "preset:npm"},
    {"yarn", " add install upgrade ", "preset:npm"},
    {"pip", " install download ", "preset:pip"},
    {"pip3", " install download ", "preset:pip"},
    {"uv", " sync add pip ", "preset:pip"},
    {"cargo", " install fetch update publish add ", "preset:cargo"},
    {"go", " get install ", "preset:go"},
    {"gem", " install update ", "preset:rubygems"},
    {"apt", " install update upgrade ", "preset:debian"},
    {"apt-get", " install update upgrade ", "preset:debian"},
};

std::string_view baseName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool isCommandShell(std::string_view program) {
  return program == "sh" || program == "bash" || program == "dash" || program == "zsh";
}

/// The words of the first simple command of a script. Quotes are dropped, not interpreted: this is a guess.
ClientWords firstCommand(std::string_view script) {
  ClientWords words;
  std::string word;
  const auto end = [&] {
    if (!word.empty()) words.push_back(std::move(word));
    word.clear();
  };
  for (const char letter : script) {
    if (std::string_view("|&;<>()\n").find(letter) != std::string_view::npos && !words.empty()) break;
    if (letter == ' ' || letter == '\t' || letter == '\n') {
      end();
    } else if (letter != '\'' && letter != '"') {
      word += letter;
    }
  }
  end();
  // Drop NAME=value before the program.
  while (!words.empty() && words.front().find('=') != std::string::npos && words.front().find('/') == std::string::npos)
    words.erase(words.begin());
  return words;
}

bool isHostLetter(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') || letter == '.' || letter == '-';
}

/// Whether a hint may name this host. Addresses, names of the local network and metadata services stay blocked in any
/// case.
bool isPublicName(std::string_view host) {
  const std::size_t dot = host.rfind('.');
  if (dot == std::string_view::npos || host.size() > 253 || host == "metadata.goog") return false;
  const std::string_view top = host.substr(dot + 1);
  if (top == "local" || top == "internal" || top == "localhost") return false;
  return std::ranges::all_of(host, isHostLetter) &&
         std::ranges::any_of(top, [](char letter) { return letter >= 'a' && letter <= 'z'; });
}

/// The host in `scheme://[user@]host[:port]/...`, lower case; "" if there is none that could be a policy's entry.
std::string hostOf(std::string_view word) {
  const std::size_t scheme = word.find("://");
  if (scheme == std::string_view::npos) return {};
  std::string_view rest = word.substr(scheme + 3);
  rest = rest.substr(0, rest.find_first_of("/?#"));
  if (const std::size_t user = rest.rfind('@'); user != std::string_view::npos) rest.remove_prefix(user + 1);
  std::string host(rest.substr(0, rest.find(':')));
  std::ranges::transform(host, host.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return isPublicName(host) ? host : std::string();
}

/// The first argument that does not begin with a dash.
std::string_view subcommandOf(const ClientWords& words) {
  const auto found = std::find_if(words.begin() + 1, words.end(),
                                  [](const std::string& word) { return !word.empty() && word.front() != '-'; });
  return found == words.end() ? std::string_view() : std::string_view(*found);
}

}  // namespace

std::optional<NetworkClient> networkClient(std::span<const std::string> argv) {
  ClientWords words(argv.begin(), argv.end());
  if (words.size() >= 3 && isCommandShell(baseName(words[0])) && words[1] == "-c") words = firstCommand(words[2]);
  if (words.empty()) return std::nullopt;
  const std::string_view program = baseName(words[0]);
  const auto* client = std::ranges::find(kClients, program, &ClientRow::program);
  if (client == std::end(kClients)) return std::nullopt;
  NetworkClient found{.sign = std::string(program), .hosts = {}};
  if (client->subcommands.empty()) {
    // `curl --version` needs nothing.
    if (subcommandOf(words).empty()) return std::nullopt;
  } else {
    const std::string subcommand(subcommandOf(words));
    if (subcommand.empty() || client->subcommands.find(" " + subcommand + " ") == std::string_view::npos)
      return std::nullopt;
    found.sign += " " + subcommand;
  }
  bool has_url = false;
  for (const std::string& word : words) {
    has_url = has_url || word.find("://") != std::string::npos;
    std::string host = hostOf(word);
    if (!host.empty() && std::ranges::find(found.hosts, host) == found.hosts.end() && found.hosts.size() < 4)
      found.hosts.push_back(std::move(host));
  }
  if (found.hosts.empty() && has_url) return std::nullopt;  // a file, or an address that stays blocked
  if (found.hosts.empty() && !client->preset.empty()) found.hosts.emplace_back(client->preset);
  return found;
}

std::string describeNetworkNeed(const NetworkClient& client, std::string_view session) {
  std::string text = "`" + client.sign + "` uses the network, and this sandbox has none; allow it with ";
  if (!session.empty()) {
    const std::string host = client.hosts.empty() ? "HOST" : client.hosts.front();
    return text.append("`caisson session network ").append(session).append(" allow ").append(host).append("`");
  }
  text += "--net proxy";
  for (const std::string& host : client.hosts) text += " --allow-host " + host;
  return text;
}

void openNetwork(Network& network, std::vector<std::string> private_hosts) {
  Network opened;
  opened.mode = NetworkMode::proxy;
  opened.private_hosts = std::move(private_hosts);
  opened.denied_hosts = std::move(network.denied_hosts);
  opened.denied_ports = std::move(network.denied_ports);
  opened.exposed_ports = std::move(network.exposed_ports);
  opened.host_ports = std::move(network.host_ports);
  opened.published_ports = std::move(network.published_ports);
  opened.dns_servers = std::move(network.dns_servers);
  opened.upstream_proxy = std::move(network.upstream_proxy);
  opened.max_connections = network.max_connections;
  opened.max_bytes = network.max_bytes;
  opened.idle_seconds = network.idle_seconds;
  opened.dns_queries_per_minute = network.dns_queries_per_minute;
  network = std::move(opened);
}

}  // namespace caisson::policy
