// The `caisson-server` program: `caisson serve` and `caisson token` start it with their own command line, argv[0] being
// the path of caisson. A separate program, since the server and its libraries are larger than all a launch needs.
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <ctime>

#include "base/json_document.h"
#include "base/time_text.h"
#include "cli/commands/serve_options.h"
#include "cli/output.h"
#include "cli/program_main.h"
#include "cli/self/version.h"
#include "policy/units.h"
#include "server/serve.h"
#include "service/terminal.h"
#include "service/tokens.h"
#include "supervise/disk/caches.h"
#include "sys/helper_process.h"

namespace caisson::cli {
namespace {

int serveHttp(const Arguments& arguments) {
  server::ServeOptions options{.program = sys::kOwnProgram, .version = std::string(programVersion())};
  if (const auto file = arguments.value(kServeConfig)) {
    auto settings = service::loadSettings(std::string(*file));
    if (!settings) return printError(settings.error());
    options.settings = *std::move(settings);
  }
  bool listens = false;
  for (const Given& given : arguments.given) {
    const std::string value(given.value);
    if (given.option->name == kServeListen.name) {
      if (!listens) options.settings.listen.clear();  // the command line replaces the file's list
      listens = true;
      options.settings.listen.push_back(value);
    }
    if (given.option->name == kServeSocket.name) options.settings.socket = value;
    if (given.option->name == kServeCert.name) options.settings.tls_cert = value;
    if (given.option->name == kServeKey.name) options.settings.tls_key = value;
    if (given.option->name == kServeWorkspace.name) options.settings.allow_workspaces.push_back(value);
  }
  options.readable = !arguments.has(kServeJson) && ::isatty(STDERR_FILENO) == 1;
  const auto served = server::serve(std::move(options));
  return served ? 0 : printError(served.error());
}

Result<double> positive(std::string_view text, std::string_view option) {
  double number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem == std::errc() && end == text.data() + text.size() && number > 0) return number;
  return std::unexpected(usageError(option, "expected a number above 0", "caisson token create --help"));
}

Result<std::uint64_t> bytesFrom(std::string_view text, std::string_view option) {
  const auto bytes = policy::parseSize(text);
  if (bytes) return *bytes;
  return std::unexpected(usageError(option, bytes.error()));
}

Result<service::Token> readToken(const Arguments& arguments) {
  service::Token token{.name = std::string(arguments.operands.front())};
  for (const Given& given : arguments.given) {
    const std::string_view option = given.option->name;
    Result<double> number = 0;
    Result<std::uint64_t> bytes = 0;
    if (option == kTokenScopes.name) {
      const auto scopes = service::parseScopes(given.value);
      if (!scopes) return std::unexpected(scopes.error());
      token.scopes = *scopes;
    }
    if (option == kTokenExpires.name) {
      const auto seconds = policy::parseSeconds(given.value);
      if (!seconds) return std::unexpected(usageError("--expires", seconds.error()));
      token.expireAt(service::Instant::now().after(static_cast<std::int64_t>(*seconds)));
    }
    if (option == kTokenSandboxes.name && (number = positive(given.value, "--sandboxes")))
      token.quotas.sandboxes = static_cast<std::uint64_t>(*number);
    if (option == kTokenCpus.name && (number = positive(given.value, "--cpus"))) token.quotas.cpus = *number;
    if (option == kTokenRate.name && (number = positive(given.value, "--rate"))) token.quotas.rate = *number;
    if (option == kTokenMemory.name && (bytes = bytesFrom(given.value, "--memory"))) token.quotas.memory = *bytes;
    if (option == kTokenDisk.name && (bytes = bytesFrom(given.value, "--disk"))) token.quotas.disk = *bytes;
    if (!number) return std::unexpected(number.error());
    if (!bytes) return std::unexpected(bytes.error());
  }
  return token;
}

Json describeToken(const service::Token& token) {
  Json value{{"id", token.id},
             {"name", token.name},
             {"scopes", service::scopeNames(token.scopes)},
             {"created", token.created},
             {"expires", token.expires}};
  if (token.quotas.sandboxes) value["sandboxes"] = *token.quotas.sandboxes;
  if (token.quotas.cpus) value["cpus"] = *token.quotas.cpus;
  if (token.quotas.memory) value["memory"] = *token.quotas.memory;
  if (token.quotas.disk) value["disk"] = *token.quotas.disk;
  if (token.quotas.rate) value["rate"] = *token.quotas.rate;
  return value;
}

/// "sandboxes 3, memory 1 GiB"
std::string quotasText(const service::Quotas& quotas) {
  std::string text;
  const auto add = [&](const char* name, const std::string& value) {
    text += (text.empty() ? "" : ", ") + std::string(name) + " " + value;
  };
  if (quotas.sandboxes) add("sandboxes", std::to_string(*quotas.sandboxes));
  if (quotas.cpus) add("cpus", policy::formatNumber(*quotas.cpus));
  if (quotas.memory) add("memory", policy::formatSize(*quotas.memory));
  if (quotas.disk) add("disk", policy::formatSize(*quotas.disk));
  if (quotas.rate) add("rate", policy::formatNumber(*quotas.rate) + "/s");
  return text.empty() ? "no quotas" : text;
}

std::string expiryText(const service::Token& token) {
  if (token.expires == 0) return "never expires";
  return (token.hasExpired(service::Instant::now()) ? "expired " : "expires ") + utcText(token.expires);
}

void printLine(const std::string& text) { static_cast<void>(print(text + "\n")); }

int createToken(const Arguments& arguments) {
  auto token = readToken(arguments);
  if (!token) return printError(token.error());
  auto store = service::TokenStore::open();
  if (!store) return printError(store.error());
  const auto secret = store->create(*token, service::Instant::now());
  if (!secret) return printError(secret.error());
  printLine(arguments.has(kTokenJson) ? writeJson({{"name", token->name}, {"token", *secret}}) : *secret);
  return 0;
}

int listTokens(const Arguments& arguments) {
  auto store = service::TokenStore::open();
  if (!store) return printError(store.error());
  const auto tokens = store->list();
  if (!tokens) return printError(tokens.error());
  Json list = Json::array();
  for (const service::Token& token : *tokens) {
    list.push_back(describeToken(token));
    if (arguments.has(kTokenJson)) continue;
    printLine(token.id + "  " + token.name + "  " + service::scopeNames(token.scopes) + "  " +
              quotasText(token.quotas) + "  " + expiryText(token));
  }
  if (arguments.has(kTokenJson)) printLine(writeJson(list));
  return 0;
}

int revokeTokens(const Arguments& arguments) {
  auto store = service::TokenStore::open();
  if (!store) return printError(store.error());
  int status = 0;
  for (const auto& name : arguments.operands) {
    const auto revoked = store->revoke(name);
    if (!revoked) return printError(revoked.error());
    if (!*revoked) {
      status = printError(usageError(name, "there is no such token", "caisson token list"));
    } else if (const auto removed = supervise::removeCachesOf(service::useOfToken(**revoked) + "-"); !removed) {
      status = printError(removed.error());
    }
  }
  return status;
}

int perform(std::span<char* const> line) {
  struct Entry {
    const Verb& verb;
    int (*perform)(const Arguments&);
  };
  const Entry entries[] = {
      {kServe, serveHttp}, {kTokenCreate, createToken}, {kTokenList, listTokens}, {kTokenRevoke, revokeTokens}};
  if (line.size() == 2 && line[1] == service::kTerminalWord) return service::terminalMain();
  for (const Entry& entry : entries) {
    const std::size_t space = entry.verb.path.find(' ');
    const std::size_t count = space == std::string_view::npos ? 1 : 2;
    if (line.size() < 1 + count || line[1] != entry.verb.path.substr(0, space)) continue;
    if (count == 2 && line[2] != entry.verb.path.substr(space + 1)) continue;
    const auto arguments = parse(entry.verb.syntax, line.subspan(1 + count));
    return arguments ? entry.perform(*arguments) : printError(arguments.error());
  }
  return printError(usageError("caisson-server", "start it with `caisson serve`"));
}

}  // namespace
}  // namespace caisson::cli

int main(int count, char** args) { caisson::cli::programMain(count, args, caisson::cli::perform); }
