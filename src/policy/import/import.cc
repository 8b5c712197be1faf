#include "policy/import/import.h"

#include "base/error.h"
#include "policy/import/builder.h"

namespace caisson::policy {

namespace {

Result<Imported> importAs(std::string_view shape, std::string_view profile, void (*importer)(ImportBuilder&),
                          const Document& document, std::string_view workspace) {
  ImportBuilder builder(document, shape, profile, workspace);
  importer(builder);
  return builder.finish();
}

}  // namespace

std::string_view name(ImportNote::Kind kind) {
  switch (kind) {
    case ImportNote::Kind::lossy: return "not taken over";
    case ImportNote::Kind::unsafe: return "refused as unsafe";
    case ImportNote::Kind::widening: return "wider";
  }
  return "";
}

Result<Imported> importPolicy(const Document& document, std::string_view workspace) {
  const ImportReader look(document);
  const auto hasAny = [&](std::initializer_list<std::string_view> keys) {
    for (const std::string_view key : keys)
      if (look.has(key)) return true;
    return false;
  };
  const auto read = [&](std::string_view shape, std::string_view profile, void (*importer)(ImportBuilder&)) {
    return importAs(shape, profile, importer, document, workspace);
  };
  if (hasAny({"sandbox.bash", "sandbox.images"})) return read("agent", "bash", importAgent);
  if (hasAny({"services.sandbox"})) return read("compose", "bash", importCompose);
  if (hasAny({"isolationLevel"})) return read("declared-policy", "strict", importRfc);
  if (hasAny({"sandbox"})) return read("shell-toml", "shell", importDocker);
  if (hasAny({"sandbox_config", "process_limits", "execution_policy", "size_limits", "network_allowlist"}))
    return read("cargo", "cargo", importCargo);
  if (hasAny({"network.allowedDomains", "network.deniedDomains", "filesystem.allowWrite", "filesystem.denyRead",
              "filesystem.denyWrite", "permissions.allow", "permissions.deny"}))
    return read("srt", "bash", importSrt);
  if (hasAny({"image", "dockerFile", "build", "dockerComposeFile", "features", "customizations", "containerEnv",
              "remoteUser", "postCreateCommand", "forwardPorts", "runArgs"}))
    return read("devcontainer", "bash", importDevcontainer);
  return fail(plainError(Stage::policy, "import", document.name, "none of the shapes that can be imported",
                         "docs/profiles.md lists them; caisson's own files need no import"));
}

}  // namespace caisson::policy
