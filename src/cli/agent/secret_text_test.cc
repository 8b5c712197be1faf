// Secrets that no name gives away, and ordinary values beside them.
#include "cli/agent/secret_text.h"

#include <gtest/gtest.h>

#include "cli/agent/providers.h"
#include "cli/agent/settings.h"

namespace caisson::cli {
namespace {

constexpr std::string_view kAnywhere[] = {
    // The user and the password of a URL or an address.
    "postgres://app:pw@db.example/app",
    "redis://:pw@cache.example:6379/0",
    "mongodb+srv://app:p%40ss@cluster.example/app",
    "connect to https://me:pass@host.example/ first",
    "app:hunter@db.example:5432/app",
    "app:hunter@tcp(db.example:3306)/app",
    "jdbc:oracle:thin:scott/tiger@//db.example:1521/orcl",
    "sqlplus scott/tiger@orcl",
    // Connection strings.
    "Server=db.example;Database=app;User Id=sa;Password=hunter;",
    "Server=db.example;Uid=sa;Pwd=hunter;",
    "host=db.example user=app password=hunter dbname=app",
    "DefaultEndpointsProtocol=https;AccountName=app;AccountKey=aGVsbG8=;EndpointSuffix=core.example",
    "Endpoint=sb://app.example/;SharedAccessKeyName=Root;SharedAccessKey=abc",
    "jdbc:sqlserver://db.example;user=sa;password=hunter",
    "Data Source=db.example;Persist Security Info=True;User ID=sa;Password=hunter two",
    // Headers.
    "Authorization: Bearer hunter2",
    "send the header Authorization: Basic YXBwOmh1bnRlcg==",
    "Bearer hunter2",
    "authenticate with bearer 8f2k",
    "Basic dXNlcjpwYXNz",
    "Proxy-Authorization: Digest username=\"app\", response=\"6629fae49393a05397450978507c4ef1\"",
    "Cookie: sid=8f2k9d",
    // Tokens by their shape.
    "sk-proj-abcdefghijklmnop1234",
    "sk-ant-api03-abcdefghijklmnopqrst",
    "glpat-abcdefghij0123456789",
    "xoxb-123456789012-abcdefghijkl",
    "AKIAIOSFODNN7ABCDEFG",
    "https://hooks.slack.com/services/T0123456A/B0123456B/abcdefghijklmnopqrstuvwx",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJlLWhlcmU",
    "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk",
    // Random characters.
    "0123456789abcdef0123456789abcdef",
    "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzzKEY",
    "aB3+dE5/gH7+jK9/mN1+pQ3=",
    "kJhQwErTyUiOpAsDfGhJ",
    "xqzvkwjhgfdsplmnbvtr",
    "XQZVKWJHGFDSPLMNBVTR",
    "4929123456789012345",
    // Programs that take a password behind a short flag.
    "mysql -u root -phunter app",
    "redis-cli -h cache.example -a hunter",
    "sqlcmd -S db.example -U sa -P hunter",
    "sshpass -p hunter ssh host.example",
    "curl -u app:hunter https://host.example",
    // A sentence.
    "The password is hunter2.",
};

constexpr std::string_view kOrdinary[] = {
    "npx -y @modelcontextprotocol/server-filesystem@1.2.3 /home/me/project",
    "npm:left-pad@1.3.0",
    "npm run test:unit",
    "docker run --rm -i mcp/time:1.2.0",
    "registry.example/tool:v1@sha256",
    "mailto:jane@example.org",
    "git@github.com:owner/name.git",

    "jane@example.org",
    "tool:build@latest",
    "src/components/Button2/IconButton/PrimaryAction.tsx",
    "HTTPServerURLParserFactory",
    "getUserAccountByEmailAddressFromDatabase",
    "internationalization",
    "claude-3-5-sonnet-20241022",
    "us.anthropic.claude-3-7-sonnet-20250219-v1:0",
    "gpt-4o-2024-08-06",
    "Qwen/Qwen2.5-Coder-32B-Instruct",
    "use bearer tokens for it",
    "Bearer authentication",
    "Basic usage of the tool",
    "The password is required.",
    "http://localhost:8080/mcp",
    "https://mcp.example/v1/sse",
    "postgres://db.example:5432/app",

    "--port 8080 --log-level debug",
    "mysql -h db.example -u app",
    "node -p 1+1",
    "python3 -m server --stdio",
    "host=db.example user=app dbname=app",
    "mkdir -p build/x",
    "cp -a from to",
    "docker run -p 8080:80 image",
    "Bearer ${TOKEN}",

};

TEST(SecretText, IsFoundWithoutAName) {
  for (const std::string_view text : kAnywhere) {
    EXPECT_TRUE(holdsSecret(text, TextKind::settings)) << text;
    EXPECT_TRUE(holdsSecret("Notes: first\n" + std::string(text) + "\nlast", TextKind::prose)) << text;
  }
}

constexpr std::string_view kTellingUrls[] = {
    "https://x.example/mcp?k=hunter",
    "https:/x.example/mcp?k=hunter",
    "https:x.example/mcp?k=hunter",
    "https:\\\\x.example\\mcp?k=hunter",
    "HTTPS:/x.example/mcp?hunter",
    "https://x.example/mcp;k=hunter",
    "x.example/?k=hunter",
    "x.example?k=hunter",
    "localhost:8080/mcp?a=1&k=hunter",
    "x.example/mcp;k=hunter",
    "curl -s x.example/?k=hunter",
    "https:/me:hunter@x.example/mcp",
    "wss:/x.example/mcp?k=hunter",
    "https:/x.example/a1b2c3/mcp",
    "--url=https:/x.example/mcp?k=hunter",
};

constexpr std::string_view kPlainUrls[] = {
    "https:/x.example/mcp",
    "x.example/mcp",
    "localhost:8080/mcp?a=$KEY",
    "what?a=b",
    "./a.sh;X=1 make",
    "make;X=1 make",
    "a.sh;X=1",
    "src/*.ts?(x)",
    "http:8080",
    "x.example/?k=<key>",
    "lib/a.rb?",
    "c ? a=1 : b",
};

TEST(SecretText, QueriesOfUrlsAreSecretsInSettings) {
  for (const std::string_view text : kTellingUrls) EXPECT_TRUE(holdsSecret(text, TextKind::settings)) << text;
  for (const std::string_view text : kPlainUrls) EXPECT_FALSE(holdsSecret(text, TextKind::settings)) << text;
  EXPECT_FALSE(holdsSecret("see x.example/?page=2 or https://x.example/?page=2", TextKind::prose));
}

TEST(SecretText, OrdinaryValuesAreNone) {
  for (const std::string_view text : kOrdinary) {
    EXPECT_FALSE(holdsSecret(text, TextKind::prose)) << text;
    EXPECT_FALSE(holdsSecret(text, TextKind::settings)) << text;
  }
}

/// A minute if it took the square of the length.
TEST(SecretText, LongTextsAreJudgedInLinearTime) {
  std::string word = std::string(1900, 'u') + ":p", text;
  for (int i = 0; i < 1000; ++i) word += "@1";
  for (int i = 0; i < 240; ++i) text += word + " ";
  EXPECT_FALSE(holdsSecret(text, TextKind::settings));
  std::string brackets;
  for (int i = 0; i < 240; ++i) brackets += std::string(3900, '[') + " ";
  EXPECT_FALSE(holdsSecret(brackets, TextKind::settings));
}

}  // namespace
}  // namespace caisson::cli
