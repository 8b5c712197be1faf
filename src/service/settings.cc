#include "service/settings.h"

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "policy/document/document.h"
#include "sys/own_file.h"

namespace caisson::service {
namespace {

using policy::Node;

/// Reads the members of one table; finish() reports the first mistake, or a key that was not read.
class TableReader {
 public:
  TableReader(std::string file, std::string name, const Node& table)
      : file_(std::move(file)), name_(std::move(name)), table_(table) {
    if (table.type != Node::Type::table) refuse("", table, "expected a table");
  }

  void text(std::string_view key, std::string& into) {
    const Node* node = take(key);
    if (node == nullptr) return;
    if (node->type != Node::Type::text) return refuse(key, *node, "expected a string");
    into = node->text;
  }
  void texts(std::string_view key, std::vector<std::string>& into) {
    const Node* node = take(key);
    if (node == nullptr) return;
    if (node->type == Node::Type::text) {
      into.push_back(node->text);
      return;
    }
    if (node->type != Node::Type::list) return refuse(key, *node, "expected a list of strings");
    for (const Node& item : node->items) {
      if (item.type != Node::Type::text) return refuse(key, item, "expected a list of strings");
      into.push_back(item.text);
    }
  }
  void texts(std::string_view key, std::optional<std::vector<std::string>>& into) {
    if (take(key) != nullptr) texts(key, into.emplace());
  }
  void number(std::string_view key, double& into) {
    const Node* node = take(key);
    if (node == nullptr) return;
    if (node->type == Node::Type::integer) into = static_cast<double>(node->integer);
    if (node->type == Node::Type::floating) into = node->floating;
    if ((node->type != Node::Type::integer && node->type != Node::Type::floating) || into < 0)
      refuse(key, *node, "expected a number from 0 on");
  }
  void size(std::string_view key, std::size_t& into, std::int64_t most) {
    const Node* node = take(key);
    if (node == nullptr) return;
    if (node->type != Node::Type::integer || node->integer < 0 || node->integer > most)
      return refuse(key, *node, "expected a number from 0 to " + std::to_string(most));
    into = static_cast<std::size_t>(node->integer);
  }
  void variables(std::string_view key, std::map<std::string, std::string>& into) {
    const Node* node = take(key);
    if (node == nullptr) return;
    for (const auto& [name, value] : node->members) {
      if (value.type != Node::Type::text) return refuse(key, value, "expected a table of strings");
      into[name] = value.text;
    }
  }
  const Node* table(std::string_view key) {
    const Node* node = take(key);
    if (node != nullptr && node->type != Node::Type::table) refuse(key, *node, "expected a table");
    return error_ ? nullptr : node;
  }
  void refuse(std::string_view key, const Node& node, std::string_view reason) {
    if (error_) return;
    const std::string shown = printable(name_ + (name_.empty() || key.empty() ? "" : ".") + std::string(key));
    error_ = plainError(Stage::usage, "serve --config", policy::place(file_, node.line, shown), reason,
                        "see docs/http-api.md");
  }
  Result<void> finish() {
    for (const auto& [key, node] : table_.members)
      if (std::find(known_.begin(), known_.end(), key) == known_.end()) refuse(key, node, "unknown key");
    if (error_) return std::unexpected(*error_);
    return {};
  }

 private:
  const Node* take(std::string_view key) {
    known_.emplace_back(key);
    return table_.find(key);
  }

  std::string file_, name_;
  const Node& table_;
  std::vector<std::string> known_;
  std::optional<Error> error_;
};

Result<Template> readTemplate(const std::string& file, const std::string& name, const Node& node) {
  constexpr std::int64_t kMaxPool = 64;
  TableReader reader(file, "templates." + name, node);
  Template made{.name = name};
  made.policy.shared = true;
  reader.text("profile", made.policy.profile);
  reader.text("image", made.policy.image);
  reader.text("workspace", made.policy.workspace);
  reader.text("memory", made.policy.memory);
  reader.text("disk", made.policy.disk);
  reader.number("cpus", made.policy.cpus);
  reader.number("command_timeout", made.policy.command_timeout);
  reader.variables("environment", made.policy.environment);
  reader.texts("allowed_hosts", made.policy.allowed_hosts);
  reader.size("pool", made.pool, kMaxPool);
  reader.texts("warm_up", made.warm_up);
  std::string policy_file;
  reader.text("policy", policy_file);
  if (auto finished = reader.finish(); !finished) return std::unexpected(finished.error());
  if (!policy_file.empty()) {
    auto loaded = policy::readRegularFile(policy_file);
    if (!loaded) return std::unexpected(loaded.error());
    made.policy.policy_json = *std::move(loaded);
  }
  return made;
}

Result<Webhook> readWebhook(const std::string& file, const std::string& name, const Node& node) {
  TableReader reader(file, "webhooks." + name, node);
  Webhook hook{.name = name};
  std::string secret_file;
  reader.text("url", hook.url);
  reader.text("secret_file", secret_file);
  if (!hook.url.starts_with("http://") && !hook.url.starts_with("https://"))
    reader.refuse("url", node, "expected an address that begins with http:// or https://");
  if (secret_file.empty())
    reader.refuse("secret_file", node, "a webhook needs a secret, so that receivers can check it");
  if (auto finished = reader.finish(); !finished) return std::unexpected(finished.error());
  auto secret = sys::readSecretFile(secret_file);
  if (!secret) return std::unexpected(secret.error());
  hook.secret = trimmed(*secret, " \t\r\n");
  if (hook.secret.size() < 16)
    return std::unexpected(
        plainError(Stage::usage, "serve --config", secret_file, "the secret is shorter than 16 bytes", ""));
  return hook;
}

}  // namespace

Result<Settings> loadSettings(const std::string& path) {
  auto text = policy::readRegularFile(path);
  if (!text) {
    Error error = text.error();
    error.hint = "check the path after --config";
    return std::unexpected(std::move(error));
  }
  auto document = policy::readText(*text, policy::Format::toml, path);
  if (!document) return std::unexpected(document.error());
  Settings settings;
  TableReader reader(path, "", document->root);
  reader.texts("listen", settings.listen);
  reader.text("socket", settings.socket);
  reader.text("preview", settings.preview);
  reader.texts("allow_workspaces", settings.allow_workspaces);
  reader.texts("hosts", settings.hosts);
  if (const Node* tls = reader.table("tls")) {
    TableReader inner(path, "tls", *tls);
    inner.text("cert", settings.tls_cert);
    inner.text("key", settings.tls_key);
    if (auto finished = inner.finish(); !finished) return std::unexpected(finished.error());
  }
  if (const Node* templates = reader.table("templates")) {
    for (const auto& [name, node] : templates->members) {
      auto made = readTemplate(path, name, node);
      if (!made) return std::unexpected(made.error());
      settings.templates.push_back(*std::move(made));
    }
  }
  if (const Node* webhooks = reader.table("webhooks")) {
    for (const auto& [name, node] : webhooks->members) {
      auto hook = readWebhook(path, name, node);
      if (!hook) return std::unexpected(hook.error());
      settings.webhooks.push_back(*std::move(hook));
    }
  }
  if (auto finished = reader.finish(); !finished) return std::unexpected(finished.error());
  return settings;
}

}  // namespace caisson::service
