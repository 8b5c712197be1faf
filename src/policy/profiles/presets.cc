#include "policy/profiles/presets.h"

namespace caisson::policy {
namespace {

constexpr std::string_view kNpm[] = {".npmjs.org", ".npmjs.com", ".yarnpkg.com"};
constexpr std::string_view kPip[] = {".pypi.org", ".pypi.python.org", ".pythonhosted.org"};
constexpr std::string_view kCargo[] = {".crates.io", ".rust-lang.org"};
constexpr std::string_view kGo[] = {".golang.org", ".go.dev"};
constexpr std::string_view kGit[] = {".github.com", ".githubusercontent.com", ".gitlab.com", ".bitbucket.org",
                                     ".codeberg.org"};
constexpr std::string_view kRubygems[] = {".rubygems.org"};
constexpr std::string_view kCdn[] = {".jsdelivr.net", ".unpkg.com", ".cloudflare.com"};
constexpr std::string_view kDebian[] = {".debian.org", ".debian.net"};
constexpr std::string_view kUbuntu[] = {".ubuntu.com", ".launchpad.net"};

constexpr Preset kPresets[] = {
    {"npm", 1, "packages for Node.js", kNpm},
    {"pip", 1, "packages for Python", kPip},
    {"cargo", 1, "crates for Rust, and its toolchain", kCargo},
    {"go", 1, "modules for Go", kGo},
    {"git", 1, "public git hosting", kGit},
    {"rubygems", 1, "packages for Ruby", kRubygems},
    {"cdn", 1, "content delivery networks for web libraries: jsDelivr, unpkg, Cloudflare", kCdn},
    {"debian", 1, "Debian packages", kDebian},
    {"ubuntu", 1, "Ubuntu packages", kUbuntu},
};

}  // namespace

std::span<const Preset> presets() { return kPresets; }

const Preset* findPreset(std::string_view entry) {
  if (!entry.starts_with(kPresetPrefix)) return nullptr;
  entry.remove_prefix(kPresetPrefix.size());
  for (const Preset& preset : kPresets) {
    if (preset.name == entry) return &preset;
  }
  return nullptr;
}

std::vector<std::string> expandPresets(const std::vector<std::string>& entries) {
  std::vector<std::string> expanded;
  for (const std::string& entry : entries) {
    if (const Preset* preset = findPreset(entry)) {
      for (const std::string_view pattern : preset->patterns) expanded.emplace_back(pattern);
    } else {
      expanded.push_back(entry);
    }
  }
  return expanded;
}

}  // namespace caisson::policy
