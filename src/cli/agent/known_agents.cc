// The agents that are known by name, and which of their settings are copied: docs/agents.md has the table.
//
// Keys are those of the agents' documentation that choose behaviour. Left out are keys whose values are credentials or
// arbitrary text sent to servers: environments, headers, helpers that print a key, telemetry exporters.
#include <array>

#include "cli/agent/providers.h"

namespace caisson::cli {
namespace {

constexpr std::string_view kAnthropic[] = {"anthropic"};
constexpr std::string_view kOpenAi[] = {"openai"};
constexpr std::string_view kGoogle[] = {"google"};
constexpr std::string_view kAny[] = {"anthropic", "openai",   "google", "openrouter",
                                     "mistral",   "deepseek", "groq",   "xai"};

constexpr std::string_view kMcpServers[] = {"mcpServers/*"};

constexpr std::string_view kClaudeKeys[] = {"$schema",
                                            "model",
                                            "availableModels",
                                            "effortLevel",
                                            "alwaysThinkingEnabled",
                                            "outputStyle",
                                            "language",
                                            "theme",
                                            "verbose",
                                            "editorMode",
                                            "autoCompactEnabled",
                                            "cleanupPeriodDays",
                                            "includeCoAuthoredBy",
                                            "includeGitInstructions",
                                            "attribution/**",
                                            "respectGitignore",
                                            "plansDirectory",
                                            "prefersReducedMotion",
                                            "showTurnDuration",
                                            "spinnerTipsEnabled",
                                            "terminalProgressBarEnabled",
                                            "statusLine/!",
                                            "permissions/allow",
                                            "permissions/ask",
                                            "permissions/deny",
                                            "permissions/additionalDirectories",
                                            "permissions/defaultMode",
                                            "permissions/disableBypassPermissionsMode",
                                            "skipDangerousModePermissionPrompt",
                                            "hooks/**",
                                            "disableAllHooks",
                                            "enableAllProjectMcpServers",
                                            "enabledMcpjsonServers",
                                            "disabledMcpjsonServers",
                                            "enabledPlugins/**",
                                            "sandbox/**",
                                            "env/ANTHROPIC_MODEL",
                                            "env/ANTHROPIC_SMALL_FAST_MODEL",
                                            "env/ANTHROPIC_DEFAULT_*",
                                            "env/BASH_*",
                                            "env/CLAUDE_CODE_*",
                                            "env/DISABLE_*",
                                            "env/MAX_*",
                                            "env/MCP_TIMEOUT",
                                            "env/MCP_TOOL_TIMEOUT"};
constexpr std::string_view kClaudeKeyboardKeys[] = {"$schema", "bindings/**"};

constexpr std::string_view kCodexKeys[] = {"model",
                                           "model_provider",
                                           "model_context_window",
                                           "model_max_output_tokens",
                                           "model_auto_compact_token_limit",
                                           "model_reasoning_effort",
                                           "model_reasoning_summary",
                                           "model_verbosity",
                                           "model_providers/*/name",
                                           "model_providers/*/base_url",
                                           "=model_providers/*/env_key",
                                           "model_providers/*/wire_api",
                                           "model_providers/*/requires_openai_auth",
                                           "model_providers/*/request_max_retries",
                                           "model_providers/*/stream_*",
                                           "model_providers/*/query_params/api-version",
                                           "model_providers/*/query_params/api_version",
                                           "model_providers/*/query_params/version",
                                           "review_model",
                                           "personality",
                                           "approval_policy",
                                           "sandbox_mode",
                                           "sandbox_workspace_write/**",
                                           "default_permissions",
                                           "notify",
                                           "notice/**",
                                           "tui/**",
                                           "history/**",
                                           "file_opener",
                                           "hide_agent_reasoning",
                                           "show_raw_agent_reasoning",
                                           "disable_response_storage",
                                           "project_doc_max_bytes",
                                           "project_doc_fallback_filenames",
                                           "projects/*/trust_level",
                                           "features/**",
                                           "tools/**",
                                           "web_search",
                                           "agents/**",
                                           "skills/**",
                                           "check_for_update_on_startup",
                                           "=preferred_auth_method",
                                           "=cli_auth_credentials_store",
                                           "shell_environment_policy/inherit",
                                           "shell_environment_policy/ignore_default_excludes",
                                           "shell_environment_policy/exclude",
                                           "shell_environment_policy/include_only",
                                           "profile",
                                           "profiles/*/model",
                                           "profiles/*/model_provider",
                                           "profiles/*/model_reasoning_effort",
                                           "profiles/*/model_reasoning_summary",
                                           "profiles/*/model_verbosity",
                                           "profiles/*/approval_policy",
                                           "profiles/*/sandbox_mode"};
constexpr std::string_view kCodexServers[] = {"mcp_servers/*"};

// Gemini CLI, in the nested form and the flat one of older versions; Qwen Code has the same.
constexpr std::string_view kGeminiKeys[] = {"$version",
                                            "general/**",
                                            "output/format",
                                            "ui/**",
                                            "ide/**",
                                            "privacy/**",
                                            "model/name",
                                            "model/maxSessionTurns",
                                            "model/compressionThreshold",
                                            "model/chatCompression/**",
                                            "model/summarizeToolOutput/**",
                                            "model/skipNextSpeakerCheck",
                                            "context/fileName",
                                            "context/importFormat",
                                            "context/discoveryMaxDirs",
                                            "context/includeDirectories",
                                            "context/loadFromIncludeDirectories",
                                            "context/fileFiltering/**",
                                            "tools/sandbox",
                                            "tools/shell/**",
                                            "tools/core",
                                            "tools/allowed",
                                            "tools/exclude",
                                            "tools/approvalMode",
                                            "tools/autoAccept",
                                            "tools/useRipgrep",
                                            "mcp/allowed",
                                            "mcp/excluded",
                                            "security/folderTrust/enabled",
                                            "security/disableYoloMode",
                                            "=security/auth/selectedType",
                                            "experimental/**",
                                            "hooks/**",
                                            "model",
                                            "theme",
                                            "vimMode",
                                            "preferredEditor",
                                            "=selectedAuthType",
                                            "contextFileName",
                                            "coreTools",
                                            "excludeTools",
                                            "allowMCPServers",
                                            "excludeMCPServers",
                                            "autoAccept",
                                            "sandbox",
                                            "hideTips",
                                            "hideBanner",
                                            "fileFiltering/**",
                                            "checkpointing/**",
                                            "maxSessionTurns",
                                            "usageStatisticsEnabled",
                                            "includeDirectories"};

constexpr std::string_view kOpencodeKeys[] = {"$schema",
                                              "theme",
                                              "model",
                                              "small_model",
                                              "default_agent",
                                              "username",
                                              "autoupdate",
                                              "share",
                                              "snapshot",
                                              "layout",
                                              "plugin",
                                              "instructions",
                                              "disabled_providers",
                                              "enabled_providers",
                                              "tui/**",
                                              "keybinds/**",
                                              "permission/**",
                                              "tools/**",
                                              "watcher/ignore",
                                              "compaction/**",
                                              "command/*/template",
                                              "command/*/description",
                                              "command/*/agent",
                                              "command/*/model",
                                              "command/*/subtask",
                                              "agent/*/description",
                                              "agent/*/mode",
                                              "agent/*/model",
                                              "agent/*/prompt",
                                              "agent/*/temperature",
                                              "agent/*/top_p",
                                              "agent/*/steps",
                                              "agent/*/disable",
                                              "agent/*/tools/**",
                                              "agent/*/permission/**",
                                              "mode/*/model",
                                              "mode/*/prompt",
                                              "mode/*/tools/**",
                                              "formatter/*/command",
                                              "formatter/*/extensions",
                                              "formatter/*/disabled",
                                              "lsp/*/command",
                                              "lsp/*/extensions",
                                              "lsp/*/disabled",
                                              "provider/*/npm",
                                              "provider/*/name",
                                              "provider/*/whitelist",
                                              "provider/*/blacklist",
                                              "provider/*/options/baseURL",
                                              "provider/*/options/timeout",
                                              "provider/*/models/*/name",
                                              "provider/*/models/*/limit/**",
                                              "provider/*/models/*/tool_call",
                                              "provider/*/models/*/reasoning"};
constexpr std::string_view kMcpEntries[] = {"mcp/*"};

constexpr std::string_view kAiderKeys[] = {"model",
                                           "weak-model",
                                           "editor-model",
                                           "edit-format",
                                           "editor-edit-format",
                                           "architect",
                                           "auto-accept-architect",
                                           "reasoning-effort",
                                           "thinking-tokens",
                                           "timeout",
                                           "verify-ssl",
                                           "cache-prompts",
                                           "max-chat-history-tokens",
                                           "map-tokens",
                                           "map-refresh",
                                           "map-multiplier-no-files",
                                           "restore-chat-history",
                                           "dark-mode",
                                           "light-mode",
                                           "pretty",
                                           "stream",
                                           "code-theme",
                                           "*-color",
                                           "show-diffs",
                                           "show-model-warnings",
                                           "check-model-accepts-settings",
                                           "git",
                                           "gitignore",
                                           "add-gitignore-files",
                                           "aiderignore",
                                           "subtree-only",
                                           "auto-commits",
                                           "dirty-commits",
                                           "attribute-*",
                                           "commit-prompt",
                                           "commit-language",
                                           "chat-language",
                                           "dry-run",
                                           "skip-sanity-check-repo",
                                           "watch-files",
                                           "lint",
                                           "lint-cmd",
                                           "auto-lint",
                                           "test",
                                           "test-cmd",
                                           "auto-test",
                                           "analytics",
                                           "analytics-disable",
                                           "check-update",
                                           "just-check-update",
                                           "show-release-notes",
                                           "read",
                                           "file",
                                           "vim",
                                           "yes-always",
                                           "verbose",
                                           "encoding",
                                           "line-endings",
                                           "suggest-shell-commands",
                                           "fancy-input",
                                           "multiline",
                                           "notifications",
                                           "detect-urls",
                                           "editor",
                                           "disable-playwright",
                                           "openai-api-base"};

constexpr std::string_view kCursorKeys[] = {
    "version",          "editor/**",    "display/**",     "permissions/allow", "approvalMode",
    "permissions/deny", "sandbox/mode", "attribution/**", "model/modelId",     "hasChangedDefaultModel"};

constexpr std::string_view kCopilotKeys[] = {"model",
                                             "theme",
                                             "banner",
                                             "beep",
                                             "render_markdown",
                                             "screen_reader",
                                             "stream",
                                             "trusted_folders",
                                             "log_level",
                                             "allowed_urls",
                                             "parallel_tool_execution",
                                             "denied_urls",
                                             "auto_update",
                                             "include_coauthor",
                                             "asked_setup_terminals"};

constexpr std::string_view kGooseKeys[] = {"GOOSE_PROVIDER",
                                           "GOOSE_MODEL",
                                           "GOOSE_MODE",
                                           "GOOSE_TEMPERATURE",
                                           "GOOSE_MAX_TURNS",
                                           "GOOSE_CONTEXT_STRATEGY",
                                           "GOOSE_AUTO_COMPACT_THRESHOLD",
                                           "GOOSE_CLI_*",
                                           "GOOSE_LEAD_*",
                                           "GOOSE_PLANNER_*",
                                           "GOOSE_TOOLSHIM*",
                                           "EDIT_MODE",
                                           "OLLAMA_HOST",
                                           "OPENAI_HOST",
                                           "OPENAI_BASE_PATH",
                                           "ANTHROPIC_HOST"};
constexpr std::string_view kGooseServers[] = {"extensions/*"};

constexpr std::string_view kAmpKeys[] = {"amp.notifications.*",    "amp.permissions/**",      "amp.tools.disable",
                                         "amp.tools.stopTimeout",  "amp.git.commit.*",        "amp.showCosts",
                                         "amp.updates.mode",       "amp.todos.enabled",       "amp.terminal.theme",
                                         "amp.commands.allowlist", "amp.dangerouslyAllowAll", "amp.fuzzy.*"};
constexpr std::string_view kAmpServers[] = {"amp.mcpServers/*"};

constexpr std::string_view kCrushKeys[] = {"$schema",
                                           "models/*/model",
                                           "models/*/provider",
                                           "models/*/reasoning_effort",
                                           "models/*/max_tokens",
                                           "models/*/think",
                                           "providers/*/id",
                                           "providers/*/name",
                                           "providers/*/type",
                                           "providers/*/base_url",
                                           "providers/*/disable",
                                           "lsp/*/command",
                                           "lsp/*/args",
                                           "lsp/*/filetypes",
                                           "options/context_paths",
                                           "options/disabled_tools",
                                           "options/debug",
                                           "options/tui/**",
                                           "permissions/allowed_tools"};

constexpr std::string_view kContinueKeys[] = {"name",
                                              "version",
                                              "schema",
                                              "models/name",
                                              "models/provider",
                                              "models/model",
                                              "models/roles",
                                              "models/apiBase",
                                              "models/capabilities",
                                              "models/uses",
                                              "rules/**",
                                              "context/provider",
                                              "prompts/name",
                                              "models/defaultCompletionOptions/**",
                                              "prompts/prompt",
                                              "prompts/description"};
constexpr std::string_view kContinueServers[] = {"mcpServers"};

constexpr std::string_view kGrokKeys[] = {"defaultModel", "models"};

constexpr auto kTextFiles = SettingsFormat::text;
constexpr auto kJsonSettings = SettingsFormat::json;

constexpr SettingsFile kClaudeFiles[] = {{".claude/settings.json", kJsonSettings, kClaudeKeys, {}},
                                         {".claude/keybindings.json", kJsonSettings, kClaudeKeyboardKeys, {}},
                                         {".claude/CLAUDE.md", kTextFiles, {}, {}},
                                         {".claude/agents", kTextFiles, {}, {}},
                                         {".claude/commands", kTextFiles, {}, {}},
                                         {".claude/skills", kTextFiles, {}, {}},
                                         {".claude/rules", kTextFiles, {}, {}},
                                         {".claude/output-styles", kTextFiles, {}, {}}};
constexpr SettingsFile kCodexFiles[] = {{".codex/config.toml", SettingsFormat::toml, kCodexKeys, kCodexServers},
                                        {".codex/AGENTS.md", kTextFiles, {}, {}},
                                        {".codex/prompts", kTextFiles, {}, {}},
                                        {".codex/rules", kTextFiles, {}, {}},
                                        {".codex/skills", kTextFiles, {}, {}}};
constexpr SettingsFile kGeminiFiles[] = {{".gemini/settings.json", kJsonSettings, kGeminiKeys, kMcpServers},
                                         {".gemini/GEMINI.md", kTextFiles, {}, {}},
                                         {".gemini/commands", kTextFiles, {}, {}}};
constexpr SettingsFile kQwenFiles[] = {{".qwen/settings.json", kJsonSettings, kGeminiKeys, kMcpServers},
                                       {".qwen/QWEN.md", kTextFiles, {}, {}},
                                       {".qwen/commands", kTextFiles, {}, {}}};
constexpr SettingsFile kOpencodeFiles[] = {
    {".config/opencode/opencode.json", kJsonSettings, kOpencodeKeys, kMcpEntries},
    {".config/opencode/opencode.jsonc", kJsonSettings, kOpencodeKeys, kMcpEntries},
    {".config/opencode/AGENTS.md", kTextFiles, {}, {}},
    {".config/opencode/agent", kTextFiles, {}, {}},
    {".config/opencode/agents", kTextFiles, {}, {}},
    {".config/opencode/command", kTextFiles, {}, {}},
    {".config/opencode/commands", kTextFiles, {}, {}},
    {".config/opencode/skill", kTextFiles, {}, {}},
    {".config/opencode/skills", kTextFiles, {}, {}},
    {".config/opencode/themes", kTextFiles, {}, {}}};
constexpr SettingsFile kAiderFiles[] = {{".aider.conf.yml", SettingsFormat::yaml, kAiderKeys, {}}};
constexpr SettingsFile kCursorFiles[] = {{".cursor/cli-config.json", kJsonSettings, kCursorKeys, {}},
                                         {".cursor/mcp.json", kJsonSettings, {}, kMcpServers},
                                         {".cursor/rules", kTextFiles, {}, {}},
                                         {".cursor/commands", kTextFiles, {}, {}}};
constexpr SettingsFile kCopilotFiles[] = {{".copilot/config.json", kJsonSettings, kCopilotKeys, {}},
                                          {".copilot/mcp-config.json", kJsonSettings, {}, kMcpServers},
                                          {".copilot/copilot-instructions.md", kTextFiles, {}, {}},
                                          {".copilot/agents", kTextFiles, {}, {}}};
constexpr SettingsFile kGooseFiles[] = {{".config/goose/config.yaml", SettingsFormat::yaml, kGooseKeys, kGooseServers},
                                        {".config/goose/.goosehints", kTextFiles, {}, {}},
                                        {".config/goose/recipes", kTextFiles, {}, {}}};
constexpr SettingsFile kAmpFiles[] = {{".config/amp/settings.json", kJsonSettings, kAmpKeys, kAmpServers},
                                      {".config/amp/AGENTS.md", kTextFiles, {}, {}}};
constexpr SettingsFile kCrushFiles[] = {{".config/crush/crush.json", kJsonSettings, kCrushKeys, kMcpEntries}};
constexpr SettingsFile kContinueFiles[] = {
    {".continue/config.yaml", SettingsFormat::yaml, kContinueKeys, kContinueServers},
    {".continue/rules", kTextFiles, {}, {}}};
constexpr SettingsFile kGrokFiles[] = {{".grok/user-settings.json", kJsonSettings, kGrokKeys, {}},
                                       {".grok/GROK.md", kTextFiles, {}, {}}};

// Where the agents keep logins and histories, for the report.
constexpr std::string_view kClaudeNever[] = {".claude.json", ".claude/.credentials.json"};
constexpr std::string_view kCodexNever[] = {".codex/auth.json", ".codex/.credentials.json"};
constexpr std::string_view kGeminiNever[] = {".gemini/.env", ".gemini/oauth_creds.json",
                                             ".gemini/mcp-oauth-tokens.json"};
constexpr std::string_view kQwenNever[] = {".qwen/.env", ".qwen/oauth_creds.json"};
constexpr std::string_view kOpencodeNever[] = {".local/share/opencode/auth.json",
                                               ".local/share/opencode/mcp-auth.json"};
constexpr std::string_view kAiderNever[] = {".env", ".aider/oauth-keys.env", ".aider.model.settings.yml"};
constexpr std::string_view kGooseNever[] = {".config/goose/secrets.yaml"};
constexpr std::string_view kAmpNever[] = {".local/share/amp/secrets.json"};
constexpr std::string_view kCrushNever[] = {".local/share/crush/crush.json"};
constexpr std::string_view kContinueNever[] = {".continue/.env", ".continue/config.json"};

constexpr std::string_view kClaudeQuiet[] = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1"};
constexpr std::string_view kOpencodeQuiet[] = {"OPENCODE_DISABLE_AUTOUPDATE=1"};

constexpr KnownAgent kAgents[] = {
    {"claude", kAnthropic, kClaudeFiles, kClaudeNever, kClaudeQuiet},
    {"codex", kOpenAi, kCodexFiles, kCodexNever, {}},
    {"gemini", kGoogle, kGeminiFiles, kGeminiNever, {}},
    {"qwen", kOpenAi, kQwenFiles, kQwenNever, {}},
    {"opencode", kAny, kOpencodeFiles, kOpencodeNever, kOpencodeQuiet},
    {"aider", kAny, kAiderFiles, kAiderNever, {}},
    {"goose", kAny, kGooseFiles, kGooseNever, {}},
    {"crush", kAny, kCrushFiles, kCrushNever, {}},
    {"cn", kAny, kContinueFiles, kContinueNever, {}},
    {"cursor-agent", {}, kCursorFiles, {}, {}},
    {"copilot", {}, kCopilotFiles, {}, {}},
    {"amp", {}, kAmpFiles, kAmpNever, {}},
    {"grok", {}, kGrokFiles, {}, {}},
};

}  // namespace

std::span<const KnownAgent> knownAgents() { return kAgents; }

const KnownAgent* findAgent(std::string_view program) {
  program.remove_prefix(program.rfind('/') + 1);
  for (const KnownAgent& agent : kAgents)
    if (agent.program == program) return &agent;
  return nullptr;
}

}  // namespace caisson::cli
