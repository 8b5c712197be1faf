#include "plan/toolchains.h"

#include "plan/executables.h"

namespace caisson::plan {
namespace {

/// Files of a toolchain that hold a token or password, below a directory that is shown.
struct SecretFile {
  std::string_view directory, file;
};
constexpr SecretFile kSecretFiles[] = {
    {"/lib", "/node_modules/npm/npmrc"},
    {"/lib", "/node_modules/npm/.npmrc"},
    {"/conf", "/management/jmxremote.password"},
    {"/lib", "/management/jmxremote.password"},
};

}  // namespace

void addToolchains(const HostFacts& host, Plan& plan) {
  std::string text;
  for (const Toolchain& toolchain : host.toolchains) {
    for (const std::string& path : toolchain.shown) {
      plan.steps.push_back(Bind{
          .source = path, .target = path, .executable = true, .canonical = true, .owned = plan.identity.maps_files});
      for (const SecretFile& secret : kSecretFiles) {
        if (path.ends_with(secret.directory)) plan.steps.push_back(MaskPath{path + std::string(secret.file)});
      }
    }
    for (const std::string& path : toolchain.hidden) plan.steps.push_back(MaskPath{path});
    text += (text.empty() ? "" : ", ") + toolchain.programs + " (" + toolchain.manager + ")";
  }
  if (!text.empty()) plan.layers["toolchains"] = "read-only: " + text;
}

std::string programPath(const std::vector<Toolchain>& toolchains) {
  std::string path;
  for (const Toolchain& toolchain : toolchains) path += toolchain.programs + ":";
  return path + std::string(kProgramPath);
}

}  // namespace caisson::plan
