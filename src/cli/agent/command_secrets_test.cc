#include "cli/agent/command_secrets.h"

#include <gtest/gtest.h>

#include "cli/agent/secret_text.h"

namespace caisson::cli {
namespace {

constexpr std::string_view kSecretCommands[] = {
    // Over several lines, in pipes and lists.
    "mysql -h db.internal \\\n  -u root \\\n  -phunter app",
    "redis-cli -h db \\\r\n -a hunter ping",
    "docker login -u me \\\n  -p hunter reg.example",
    "sshpass -p \\\n hunter ssh host",
    "cat dump.sql|mysql -phunter app",
    "args: [mysql, -phunter]",
    "args: [mysql,-phunter]",
    "[\"redis-cli\",\"-a\",\"hunter\"]",
    "[\n  \"redis-cli\",\n  \"-a\",\n  \"hunter\"\n]",
    R"({"cmd":"redis-cli","args":["-a","hunter"]})",
    "cmd: redis-cli\nargs:\n  - -a\n  - hunter\n",
    "Bash(redis-cli -a hunter)",
    "mysql -e \"select 1; select 2\" -phunter",
    "mysql -u root -p\"hunter\"",
    // curl, and what has its flags.
    "curl -sSu me:hunter https://api.example/v1",
    "curl -ume:hunter https://api.example/v1",
    "curl -sSume:hunter https://api.example/v1",
    "curl --user=me:hunter https://api.example/v1",
    "curl --proxy-user me:hunter https://api.example/v1",
    "curl --proxy-user=me:hunter https://api.example/v1",
    "curl -U me:hunter -x proxy https://api.example/v1",
    "fetch -sSu me:hunter",
    "fetch -ume:hunter",
    // A header as separate arguments.
    "mcp-proxy --headers x-api-key hunter http://x.example/",
    "mcp-proxy -H x-api-key hunter http://x.example/",
    "mcp-proxy --header X-Api-Key: hunter",
    // The value of a header, whatever its name is.
    "curl -H 'X-Team: hunter' https://api.example",
    "curl -H \"Authorization: Bearer hunter81\" https://api.example",
    "curl -HX-Team:hunter https://api.example",
    "wget --header='X-Team: hunter' https://api.example",
    "npx supergateway --header=X-Team: hunter",
    "[\"-y\", \"mcp-remote\", \"--header\", \"X-Team: hunter\"]",
    // Other programs.
    "echo hunter | sudo -S make install",
    "echo hunter | sudo -kS make install",
    "echo hunter | gh auth login --with-token",
    "smbclient -U me%hunter //srv/share",
    "mycli -u me -phunter",
    "mariadb-import -phunter app",
    "xfreerdp /u:me /p:hunter /v:host",
    "ipmitool -U admin -P hunter chassis",
    "curl -u me':hunter' https://api.example",
    "curl -u me':'hunter https://api.example",
    "sh -c \"curl -u me':hunter' https://api.example\"",
    "valkey-cli -a hunter ping",
    "mongorestore -u a -p hunter",
    "mysqlimport -u a -phunter",
    "openssl rsa -passin pass:hunter",
    "mosquitto_pub -u a -P hunter",
    "http -a me:hunter https://api.example",
    "lftp -u me,hunter sftp.example",
    "docker login -u a -p=hunter",
    "echo -n hunter | docker login --password-stdin",
    "proxy --basic me:hunter",
};

constexpr std::string_view kHarmlessCommands[] = {
    "curl -sSL https://api.example/v1 -o out",
    "curl -u \"$USER:$PASS\" https://api.example",
    "curl --user=me:${PASS} https://api.example",
    "docker run -u 1000:1000 image",
    "go test -run pkg:name",
    "cl -output:file -std:c11",
    "mysql -u root -p app",
    "mysql -h db\n\ngrep -pattern x",
    "redis-cli info | grep -a x",
    "redis-cli -a $REDIS_PASS ping",
    "mysql --version && tar -pxf a.tar",
    "- start redis-cli\n- run git commit -a first\n",
    "curl -H Accept text/plain x",
    "curl -H 'Content-Type: application/json' -H \"Accept-Language: de\" x",
    "curl -H 'X-GitHub-Api-Version: 2022-11-28' x",
    "curl -H \"Authorization: Bearer $TOKEN\" -H 'X-Team: <team>' -H 'X-Key: API_KEY' x",
    "docker -H tcp://localhost:2375 ps",
    "docker -H localhost:2375 ps",
    "grep -H pattern file",
    "echo yes | sudo apt install x",
    "echo $PASS | sudo -S make",
    "date -u +%H:%M && perf -U %s",
    "{'a': 'b', \"it's\": \"c\"}",
    "mcp-proxy -H x-api-key ${KEY}",
    "mkdir -p a,b",
    "echo \"$TOKEN\" | docker login --password-stdin",
    "echo start\ncat token | docker login --password-stdin",
};

TEST(CommandSecrets, PasswordsAreFoundInTextsAndLists) {
  for (const std::string_view text : kSecretCommands) {
    EXPECT_TRUE(holdsSecret(text, TextKind::settings)) << text;
    EXPECT_TRUE(holdsSecret("Notes: first\n```\n" + std::string(text) + "\n```\n", TextKind::prose)) << text;
  }
}

TEST(CommandSecrets, OtherArgumentsAreNone) {
  for (const std::string_view text : kHarmlessCommands) EXPECT_FALSE(hasCommandSecret(text)) << text;
}

}  // namespace
}  // namespace caisson::cli
