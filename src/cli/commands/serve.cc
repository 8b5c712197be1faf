// `caisson serve` and `caisson token`: the program caisson-server does the work; this file has their syntax.
#include "cli/commands/serve_options.h"
#include "cli/companion.h"
#include "cli/output.h"

namespace caisson::cli {
namespace {

constexpr Option kServeOptions[] = {kServeListen,    kServeSocket, kServeCert, kServeKey,
                                    kServeWorkspace, kServeConfig, kServeJson};
constexpr OptionGroup kServeGroups[] = {{"Options", kServeOptions}};
constexpr Option kCreateOptions[] = {kTokenScopes, kTokenExpires, kTokenJson};
constexpr Option kQuotaOptions[] = {kTokenSandboxes, kTokenCpus, kTokenMemory, kTokenDisk, kTokenRate};
constexpr OptionGroup kCreateGroups[] = {{"Options", kCreateOptions}, {"Quotas", kQuotaOptions}};
constexpr Option kListOptions[] = {kTokenJson};
constexpr OptionGroup kListGroups[] = {{"Options", kListOptions}};
constexpr const Verb* kTokenVerbs[] = {&kTokenCreate, &kTokenList, &kTokenRevoke};
constexpr std::string_view kServer = "caisson-server";

int serve(const Arguments& arguments) { return becomeCompanion(kServer, kServe, arguments); }

int createToken(const Arguments& arguments) {
  if (arguments.operands.size() != 1)
    return printError(usageError("token create", "expected one NAME", "caisson token create ci"));
  return becomeCompanion(kServer, kTokenCreate, arguments);
}

int listTokens(const Arguments& arguments) { return becomeCompanion(kServer, kTokenList, arguments); }

int revokeToken(const Arguments& arguments) {
  if (arguments.operands.empty())
    return printError(usageError("token revoke", "expected a name or id", "caisson token list"));
  return becomeCompanion(kServer, kTokenRevoke, arguments);
}

}  // namespace

constinit const Verb kServe{
    .path = "serve",
    .summary = "Serve sandboxes over HTTP",
    .description =
        "Serves the HTTP API (docs/http-api.md): on a unix socket, where the same user is the owner, and on "
        "127.0.0.1:7080 for clients with a token (caisson token create). Sandboxes outlive the server: the next one "
        "continues with them.\n\n"
        "By default a token gets sandboxes with an empty workspace, full isolation and no network.",
    .examples =
        "caisson serve  on the unix socket and on 127.0.0.1:7080\n"
        "caisson serve --listen none  on the unix socket only\n"
        "caisson serve --allow-workspace ~/src  and tokens may work on copies of ~/src",
    .topic = Topic::agents,
    .syntax = {.groups = kServeGroups},
    .perform = serve,
};

constinit const Verb kTokenCreate{
    .path = "token create",
    .summary = "Create a token and print it; it is shown only once",
    .description =
        "Clients send it as `Authorization: Bearer TOKEN`. Only its hash is stored. Quotas count all sandboxes of the "
        "token together; a request above one is refused.",
    .examples = "caisson token create ci --sandboxes 4 --memory 4G --expires 30d  for a build server",
    .topic = Topic::agents,
    .syntax = {.groups = kCreateGroups, .operands = "NAME"},
    .perform = createToken,
};

constinit const Verb kTokenList{
    .path = "token list",
    .summary = "List tokens with their scopes, quotas and expiry",
    .topic = Topic::agents,
    .syntax = {.groups = kListGroups},
    .perform = listTokens,
};

constinit const Verb kTokenRevoke{
    .path = "token revoke",
    .summary = "Revoke tokens by name or id, at once, and remove their caches",
    .topic = Topic::agents,
    .syntax = {.operands = "TOKEN..."},
    .perform = revokeToken,
};

constinit const Verb kToken{
    .path = "token",
    .summary = "Manage the tokens of HTTP clients",
    .topic = Topic::agents,
    .verbs = kTokenVerbs,
};

}  // namespace caisson::cli
