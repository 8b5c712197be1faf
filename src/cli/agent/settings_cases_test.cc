// Settings files in the formats of the agents' documentation, each with a secret in another place.
#include <gtest/gtest.h>

#include "cli/agent/providers.h"
#include "cli/agent/secret_text.h"
#include "cli/agent/settings.h"
#include "support/conforms.h"

namespace caisson::cli {
namespace {

struct SecretCase {
  const char* agent;
  const char* path;  ///< below the home
  const char* secret;
  const char* kept;  ///< a part that arrives; "": the file is left out as a whole
  const char* text;
};

constexpr SecretCase kSecretCases[] = {
    // Claude Code
    {"claude", ".claude/settings.json", "canary-1", "opus",
     R"x({"model": "opus", "env": {"SERVICE_TOKEN": "canary-1"}})x"},
    {"claude", ".claude/settings.json", "canary-2", "opus",
     R"x({"model": "opus", "env": {"PLAIN_NAME": "canary-2"}})x"},
    {"claude", ".claude/settings.json", "canary-3", "opus", R"x({"model": "opus", "apiKeyHelper": "echo canary-3"})x"},
    {"claude", ".claude/settings.json", "canary-4", "opus",
     "{\"model\": \"opus\", // canary-4 is the key\n\"verbose\": true}"},
    {"claude", ".claude/settings.json", "canary-5", "Bash(ls:*)",
     R"x({"permissions": {"allow": ["Bash(ls:*)", "Bash(curl -H 'Authorization: Bearer canary-5' x)"]}})x"},
    {"claude", ".claude/settings.json", "canary-6", "make check",
     R"x({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "notify --token canary-6"}]},
        {"hooks": [{"type": "command", "command": "make check"}]}]}})x"},
    {"claude", ".claude/settings.json", "canary-7", "dark",
     R"x({"theme": "dark", "statusLine": {"type": "command", "command": "PASSWORD=canary-7 status"}})x"},
    {"claude", ".claude/settings.json", "canary-8", "opus",
     R"x({"model": "opus", "otelHeadersHelper": "echo canary-8", "awsAuthRefresh": "aws sso login"})x"},
    {"claude", ".claude/settings.json", "canary-9", "sonnet",
     R"x({"env": {"ANTHROPIC_MODEL": "sonnet", "ANTHROPIC_CUSTOM_HEADERS": "X-Team: canary-9"}})x"},
    {"claude", ".claude/settings.json", "canary-10", "1",
     R"x({"env": {"DISABLE_TELEMETRY": "1", "CLAUDE_CODE_CLIENT_KEY_PASSPHRASE": "canary-10"}})x"},
    {"claude", ".claude/settings.json", "canary-11", "opus",
     R"x({"model": "opus", "mcpServers": {"x": {"command": "x", "args": ["canary-11"]}}})x"},
    {"claude", ".claude/keybindings.json", "canary-12", "app:quit",
     R"x({"bindings": [{"context": "Chat", "bindings": {"ctrl+q": "app:quit"}}], "password": "canary-12"})x"},
    {"claude", ".claude/CLAUDE.md", "canary-13", "", "# Notes\n\nThe database\npassword: canary-13\n"},
    {"claude", ".claude/CLAUDE.md", "swordfish", "", "Log in with `admin --password swordfish` first.\n"},
    {"claude", ".claude/commands/deploy.md", "ghp_canary0000000000", "",
     "push with ghp_canary0000000000 as the user\n"},
    {"claude", ".claude/skills/a/config.json", "canary-14", "", "{\n  \"apiKey\":\n    \"canary-14\"\n}\n"},
    {"claude", ".claude/agents/db.md", "canary15pw", "", "Connect to postgres://app:canary15pw@db.example/app.\n"},
    // Codex
    {"codex", ".codex/config.toml", "ctx7-canary", "gpt-5",
     "model = \"gpt-5\"\n[mcp_servers.context7]\ncommand = \"npx\"\nargs = [\"-y\", \"@upstash/context7-mcp\", "
     "\"--api-key\", \"ctx7-canary\"]\n"},
    {"codex", ".codex/config.toml", "canary-21", "gpt-5",
     "model = \"gpt-5\"\n[mcp_servers.db]\ncommand = \"db\"\nargs = [\"--password\",\n  \"canary-21\"]\n"},
    {"codex", ".codex/config.toml", "canary-22", "gpt-5",
     "model = \"gpt-5\"\n[mcp_servers.db]\ncommand = \"db\"\n[mcp_servers.db.env]\nDB_NAME = \"canary-22\"\n"},
    {"codex", ".codex/config.toml", "canary-23", "ACME_KEY",
     "[model_providers.acme]\nname = \"Acme\"\nbase_url = \"https://acme.example/v1\"\nenv_key = \"ACME_KEY\"\n"
     "http_headers = { \"X-Example\" = \"canary-23\" }\n"},
    {"codex", ".codex/config.toml", "canary-24", "Acme",
     "[model_providers.acme]\nname = \"Acme\"\nexperimental_bearer_token = \"canary-24\"\n"},
    {"codex", ".codex/config.toml", "canary-25", "Acme",
     "[model_providers.acme]\nname = \"Acme\"\nbase_url = \"https://acme.example/v1?sig=canary-25\"\n"},
    {"codex", ".codex/config.toml", "canary-26", "never",
     "approval_policy = \"never\"\n[otel.exporter.otlp-http]\nendpoint = \"https://o.example\"\n"
     "headers = { \"x-otlp\" = \"canary-26\" }\n"},
    {"codex", ".codex/config.toml", "canary-27", "core",
     "[shell_environment_policy]\ninherit = \"core\"\nset = { GIT_ASKPASS_ANSWER = \"canary-27\" }\n"},
    {"codex", ".codex/config.toml", "canary-28", "gpt-5",
     "model = \"gpt-5\"\nnotify = [\"notify\", \"--webhook\", \"canary-28\"]\n"},
    {"codex", ".codex/config.toml", "canary-29", "gpt-5",
     "model = \"gpt-5\"\n[mcp_servers.figma]\nurl = \"https://mcp.example/mcp\"\n"
     "http_headers = { \"Authorization\" = \"canary-29\" }\n"},
    {"codex", ".codex/AGENTS.md", "canary-30x", "", "API_KEY=canary-30x make test\n"},
    // Gemini CLI and Qwen Code
    {"gemini", ".gemini/settings.json", "canary-31", "GitHub",
     R"x({"ui": {"theme": "GitHub"}, "mcpServers": {"a": {"httpUrl": "https://a.example/mcp",
        "headers": {"X-Team": "canary-31"}}}})x"},
    {"gemini", ".gemini/settings.json", "canary-32", "GitHub",
     R"x({"theme": "GitHub", "mcpServers": {"a": {"command": "a", "args": ["--header", "X-Api-Key: canary-32"]}}})x"},
    {"gemini", ".gemini/settings.json", "canary-33", "vim",
     R"x({"general": {"preferredEditor": "vim", "proxy": "http://me:canary-33@proxy.example:3128"}})x"},
    {"gemini", ".gemini/settings.json", "canary-34", "vim",
     R"x({"preferredEditor": "vim", "telemetry": {"otlpEndpoint": "https://o.example/canary-34"}})x"},
    {"gemini", ".gemini/settings.json", "canary-35", "gemini-api-key",
     R"x({"security": {"auth": {"selectedType": "gemini-api-key", "apiKey": "canary-35"}}})x"},
    {"gemini", ".gemini/settings.json", "canary-36", "vim",
     R"x({"preferredEditor": "vim", "tools": {"discoveryCommand": "tools --key canary-36"}})x"},
    {"gemini", ".gemini/settings.json", "c4n4ry-3f7a-49b1-8d2e-6f5a1b2c3d4e", "vim",
     R"x({"preferredEditor": "vim", "mcpServers": {"a": {"url": "https://a.example/c4n4ry-3f7a-49b1-8d2e-6f5a1b2c3d4e/sse"}}})x"},
    {"gemini", ".gemini/commands/deploy.toml", "canary-37", "", "prompt = \"deploy\"\nsecret = \"canary-37\"\n"},
    {"qwen", ".qwen/settings.json", "canary-38", "qwen3",
     R"x({"model": {"name": "qwen3"}, "modelProviders": {"openai": [{"id": "x", "envKey": "X", "apiKey": "canary-38"}]}})x"},
    // opencode
    {"opencode", ".config/opencode/opencode.json", "canary-41", "opencode/big",
     R"x({"model": "opencode/big", "provider": {"acme": {"options": {"apiKey": "canary-41"}}}})x"},
    {"opencode", ".config/opencode/opencode.json", "canary-42", "https://acme.example/v1",
     R"x({"provider": {"acme": {"options": {"baseURL": "https://acme.example/v1", "headers": {"X": "canary-42"}}}}})x"},
    {"opencode", ".config/opencode/opencode.json", "canary-43", "npx",
     R"x({"mcp": {"a": {"type": "local", "command": ["npx", "-y", "a"]},
        "b": {"type": "local", "command": ["b", "--token", "canary-43"]}}})x"},
    {"opencode", ".config/opencode/opencode.jsonc", "canary-44", "big",
     "{\n  // the old key: canary-44\n  \"model\": \"big\",\n}\n"},
    {"opencode", ".config/opencode/opencode.json", "canary-45", "big",
     R"x({"model": "big", "mcp": {"b": {"type": "local", "command": ["b"], "environment": {"ANY": "canary-45"}}}})x"},
    {"opencode", ".config/opencode/opencode.json", "canary-46", "big",
     R"x({"model": "big", "agent": {"a": {"prompt": "use the password: canary-46"}}})x"},
    {"opencode", ".config/opencode/agent/a.md", "sk-canary00000000000000", "",
     "---\nmode: all\n---\nUse sk-canary00000000000000.\n"},
    // aider
    {"aider", ".aider.conf.yml", "canary-51", "sonnet", "model: sonnet\nopenai-api-key: canary-51\n"},
    {"aider", ".aider.conf.yml", "canary-52", "sonnet", "model: sonnet\napi-key:\n  - gemini=canary-52\n"},
    {"aider", ".aider.conf.yml", "canary-53", "sonnet", "model: sonnet\nset-env:\n  - ANY=canary-53\n"},
    {"aider", ".aider.conf.yml", "canary-54", "sonnet",
     "model: sonnet\nopenai-api-base: https://me:canary-54@api.example/v1\n"},
    {"aider", ".aider.conf.yml", "canary-55", "sonnet", "model: sonnet # canary-55\nanthropic-api-key:\n  canary-55\n"},
    {"aider", ".aider.conf.yml", "canary-56", "make", "lint-cmd: make\ntest-cmd: \"TOKEN=canary-56 make test\"\n"},
    // Cursor, Copilot CLI, Amp
    {"cursor-agent", ".cursor/mcp.json", "canary-61", "docs",
     R"x({"mcpServers": {"docs": {"command": "docs"}, "a": {"command": "a", "env": {"ID": "canary-61"}}}})x"},
    {"cursor-agent", ".cursor/cli-config.json", "canary-62", "Shell(ls)",
     R"x({"version": 1, "permissions": {"allow": ["Shell(ls)"]}, "authInfo": {"email": "canary-62"}
})x"},
    {"copilot", ".copilot/config.json", "canary-63", "never",
     R"x({"banner": "never", "copilot_tokens": {"https://github.com:me": "canary-63"}, "last_logged_in_user": {}})x"},
    {"copilot", ".copilot/mcp-config.json", "canary-64", "docs",
     R"x({"mcpServers": {"docs": {"type": "local", "command": "docs", "args": [], "tools": ["*"]},
        "a": {"type": "http", "url": "https://a.example/mcp?token=canary-64", "tools": ["*"]}}})x"},
    {"amp", ".config/amp/settings.json", "canary-65", "off",
     R"x({"amp.updates.mode": "off", "amp.mcpServers": {"a": {"command": "npx", "args": ["a", "apiKey", "canary-65"]}}})x"},
    // Goose, Crush, Continue, Grok
    {"goose", ".config/goose/config.yaml", "canary-71", "developer",
     "GOOSE_MODEL: gpt-5\nextensions:\n  developer:\n    type: builtin\n    name: developer\n    enabled: true\n"
     "  a:\n    type: stdio\n    cmd: a\n    envs:\n      ANY: canary-71\n"},
    {"goose", ".config/goose/config.yaml", "canary-72", "gpt-5", "GOOSE_MODEL: gpt-5\nOPENAI_API_KEY: canary-72\n"},
    {"goose", ".config/goose/config.yaml", "canary-73", "gpt-5",
     "GOOSE_MODEL: gpt-5\nextensions:\n  a:\n    type: streamable_http\n    uri: https://a.example/mcp\n"
     "    headers:\n      Authorization: Bearer canary-73\n"},
    {"crush", ".config/crush/crush.json", "canary-74", "https://api.example/v1",
     R"x({"providers": {"a": {"type": "openai", "base_url": "https://api.example/v1", "api_key": "canary-74",
        "extra_headers": {"X": "canary-74"}}}})x"},
    {"crush", ".config/crush/crush.json", "canary-75", "gopls",
     R"x({"lsp": {"go": {"command": "gopls"}}, "mcp": {"a": {"type": "stdio", "command": "a", "args": ["-u", "me:canary-75"]}}})x"},
    {"cn", ".continue/config.yaml", "canary-76", "gpt-5",
     "name: mine\nmodels:\n  - name: a\n    provider: openai\n    model: gpt-5\n    apiKey: canary-76\n"},
    {"cn", ".continue/config.yaml", "canary-77", "mine",
     "name: mine\nmcpServers:\n  - name: a\n    command: a\n    args: [--secret, canary-77]\n"},
    {"cn", ".continue/config.yaml", "canary-78", "gpt-5",
     "name: mine\nmodels:\n  - name: a\n    model: gpt-5\n    requestOptions:\n      headers:\n        X-Any: "
     "canary-78\n"},
    {"grok", ".grok/user-settings.json", "canary-79", "grok-4",
     R"x({"apiKey": "canary-79", "defaultModel": "grok-4"})x"},
    // Command lines in lists and tables
    {"codex", ".codex/config.toml", "canary", "gpt-5",
     "model = \"gpt-5\"\nnotify = [\"redis-cli\", \"-a\", \"canary\", \"publish\"]\n"},
    {"codex", ".codex/config.toml", "canary", "dark",
     "[tui]\ntheme = \"dark\"\nnotifications = [\"mysql\", \"-pcanary\"]\n"},
    {"opencode", ".config/opencode/opencode.json", "canary", "big",
     R"x({"model": "big", "formatter": {"a": {"command": ["redis-cli", "-a", "canary"]}}})x"},
    {"opencode", ".config/opencode/opencode.json", "canary", "big",
     R"x({"model": "big", "formatter": {"a": {"command": ["mysql", "-pcanary"]}}})x"},
    {"opencode", ".config/opencode/opencode.json", "canary", "big",
     R"x({"model": "big", "lsp": {"a": {"command": ["x", "login", "-p", "canary"]}}})x"},
    {"crush", ".config/crush/crush.json", "canary", "gopls",
     R"x({"lsp": {"go": {"command": "gopls"}, "a": {"command": "redis-cli", "args": ["-a", "canary"]}}})x"},
    {"crush", ".config/crush/crush.json", "canary", "gopls",
     R"x({"lsp": {"go": {"command": "gopls"}, "a": {"command": "x", "env": {"A": "canary"}}}})x"},
    {"amp", ".config/amp/settings.json", "canary", "off",
     R"x({"amp.updates.mode": "off", "amp.commands.allowlist": ["mysql", "-pcanary"]})x"},
    {"amp", ".config/amp/settings.json", "canary", "off",
     R"x({"amp.updates.mode": "off", "amp.commands.allowlist": ["sqlplus", "scott/canary"]})x"},
    {"amp", ".config/amp/settings.json", "canary", "Read",
     R"x({"amp.permissions": [{"tool": "Read", "action": "allow"},
        {"tool": "Bash", "action": "delegate", "to": ["redis-cli", "-a", "canary"]}]})x"},
    {"aider", ".aider.conf.yml", "canary", "sonnet", "model: sonnet\nlint-cmd:\n  - redis-cli\n  - -a\n  - canary\n"},
    {"claude", ".claude/settings.json", "canary", "make",
     R"x({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "redis-cli", "args": ["-a", "canary"]}]},
        {"hooks": [{"type": "command", "command": "make"}]}]}})x"},
    {"claude", ".claude/settings.json", "canary", "make",
     R"x({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x", "args": [["--api-key"], ["canary"]]}]},
        {"hooks": [{"type": "command", "command": "make"}]}]}})x"},
    {"codex", ".codex/config.toml", "canary", "gpt-5",
     "model = \"gpt-5\"\n[mcp_servers.a]\ncommand = \"mcp-proxy\"\nargs = [\"--headers\", \"x-api-key\", "
     "\"canary\"]\n"},
    {"cn", ".continue/config.yaml", "canary", "mine",
     "name: mine\nmcpServers:\n  - name: a\n    command: mcp-proxy\n    args: [-H, x-api-key, canary]\n"},
    {"crush", ".config/crush/crush.json", "canary", "gopls",
     R"x({"lsp": {"go": {"command": "gopls"}}, "mcp": {"a": {"type": "stdio", "command": "x", "args": ["-sSu", "me:canary"]}}})x"},
    {"codex", ".codex/config.toml", "canary", "gpt-5",
     "model = \"gpt-5\"\n[mcp_servers.a]\ncommand = \"x\"\nargs = [\"--user=me:canary\"]\n"},
    {"claude", ".claude/settings.json", "canary", "make",
     R"x({"hooks": {"Stop": [{"hooks": [{"type": "x", "program": "redis-cli", "arguments": ["-a", "canary"]}]},
        {"hooks": [{"type": "command", "command": "make"}]}]}})x"},
    // Variables and headers of what is started or called
    {"claude", ".claude/settings.json", "canary", "make",
     R"x({"hooks": {"Stop": [{"hooks": [{"type": "http", "url": "https://h.example/x", "headers": {"X-Acme": "canary"}}]},
        {"hooks": [{"type": "command", "command": "make"}]}]}})x"},
    {"claude", ".claude/settings.json", "canary", "opus",
     R"x({"model": "opus", "statusLine": {"type": "command", "command": "x", "env": {"ACME": "canary"}}})x"},
    {"claude", ".claude/settings.json", "canary", "opus",
     R"x({"model": "opus", "env": {"CLAUDE_CODE_OTEL_HEADERS": "x-acme=canary"}})x"},
    {"gemini", ".gemini/settings.json", "canary", "GitHub",
     R"x({"theme": "GitHub", "hooks": {"BeforeTool": [{"hooks": [{"type": "command", "command": "x",
        "env": {"ACME": "canary"}}]}]}})x"},
    {"gemini", ".gemini/settings.json", "canary", "GitHub",
     R"x({"theme": "GitHub", "experimental": {"a": [{"env": "API_KEY", "value": "canary"}]}})x"},
    {"cursor-agent", ".cursor/mcp.json", "canary", "docs",
     R"x({"mcpServers": {"docs": {"command": "npx", "args": ["-y", "mcp-remote", "https://x.example/mcp", "--header",
        "Accept: text/plain", "--header", "X-Team:${TEAM}"]},
        "a": {"command": "npx", "args": ["mcp-remote", "https://x.example/mcp", "--header", "X-Team:canary"]}}})x"},
    // Headers and variables in arguments
    {"cursor-agent", ".cursor/mcp.json", "canary", "docs",
     R"x({"mcpServers": {"docs": {"command": "docs"}, "a": {"command": "npx", "args": ["supergateway", "--header=X-Team: canary"]}}})x"},
    {"claude", ".claude/settings.json", "canary", "make",
     R"x({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "curl -H 'X-Team: canary' x"}]},
        {"hooks": [{"type": "command", "command": "make"}]}]}})x"},
    {"cursor-agent", ".cursor/mcp.json", "canary", "docs",
     R"x({"mcpServers": {"docs": {"command": "docs"}, "a": {"command": "docker", "args": ["run", "-e", "ACME=canary", "img"]}}})x"},
    {"cursor-agent", ".cursor/mcp.json", "canary", "docs",
     R"x({"mcpServers": {"docs": {"command": "docs"}, "a": {"command": "docker", "args": ["run", "--env=ACME=canary", "img"]}}})x"},
    {"cursor-agent", ".cursor/mcp.json", "canary", "docs",
     R"x({"mcpServers": {"docs": {"command": "docs"}, "a": {"command": "env", "args": ["LANG=C", "ACME=canary", "x"]}}})x"},
    {"cursor-agent", ".cursor/mcp.json", "canary", "docs",
     R"x({"mcpServers": {"docs": {"command": "docs"}, "a": {"command": "ACME=canary x", "args": []}}})x"},
    {"claude", ".claude/settings.json", "canary", "make",
     R"x({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "ACME=canary x"}]},
        {"hooks": [{"type": "command", "command": "make"}]}]}})x"},
    {"claude", ".claude/settings.json", "canary", "make",
     R"x({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "cd /tmp; NODE_ENV=test ACME=canary x"}]},
        {"hooks": [{"type": "command", "command": "make"}]}]}})x"},
    {"claude", ".claude/settings.json", "canary", "make",
     R"x({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "sudo -E ACME=canary x"}]},
        {"hooks": [{"type": "command", "command": "make"}]}]}})x"},
    {"claude", ".claude/settings.json", "canary", "Bash(ls)",
     R"x({"permissions": {"allow": ["Bash(ls)", "Bash(ACME=canary x)"]}})x"},
    {"aider", ".aider.conf.yml", "canary", "sonnet", "model: sonnet\ntest-cmd: ACME=canary pytest\n"},
    {"cursor-agent", ".cursor/mcp.json", "canary", "docs",
     R"x({"mcpServers": {"docs": {"command": "docs"}, "a": {"command": "x", "transport": {"requestInit": {"x": {"X-Team": "canary"}}}}}})x"},
    {"cursor-agent", ".cursor/mcp.json", "canary", "docs",
     R"x({"mcpServers": {"docs": {"command": "docs"}, "a": {"command": "x", "tools": {"x": {"acme": "canary 1"}}}}})x"},
    {"claude", ".claude/settings.json", "canary", "opus",
     R"x({"model": "opus", "env": {"CLAUDE_CODE_EXTRA_BODY": "{\"team\": \"canary\"}"}})x"},
    {"claude", ".claude/settings.json", "canary", "opus",
     R"x({"model": "opus", "env": {"ANTHROPIC_DEFAULT_HEADERS_X": "X-Team: canary"}})x"},
    // Names and numbers
    {"claude", ".claude/settings.json", "canary", "opus",
     R"x({"model": "opus", "env": {"CLAUDE_CODE_VERY_VERY_VERY_VERY_VERY_VERY_VERY_VERY_VERY_VERY_LONG_API_KEY": "canary"}})x"},
    {"claude", ".claude/settings.json", "948372615", "dark",
     R"x({"theme": "dark", "statusLine": {"type": "command", "command": "x", "access_token": 948372615}})x"},
    {"cursor-agent", ".cursor/mcp.json", "19283746", "docs",
     R"x({"mcpServers": {"docs": {"command": "docs"}, "a": {"command": "x", "args": ["--password", 19283746]}}})x"},
    {"cursor-agent", ".cursor/mcp.json", "15000000", "docs",
     R"x({"mcpServers": {"docs": {"command": "docs"}, "a": {"command": "x", "args": ["--password", 15000000.5]}}})x"},
    {"goose", ".config/goose/config.yaml", "19283746", "gpt-5",
     "GOOSE_MODEL: gpt-5\nextensions:\n  a:\n    type: stdio\n    cmd: x\n    args:\n      - --password\n      - "
     "19283746\n"},
    {"aider", ".aider.conf.yml", "19283746", "sonnet", "model: sonnet\nlint-cmd: [redis-cli, -a, 19283746]\n"},
    {"codex", ".codex/config.toml", "19283746", "gpt-5",
     "model = \"gpt-5\"\n[mcp_servers.a]\ncommand = \"x\"\nargs = [\"--pin\", 19283746]\n"},
    {"codex", ".codex/config.toml", "canary", "2025-04-01-preview",
     "[model_providers.azure]\nquery_params = { api-version = \"2025-04-01-preview\", code = \"canary\" }\n"},
    // Without a name, anywhere
    {"codex", ".codex/config.toml", "sk-canary81abcdefghijklmn", "gpt-5",
     "model = \"gpt-5\"\n[mcp_servers.a]\ncommand = \"a\"\nargs = [\"server\", \"sk-canary81abcdefghijklmn\"]\n"},
    {"codex", ".codex/config.toml", "canary82", "gpt-5",
     "model = \"gpt-5\"\n[mcp_servers.a]\ncommand = \"/usr/bin/mysql\"\nargs = [\"-u\", \"root\", \"-pcanary82\"]\n"},
    {"codex", ".codex/config.toml", "canary", "gpt-5",
     "model = \"gpt-5\"\n[mcp_servers.a]\ncommand = \"redis-cli\"\nargs = [\"-a\", \"canary\"]\n"},
    {"codex", ".codex/config.toml", "canary", "gpt-5",
     "model = \"gpt-5\"\n[mcp_servers.a]\ncommand = \"a\"\nargs = [\"-H\", \"X-Any\", \"Bearer\", \"canary\"]\n"},
    {"codex", ".codex/config.toml", "canary85", "gpt-5",
     "model = \"gpt-5\"\n[mcp_servers.a]\ncommand = \"a\"\nargs = [\"postgres://app:canary85@db/app\"]\n"},
    {"codex", ".codex/config.toml", "canary86", "gpt-5",
     "model = \"gpt-5\"\n[mcp_servers.a]\ncommand = \"a\"\nargs = [\"Server=db;Uid=sa;Pwd=canary86;\"]\n"},
    {"codex", ".codex/config.toml", "canary87", "gpt-5",
     "model = \"gpt-5\"\n[mcp_servers.a]\ncommand = \"a\"\nargs = [\"app:canary87@tcp(db:3306)/app\"]\n"},
    {"codex", ".codex/config.toml", "AKIACANARY88ABCDEFGH", "Acme",
     "[model_providers.acme]\nname = \"Acme\"\nenv_key = \"AKIACANARY88ABCDEFGH\"\n"},
    {"opencode", ".config/opencode/opencode.json", "canary89", "big",
     R"x({"model": "big", "agent": {"a": {"prompt": "ask the server with bearer canary89"}}})x"},
    {"opencode", ".config/opencode/opencode.json", "canary", "big",
     R"x({"model": "big", "mcp": {"b": {"type": "local", "command": ["docker", "login", "-p", "canary"]}}})x"},
    {"claude", ".claude/settings.json", "canary91", "opus",
     R"x({"model": "opus", "permissions": {"allow": ["Bash(psql app:canary91@db.example/app)"]}})x"},
    {"claude", ".claude/CLAUDE.md", "canary92", "", "The password is canary92.\n"},
    {"claude", ".claude/CLAUDE.md", "Y2FuYXJ5OjkzeA", "", "curl -H \"Authorization: Basic Y2FuYXJ5OjkzeA==\"\n"},
};

const SettingsFile* settingsAt(const KnownAgent& agent, std::string_view path) {
  for (const SettingsFile& file : agent.settings) {
    const bool below = file.format == SettingsFormat::text && path.starts_with(std::string(file.path) + "/");
    if (file.path == path || below) return &file;
  }
  return nullptr;
}

TEST(AgentSettings, SixtyFilesArriveWithoutTheirSecret) {
  CONFORMS("R-AGENT-5");
  static_assert(std::size(kSecretCases) >= 60);
  for (const SecretCase& one : kSecretCases) {
    SCOPED_TRACE(std::string(one.path) + " " + one.text);
    const KnownAgent* agent = findAgent(one.agent);
    ASSERT_NE(agent, nullptr);
    const SettingsFile* file = settingsAt(*agent, one.path);
    ASSERT_NE(file, nullptr);
    ASSERT_NE(std::string_view(one.text).find(one.secret), std::string_view::npos) << "a wrong test";
    if (file->format == SettingsFormat::text) {
      EXPECT_STREQ(one.kept, "");
      EXPECT_TRUE(mayHoldSecret(one.path, one.text));
      continue;
    }
    const auto clean = cleanSettings(*file, one.text);
    ASSERT_TRUE(clean) << clean.error();
    EXPECT_EQ(clean->text.find(one.secret), std::string::npos) << clean->text;
    EXPECT_NE(clean->text.find(one.kept), std::string::npos) << clean->text;
    const bool comment = std::string_view(one.text).find("// ") != std::string_view::npos;
    EXPECT_EQ(clean->left_out.empty(), comment) << "what is left out is named, except a comment";
    for (const std::string& name : clean->left_out) EXPECT_EQ(name.find(one.secret), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace caisson::cli
