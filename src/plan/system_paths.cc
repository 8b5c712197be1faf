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

}  // namespace

std::span<const SystemPath> etcPaths() { return kEtc; }

}  // namespace caisson::plan
