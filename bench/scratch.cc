#include "scratch.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

namespace bench {

bool writeFile(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  return !file.fail();
}

std::expected<Scratch, std::string> Scratch::make() {
  const char* base = std::getenv("TMPDIR");
  std::string pattern = std::string(base != nullptr && *base != 0 ? base : "/tmp") + "/caisson-bench.XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) return std::unexpected("mkdtemp(" + pattern + "): " + std::strerror(errno));
  Scratch scratch(pattern);
  std::error_code error;
  for (const char* name : {"workspace", "home", "state"}) std::filesystem::create_directory(scratch.path(name), error);
  if (error || !writeFile(scratch.path("workspace/one.txt"), "one\n") ||
      !writeFile(scratch.path("workspace/two.txt"), "two\n")) {
    return std::unexpected("cannot write below " + pattern);
  }
  return scratch;
}

Scratch::Scratch(Scratch&& other) noexcept : root_(std::exchange(other.root_, {})) {}

// remove_all does not follow links; payloads get this tree read-only or behind an overlay, so they cannot plant any.
Scratch::~Scratch() {
  std::error_code error;
  if (!root_.empty()) std::filesystem::remove_all(root_, error);
}

}  // namespace bench
