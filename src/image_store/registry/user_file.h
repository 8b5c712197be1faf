// Reads a file of the user's own configuration, links followed.
#pragma once

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <string>

#include "base/error.h"
#include "sys/root_dir.h"

namespace caisson::image {

/// ENOENT if the file does not exist; an error if it is larger than `max_bytes`.
inline Result<std::string> readUserFile(const std::filesystem::path& path, std::uint64_t max_bytes) {
  std::error_code problem;
  const std::filesystem::path real = std::filesystem::canonical(path, problem);
  if (problem) return fail(sysError(Stage::usage, "open", path.string(), problem.value()));
  const auto directory = sys::RootDir::open(real.parent_path().string());
  return directory ? directory->readFile(real.filename().string(), max_bytes) : fail(directory.error());
}

}  // namespace caisson::image
