#include "image_store/registry/credentials.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>

#include "base/base64.h"
#include "base/json_value.h"
#include "base/text.h"
#include "image_store/registry/user_file.h"
#include "sys/deadline.h"
#include "sys/host_program.h"
#include "sys/pipe.h"

namespace caisson::image {
namespace {

constexpr std::uint64_t kMaxCredentialFile = 1U << 20;
constexpr auto kHelperTimeout = std::chrono::seconds(60);  // some prompt for a password

/// The keys under which a file may have the entry, most specific first.
std::vector<std::string> keysFor(const std::string& host, const std::string& repository) {
  std::vector<std::string> keys;
  for (std::string path = host + "/" + repository; path != host; path = path.substr(0, path.rfind('/')))
    keys.push_back(path);
  keys.insert(keys.end(), {host, "https://" + host, "https://" + host + "/", "http://" + host});
  if (host == "docker.io")
    keys.insert(keys.end(), {"https://index.docker.io/v1/", "index.docker.io", "registry-1.docker.io"});
  return keys;
}

std::vector<std::string> credentialFiles() {
  std::vector<std::string> files;
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value != nullptr && value[0] == '/' ? value : "");
  };
  if (const std::string file = variable("REGISTRY_AUTH_FILE"); !file.empty()) files.push_back(file);
  if (const std::string run = variable("XDG_RUNTIME_DIR"); !run.empty()) files.push_back(run + "/containers/auth.json");
  const std::string home = variable("HOME");
  const std::string config = variable("XDG_CONFIG_HOME");
  if (!config.empty() || !home.empty())
    files.push_back((config.empty() ? home + "/.config" : config) + "/containers/auth.json");
  if (const std::string docker = variable("DOCKER_CONFIG"); !docker.empty()) files.push_back(docker + "/config.json");
  if (!home.empty()) files.push_back(home + "/.docker/config.json");
  return files;
}

/// Everything from the pipe until its end, at most 64 KiB, before the deadline.
std::string readAnswer(int pipe, std::chrono::steady_clock::time_point deadline) {
  std::string text;
  char buffer[4096];
  pollfd ready{.fd = pipe, .events = POLLIN, .revents = 0};
  while (text.size() < (64U << 10) && ::poll(&ready, 1, sys::millisecondsUntil(deadline)) == 1) {
    const ssize_t got = ::read(pipe, buffer, sizeof(buffer));
    if (got <= 0) break;
    text.append(buffer, static_cast<std::size_t>(got));
  }
  return text;
}

/// Runs `docker-credential-NAME get` with the key on standard input.
Result<std::optional<RegistryCredentials>> fromHelper(const std::string& name, const std::string& key) {
  const bool plain = !name.empty() && std::ranges::all_of(name, [](char c) {
    return isDigit(c) || (lower(c) >= 'a' && lower(c) <= 'z') || c == '-' || c == '_' || c == '.';
  });
  const std::string program = "docker-credential-" + name;
  if (!plain)
    return fail(plainError(Stage::usage, "registry", printable(program), "invalid name of a credential helper"));
  auto input = sys::makePipe(Stage::state, program);
  if (!input) return fail(input.error());
  auto output = sys::makePipe(Stage::state, program);
  if (!output) return fail(output.error());
  auto helper = sys::HostProgram::start({.arguments = {program, "get"},
                                         .search_path = true,
                                         .inherit_environment = true,
                                         .descriptors = {{input->read.get(), 0}, {output->write.get(), 1}}});
  if (!helper) return fail(helper.error());
  (void)!::write(input->write.get(), key.data(), key.size());  // far below what a pipe holds
  input->write.reset();
  output->write.reset();
  const auto deadline = std::chrono::steady_clock::now() + kHelperTimeout;
  const std::string answer = readAnswer(output->read.get(), deadline);
  const auto status = helper->wait(std::chrono::seconds(5));
  const auto value = JsonValue::parse(answer);
  if (status != 0 || !value) return std::nullopt;  // the helper knows no such registry
  const std::string user = value->textAt("Username").value_or("");
  const std::string secret = value->textAt("Secret").value_or("");
  if (user == "<token>") return RegistryCredentials{.identity_token = secret};
  return RegistryCredentials{.username = user, .password = secret};
}

/// An entry of "auths".
std::optional<RegistryCredentials> fromEntry(const JsonValue& entry) {
  RegistryCredentials result{.username = entry.textAt("username").value_or(""),
                             .password = entry.textAt("password").value_or(""),
                             .identity_token = entry.textAt("identitytoken").value_or("")};
  const auto decoded = decodeBase64(entry.textAt("auth").value_or(""));
  if (decoded && decoded->find(':') != std::string::npos) {
    result.username = decoded->substr(0, decoded->find(':'));
    result.password = decoded->substr(decoded->find(':') + 1);
    while (result.password.ends_with('\0')) result.password.pop_back();
  }
  const bool empty = result.username.empty() && result.identity_token.empty();
  return empty ? std::nullopt : std::optional(std::move(result));
}

}  // namespace

Result<std::optional<RegistryCredentials>> credentialsIn(std::string_view json, const std::string& host,
                                                         const std::string& repository) {
  const auto file = JsonValue::parse(json);
  if (!file || !file->isObject())
    return fail(plainError(Stage::usage, "registry", "credentials", "the file is not JSON"));
  const auto helpers = file->find("credHelpers");
  const auto entries = file->find("auths");
  const std::string store = file->textAt("credsStore").value_or("");
  for (const std::string& key : keysFor(host, repository)) {
    if (const auto helper = helpers ? helpers->textAt(key) : std::nullopt) return fromHelper(*helper, key);
    const auto entry = entries ? entries->find(key) : std::nullopt;
    if (!entry) continue;
    if (auto found = fromEntry(*entry)) return found;
    // `docker login` leaves an empty entry for what its credential store has.
    if (!store.empty()) return fromHelper(store, key);
  }
  return std::nullopt;
}

Result<std::optional<RegistryCredentials>> credentialsFor(const std::string& host, const std::string& repository) {
  for (const std::string& path : credentialFiles()) {
    const auto text = readUserFile(path, kMaxCredentialFile);
    if (!text && text.error().sys_errno == ENOENT) continue;
    if (!text) return fail(text.error());
    auto found = credentialsIn(*text, host, repository);
    if (!found) {
      Error error = found.error();
      error.object = path;
      return fail(std::move(error));
    }
    if (*found) return found;
  }
  return std::nullopt;
}

}  // namespace caisson::image
