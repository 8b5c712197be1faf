#include "plan/toolchains.h"

#include "plan/executables.h"

namespace caisson::plan {

void addToolchains(const HostFacts& host, Plan& plan) {
  std::string text;
  for (const Toolchain& toolchain : host.toolchains) {
    for (const std::string& path : toolchain.shown) {
      plan.steps.push_back(Bind{.source = path,
                                .target = path,
                                .executable = true,
                                .canonical = true,
                                .owned = plan.identity.parent_writes_maps});
    }
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
