// Variables and passwords in the commands of settings: however a program gets them.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "cli/agent/providers.h"
#include "cli/agent/settings.h"

namespace caisson::cli {
namespace {

/// The copy of the settings that `agent` has first.
std::string copyOf(const char* agent, const std::string& text) {
  const auto clean = cleanSettings(findAgent(agent)->settings[0], text);
  EXPECT_TRUE(clean) << clean.error();
  return clean ? clean->text : "";
}

constexpr const char* kServers[] = {
    R"x("command": "bash", "args": ["-c", "LICENSE=canary npx -y srv"])x",
    R"x("command": "bash", "args": ["-c", "license=canary npx -y srv"])x",
    R"x("command": "bash", "args": ["-lc", "export LICENSE=canary; exec srv"])x",
    R"x("command": "sh", "args": ["-c", "cd /srv && team=canary srv"])x",
    R"x("command": "npx", "args": ["-y", "cross-env", "LICENSE=canary", "srv"])x",
    R"x("command": "npx", "args": ["-y", "cross-env", "license=canary", "srv"])x",
    R"x("command": "mcp-proxy", "args": ["-e", "LICENSE", "canary", "--", "srv"])x",
    R"x("command": "docker", "args": ["run", "-i", "--rm", "-e=LICENSE=canary", "img"])x",
    R"x("command": "docker", "args": ["run", "-ie", "license=canary", "img"])x",
    R"x("command": "docker", "args": ["build", "--build-arg=LICENSE=canary", "."])x",
    R"x("command": "timeout", "args": ["100", "env", "license=canary", "srv"])x",
    R"x("command": "env", "args": ["-u", "X", "license=canary", "srv"])x",
    R"x("command": "kubectl", "args": ["exec", "-i", "p", "--", "env", "LICENSE=canary", "srv"])x",
    R"x("command": "sudo", "args": ["-u", "me", "license=canary", "srv"])x",
    R"x("command": "ssh", "args": ["host", "LICENSE=canary", "srv"])x",
    R"x("command": "systemd-run", "args": ["--user", "-E", "license=canary", "srv"])x",
    R"x("command": "systemd-run", "args": ["--setenv=license=canary", "srv"])x",
    R"x("command": "bwrap", "args": ["--setenv", "LICENSE", "canary", "srv"])x",
    R"x("command": "wsl.exe", "args": ["bash", "-c", "LICENSE=canary srv"])x",
    R"x("command": "cmd", "args": ["/c", "set LICENSE=canary&& srv"])x",
    R"x("command": "pwsh", "args": ["-c", "$env:LICENSE='canary'; srv"])x",
};

TEST(AgentVariables, ServerThatIsGivenOneIsLeftOut) {
  const KnownAgent* agent = findAgent("cursor-agent");
  const auto file =
      std::ranges::find_if(agent->settings, [](const auto& one) { return one.path.ends_with("mcp.json"); });
  ASSERT_NE(file, agent->settings.end());
  for (const std::string server : kServers) {
    const auto clean = cleanSettings(*file, R"({"mcpServers": {"docs": {"command": "docs"}, "a": {)" + server + "}}}");
    ASSERT_TRUE(clean) << clean.error();
    EXPECT_EQ(clean->text.find("canary"), std::string::npos) << server;
    EXPECT_NE(clean->text.find("docs"), std::string::npos) << server;
  }
}

constexpr const char* kCommands[] = {
    R"x(bash -c \"LICENSE=canary status\")x",
    R"x(bash -lc \"export LICENSE=canary\")x",
    "sh -c 'license=canary x'",
    "if true; then license=canary notify; fi",
    "test -n x && { license=canary notify; }",
    "! license=canary x",
    "typeset -x license=canary",
    "readonly license=canary",
    "local license=canary; x",
    "docker build --build-arg LICENSE=canary .",
    "curl -b sid=canary https://x",
    "curl --cookie sid=canary https://x",
    "curl -u :canary https://x",
    "curl -E cert.pem:canary https://x",
    "docker login -u me -pcanary reg",
    "cypher-shell -u neo4j -p canary",
    "mysqlsh -pcanary",
    "sqlcmd -Pcanary",
    "ssh-keygen -N canary",
    "htpasswd -b f me canary",
    "htpasswd -nb me canary",
    "rabbitmqadmin -p canary list users",
    "kubectl create secret generic a --from-literal=x=canary",
    "kubectl create secret generic a --from-literal x=canary",
    "vault kv put secret/a value=canary",
    "printf %s canary | gh auth login --with-token",
    "sudo -S x <<<canary",
    "sudo -S x <<< canary",
    "git -c http.extraHeader='X-Foo: canary' fetch",
};

TEST(AgentVariables, CommandThatIsGivenOneIsLeftOut) {
  for (const std::string command : kCommands) {
    for (const std::string& settings :
         {R"({"model": "opus", "statusLine": {"type": "command", "command": ")" + command + "\"}}",
          R"({"model": "opus", "hooks": {"Stop": [{"hooks": [{"type": "command", "command": ")" + command + "\"}]}]}}",
          R"({"model": "opus", "permissions": {"allow": ["Bash()" + command + ")\"]}}"}) {
      const std::string copy = copyOf("claude", settings);
      EXPECT_EQ(copy.find("canary"), std::string::npos) << copy;
      EXPECT_NE(copy.find("opus"), std::string::npos) << copy;
    }
  }
}

TEST(AgentVariables, CommandWithoutASecretIsKept) {
  for (const std::string command :
       {"grep -E TODO src", "rg -e FIXME .", "curl -b cookies.txt https://a.example", "curl -u : --negotiate https://x",
        "curl -c jar=1 https://a.example", "vault kv put secret/a value=@file", "vault kv get -field=x a",
        "kubectl create secret generic a --from-literal=x=$VALUE", "docker run --mount=type=bind,src=/a img",
        "printf %s $TOKEN | gh auth login --with-token", "sudo -S x <<< $ANSWER", "ssh-keygen -N '' -f key",
        "dd if=a of=b", "npx -y srv mode=fast", "make CC=gcc V=1", "docker run -e ACME img"}) {
    const std::string copy = copyOf("claude", R"({"permissions": {"allow": ["Bash()" + command + ")\"]}}");
    EXPECT_NE(copy.find(command.substr(0, 8)), std::string::npos) << command << copy;
  }
}

TEST(AgentVariables, QueryOfARelativePathIsLeftOut) {
  const auto* goose = findAgent("goose");
  ASSERT_NE(goose, nullptr);
  const auto clean = cleanSettings(goose->settings[0], "GOOSE_MODEL: gpt-5\nOPENAI_BASE_PATH: v1/chat?code=canary\n");
  ASSERT_TRUE(clean);
  EXPECT_EQ(clean->text.find("canary"), std::string::npos) << clean->text;
}

}  // namespace
}  // namespace caisson::cli
