// The options of `caisson serve` and `caisson token`, which `caisson` parses and `caisson-server` carries out.
#pragma once

#include "cli/options.h"
#include "cli/verb.h"

namespace caisson::cli {

inline constexpr Option kServeListen{
    .name = "listen",
    .value = "ADDR",
    .help =
        "Listen at PORT, HOST:PORT or [HOST]:PORT (default 127.0.0.1:7080); none: only on the unix socket. Addresses "
        "other than loopback need TLS.",
    .repeatable = true};
inline constexpr Option kServeSocket{.name = "socket",
                                     .value = "PATH",
                                     .help =
                                         "The unix socket (default: server/socket in CAISSON_HOME); none: no socket. "
                                         "Its clients of the same user are the "
                                         "owner and need no token."};
inline constexpr Option kServeCert{.name = "tls-cert", .value = "FILE", .help = "Certificate chain in PEM form."};
inline constexpr Option kServeKey{.name = "tls-key", .value = "FILE", .help = "Its private key in PEM form."};
inline constexpr Option kServeWorkspace{
    .name = "allow-workspace",
    .value = "DIR",
    .help =
        "A host directory that tokens may start sandboxes from. Changes reach it only by a commit that the owner "
        "approved.",
    .repeatable = true};
inline constexpr Option kServeConfig{
    .name = "config", .value = "FILE", .help = "Templates, pools, webhooks and the above, in TOML (docs/http-api.md)."};

inline constexpr Option kServeJson{
    .name = "json", .help = "Print messages as JSON lines on a terminal, too; elsewhere they always are."};

inline constexpr Option kTokenScopes{.name = "scopes",
                                     .value = "LIST",
                                     .help =
                                         "read (view only), exec (create and use sandboxes), admin (those of all "
                                         "tokens, and the server's figures), separated by commas (default read,exec)."};
inline constexpr Option kTokenExpires{
    .name = "expires", .value = "DUR", .help = "Lifetime, for example 12h or 30d (default: until revoked)."};
inline constexpr Option kTokenSandboxes{.name = "sandboxes", .value = "N", .help = "Number of sandboxes at a time."};
inline constexpr Option kTokenCpus{.name = "cpus", .value = "N", .help = "CPUs of all its sandboxes together."};
inline constexpr Option kTokenMemory{
    .name = "memory", .value = "SIZE", .help = "Memory of all its sandboxes together."};
inline constexpr Option kTokenDisk{
    .name = "disk", .value = "SIZE", .help = "Disk space of all its sandboxes together."};
inline constexpr Option kTokenRate{.name = "rate", .value = "N", .help = "Number of requests per second."};
inline constexpr Option kTokenJson{.name = "json", .help = "Print JSON."};

extern const Verb kServe, kToken, kTokenCreate, kTokenList, kTokenRevoke;

}  // namespace caisson::cli
