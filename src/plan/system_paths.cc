#include "plan/system_paths.h"

namespace caisson::plan {
namespace {

constexpr SystemPath kEtc[] = {
    {"/etc/ld.so.cache"},     {"/etc/ld.so.conf"},     {"/etc/ld.so.conf.d"}, {"/etc/alternatives"},
    {"/etc/ssl/certs"},       {"/etc/ssl/openssl.cnf"}, {"/etc/ca-certificates"}, {"/etc/pki/tls/certs"},
    {"/etc/protocols"},       {"/etc/services"},       {"/etc/mime.types"},   {"/etc/magic"},
    {"/etc/inputrc"},         {"/etc/bash.bashrc"},    {"/etc/profile"},      {"/etc/shells"},
    {"/etc/terminfo"},        {"/etc/fonts"},          {"/etc/debian_version"}, {"/etc/perl"},
    {"/etc/python3"},         {"/etc/vim"},            {"/etc/java-17-openjdk"}, {"/etc/java-21-openjdk"},
    {"/etc/nodejs"},          {"/etc/gdb"},          {"/etc/locale.alias"},
};

}  // namespace

std::span<const SystemPath> etcPaths() { return kEtc; }

}  // namespace caisson::plan
