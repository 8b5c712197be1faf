#include "plan/system_paths.h"

namespace caisson::plan {
namespace {

constexpr SystemPath kEtc[] = {
    {"/etc/ld.so.cache", SourceType::file},        // without it every program start searches its libraries
    {"/etc/alternatives", SourceType::directory},  // links only; half of /usr/bin points here
    {"/etc/ssl/certs", SourceType::directory},
    {"/etc/ssl/openssl.cnf", SourceType::file},
    {"/etc/pki/tls/certs", SourceType::directory},
    {"/etc/protocols", SourceType::file},
    {"/etc/services", SourceType::file},
    {"/etc/mime.types", SourceType::file},
    {"/etc/fonts", SourceType::directory},
    {"/etc/perl", SourceType::directory},
    {"/etc/maven/m2.conf", SourceType::file},
    {"/etc/maven/logging", SourceType::directory},
    {"/etc/java-17-openjdk", SourceType::directory},
    {"/etc/java-21-openjdk", SourceType::directory},
};

/// Absent elsewhere. Programs look them up and expect that they can be read if they exist.
constexpr std::string_view kHostEtc[] = {
    "/etc/alpine-release", "/etc/arch-release", "/etc/bash.bashrc",    "/etc/debian_version", "/etc/fedora-release",
    "/etc/gai.conf",       "/etc/group",        "/etc/host.conf",      "/etc/inputrc",        "/etc/localtime",
    "/etc/lsb-release",    "/etc/magic",        "/etc/netconfig",      "/etc/nsswitch.conf",  "/etc/os-release",
    "/etc/passwd",         "/etc/profile",      "/etc/python3",        "/etc/python3.11",     "/etc/python3.12",
    "/etc/python3.13",     "/etc/rpc",          "/etc/redhat-release", "/etc/shells",         "/etc/SuSE-release",
    "/etc/system-release", "/etc/timezone",     "/etc/xattr.conf",
};

}  // namespace

std::span<const std::string_view> hostEtcPaths() { return kHostEtc; }
std::span<const SystemPath> etcPaths() { return kEtc; }

}  // namespace caisson::plan
