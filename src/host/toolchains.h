// Finds toolchains in the caller's home (`filesystem.toolchains = "auto"`): Node by nvm or fnm, Rust by rustup, Python
// by pyenv or uv, Java by SDKMAN, Go, and tools of asdf and mise.
//
// Only what the caller's PATH names, and of that only the subdirectories that hold programs and libraries: the
// directories above them hold credentials (~/.cargo/credentials.toml, a prefix's etc/npmrc). Where tools and their
// users put credentials into those subdirectories themselves, they are found and hidden.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"

namespace caisson::host {

/// `homes`: canonical; `environment`: the caller's, of which PATH and the version managers' variables are read. Reads
/// directories and the version managers' settings; runs nothing.
std::vector<plan::Toolchain> findToolchains(const std::vector<std::string>& homes,
                                            const std::map<std::string, std::string>& environment);

}  // namespace caisson::host
