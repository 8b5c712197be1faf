// The server's configuration file (--config), in TOML:
//
//   listen = ["127.0.0.1:7080"]
//   socket = "/run/user/1000/caisson.sock"     # "none": no unix socket
//   allow_workspaces = ["/srv/projects"]
//   hosts = ["sandboxes.example.org"]          # names by which clients reach the server
//   preview = "127.0.0.1:7081"                 # a separate listener for previews of ports
//
//   [tls]
//   cert = "/etc/caisson/cert.pem"
//   key = "/etc/caisson/key.pem"
//
//   [templates.python]                         # POST /v1/sandboxes {"template": "python"}
//   profile = "python"
//   memory = "512M"
//   pool = 4                                   # sandboxes that are ready in advance
//
//   [webhooks.ci]
//   url = "https://ci.example.org/caisson"
//   secret_file = "/etc/caisson/webhook.key"   # signs each delivery (HMAC-SHA256)
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "service/policies.h"

namespace caisson::service {

struct Template {
  std::string name;
  PolicyOptions policy;
  std::size_t pool = 0;
  std::optional<std::vector<std::string>> warm_up;  ///< run in each sandbox of the pool; unset: `true`
};

struct Webhook {
  std::string name, url, secret;
};

struct Settings {
  std::vector<std::string> listen;
  std::string socket;  ///< empty: the default in CAISSON_HOME; "none"
  std::string preview;
  std::string tls_cert, tls_key;
  std::vector<std::string> allow_workspaces;  ///< canonical
  std::vector<std::string> hosts;
  std::vector<Template> templates;
  std::vector<Webhook> webhooks;
};

/// Reads a file. Unknown keys and wrong types are errors that name the key.
Result<Settings> loadSettings(const std::string& path);

}  // namespace caisson::service
