#include "supervise/disk/private_paths.h"

#include <variant>

#include "plan/workspace.h"

namespace caisson::supervise {
namespace {

void replace(std::string& text, const std::string& name, const std::string& path) {
  if (plan::below(text, name)) text.replace(0, name.size(), path);
}

}  // namespace

void namePrivateDirectories(const std::vector<std::string>& paths, plan::Plan& plan) {
  std::size_t at = 0;
  for (const plan::Step& step : plan.steps) {
    const auto* directory = std::get_if<plan::MountTmpfs>(&step);
    if (directory == nullptr || !directory->on_disk || at == paths.size()) continue;
    const std::string& name = directory->target;
    const std::string& path = paths[at++];
    for (plan::LandlockRule& rule : plan.landlock.rules) replace(rule.path, name, path);
    for (std::string& tree : plan.attribute_trees) replace(tree, name, path);
    replace(plan.working_directory, name, path);
    for (std::string& variable : plan.environment) {
      std::string value = variable.substr(variable.find('=') + 1);
      const std::size_t name_length = variable.size() - value.size();
      replace(value, name, path);
      variable = variable.substr(0, name_length) + value;
    }
  }
}

}  // namespace caisson::supervise
