// Texts of agents with a secret beside its name, and ordinary ones.
#include "cli/agent/named_secrets.h"

#include <gtest/gtest.h>

#include "cli/agent/settings.h"

namespace caisson::cli {
namespace {

struct TextCase {
  const char* path;
  const char* text;
};

constexpr TextCase kSecretTexts[] = {
    // Documents, in which the value is below its name.
    {"recipe.yaml", "api_keys:\n  - hunter\n"},
    {"recipe.yaml", "password: >-\n  hunter\n"},
    {"recipe.yaml", "password: |-\n  hunter\n"},
    {"recipe.yaml", "secret:\n- hunter\n"},
    {"recipe.yaml", "extensions:\n  - type: stdio\n    args:\n      - -a\n      - hunter\n    cmd: redis-cli\n"},
    {"recipe.yaml", "extensions:\n  - cmd: x\n    envs:\n      TEAM: hunter\n"},
    {"tool.json", "{\"\\u0061pi\\u004bey\": \"hunter\"}\n"},
    {"tool.toml", "args = [\n  \"x\", \"--header\", \"x-api-key\", \"hunter\"]\n"},
    {"agent.md", "---\nname: a\nmcpServers:\n  - x:\n      command: x\n      env:\n        TEAM: hunter\n---\nText\n"},
    {"notes.md", "```yaml\npassword: >-\n  hunter\n```\n"},
    {"notes.md", "```yaml\napi_keys:\n  - hunter-81x\n```\n"},
    // Blocks of code, read as files of their kind.
    {"k8s.md", "Deploy:\n\n```yaml\nenv:\n  - name: DB_PASSWORD\n    value: hunter2pw01\n```\n"},
    {"k8s.md", "```yaml\nkind: Pod\nspec:\n  env:\n    ACME: hunter\n```\n"},
    {"k8s.md", "1. Deploy:\n\n   ```yaml\n   spec:\n     env:\n       ACME: hunter\n   ```\n"},
    {"k8s.md", "> ```yml\n> spec:\n>   env:\n>     ACME: hunter\n> ```\n"},
    {"k8s.md", "~~~~\nspec:\n  env:\n    ACME: hunter\n  # ~~~\n~~~~\n"},
    {"k8s.md", "``` {.yaml title=\"x\"}\nspec:\n  env:\n    ACME: hunter\n"},
    {"k8s.md", "```yaml\nkind: A\n---\nspec:\n  env:\n    ACME: hunter\n```\n"},
    {"ecs.md", "ECS:\n\n```json\n{\"name\": \"DB_PASSWORD\", \"value\": \"hunter2pw02\"}\n```\n"},
    {"ecs.md", "```\n{\"a\": {\"env\": {\"ACME\": \"hunter\"}}}\n```\n"},
    {"a.md", "```toml\n[a.env]\nACME = \"hunter\"\n```\n"},
    {"a.md", "```ini\npassword = hunter\n```\n"},
    // A name and a value apart from each other.
    {"k8s.txt", "- name: DB_PASSWORD\n  value: hunter2pw01\n"},
    {"ecs.md", "{\"value\": \"hunter2pw02\", \"name\": \"DB_PASSWORD\"}\n"},
    {"beans.xml", "<bean><property name=\"password\" value=\"hunter\"/></bean>\n"},
    {"beans.md", "<property name=\"password\" value=\"hunter2pw06\"/>\n"},
    {"a.md", "aws ssm put-parameter --name /prod/db_password --value hunter2pw10\n"},
    {"main.tf", "variable \"db_password\" {\n  default = \"hunter\"\n}\n"},
    {"main.tf",
     "variable \"db_password\" {\n  description = \"a b c d e f g h i j k l m n o\"\n  default = \"hunter\"\n}\n"},
    {"Dockerfile", "FROM x\nENV DB_PASSWORD hunter\n"},
    {"vhost.conf", "SetEnv DB_PASSWORD hunter\n"},
    {"a.md", "fastcgi_param DB_PASSWORD hunter2pw11;\n"},
    {"users.csv", "user,password\nadmin,hunter2pw05\n"},
    {"users.md", "user;password\n-;-\nadmin;hunter2pw05\n"},
    {"users.tsv", "a\tb\nuser\tpassword\nadmin\thunter2pw05\n"},
    {"u.sql", "CREATE USER app IDENTIFIED BY 'hunter';\n"},
    {"u.md", "CREATE USER app IDENTIFIED WITH mysql_native_password BY 'hunter2pw08';\n"},
    {"pg.md", "Put into ~/.pgpass:\n\n```\ndb.example:5432:app:app:hunter\n```\n"},
    {"pg.txt", "*:*:*:app:hunter\n"},
    // Elements, shells, lists of logins.
    {"notes.md", "<password>hunter</password>\n"},
    {"config.xml", "<password>hunter</password>\n"},
    {"notes.md", "setenv API_KEY hunter81\n"},
    {"run.csh", "setenv API_KEY hunter\n"},
    {"run.fish", "set -x API_KEY hunter\n"},
    {"run.fish", "set -gx API_KEY hunter\n"},
    {"notes.md", "export API_KEY 'hunter81'\n"},
    {"notes.txt", "machine api.example login me password hunter81\n"},
    {"notes.txt", "machine api.example login me password hunter\n"},
    {"notes.md", "Credentials: admin / hunter81\n"},
    {"login.ini", "[auth]\nuser me\npassword hunter81\n"},
    {"notes.md", "os.environ.setdefault(\"API_KEY\", \"hunter81\")\n"},
    // Sentences and tables.
    {"notes.md", "Password: **hunter81**\n"},
    {"notes.md", "The password is: hunter81\n"},
    {"notes.md", "Password for staging: hunter81\n"},
    {"notes.md", "DB password (prod): hunter81\n"},
    {"notes.md", "API key for Acme: hunter81\n"},
    {"notes.md", "| API key | hunter81 |\n"},
    {"notes.md", "| user | password |\n|---|---|\n| admin | hunter81 |\n"},
    {"notes.md", "| API key | user |\n|:--|---|\n| hunter81 | me |\n| - | x |\n"},
    {"notes.md", "API key -> hunter81\n"},
    {"notes.md", "password `hunter81`\n"},
    {"notes.md", "Authorization: ApiKey hunter81\n"},
    {"notes.md", "-H \"Authorization: ApiKey hunter81\"\n"},
    {"notes.md", "Authorization: Digest username=\"me\", response=\"hunter81\"\n"},
    // Passwords that begin with a dollar sign or a star.
    {"notes.md", "password: '$hunter81'\n"},
    {"notes.md", "password: $Hunter81x\n"},
    {"tool.json", "{\"args\": [\"--key=$hunter-81\"]}"},
    {"tool.json", "{\"args\": [\"--password=*hunter\"]}"},
    {"tool.json", "{\"access_token\": 948372615}"},
    {"notes.md", "access_token: 948372615\n"},
    // Names.
    {"run.sh", "redis-server --requirepass hunter\n"},
    {"run.sh", "x --dbpass hunter\n"},
    {"notes.md", "PGPASS=hunter81 make\n"},
    {"notes.md", "SSHPASS=hunter81 sshpass -e ssh h\n"},
    {"run.sh", "keytool -storepass hunter -list\n"},
    {"run.sh", "jarsigner -keypass hunter x\n"},
    {"run.sh", "ldapsearch --bindpw hunter\n"},
    {"notes.md", "bindpw hunter81\n"},
    {"notes.md", "rootpw: hunter81\n"},
    {"login.ini", "pass_phrase = hunter\n"},
    {"run.sh", "x --pass-phrase hunter\n"},
    {"notes.md", "WIFI_PSK=hunter81\n"},
    {"run.sh", "x --totp hunter\n"},
    {"notes.md", "adminPass: hunter81\n"},
    {"notes.md", "user/pass: me/hunter81\n"},
    {"notes.md", "Passwort: hunter81\n"},
    {"notes.md", "Das Kennwort: hunter81\n"},
    {"notes.md", "密码: hunter81\n"},
    {"notes.md", "数据库密码：hunter81\n"},
    {"notes.md", "口令: hunter81\n"},
    // Signs.
    {"notes.md", "Password — hunter81\n"},
    {"notes.md", "- password – `hunter81`\n"},
    {"notes.md", "password → hunter81\n"},
    {"notes.md", "password：hunter81\n"},
    {"notes.md", "password\xC2\xA0hunter81\n"},
    {"notes.md", "<password><![CDATA[hunter81]]></password>\n"},
    {"config.xml", "<password><![CDATA[hunter]]></password>\n"},
    // Defaults of programs.
    {"a.js", "const t = process.env.API_TOKEN || \"hunter81\";\n"},
    {"a.js", "const t = process.env.API_TOKEN || 'hunter';\n"},
    {"a.ts", "const t = process.env.API_TOKEN ?? \"hunter\";\n"},
    {"a.ts", "const t = process.env['API_TOKEN'] ?? \"hunter\";\n"},
    {"notes.md", "const t = process.env.API_TOKEN ?? \"hunter81\";\n"},
    {"a.py", "t = os.getenv(\"API_TOKEN\") or \"hunter\"\n"},
};

constexpr TextCase kOrdinaryTexts[] = {
    {"notes.md", "# Tokens\n\nAPI keys:\n- are kept in the vault\n- `src/config.ts` reads them\n"},
    {"notes.md", "Required secrets:\n- NPM_TOKEN\n- GITHUB_TOKEN2\n"},
    {"notes.md", "Password authentication\n\nThe password is required. Password for login: ask the user.\n"},
    {"notes.md", "| option | meaning |\n|---|---|\n| token | the token of the job |\n| max_tokens | 4096 |\n"},
    {"notes.md", "password: '$DB_PASSWORD2' or password: \"$password\" or token: ${TOKEN}\n"},
    {"notes.md", "<password>$PASSWORD</password> <token>...</token>\n"},
    {"notes.md", "setenv API_KEY $KEY, then export API_KEY first\n"},
    {"notes.md", "The token `sha256sum` and the tokenizer `o200k_base` for gpt-4o-mini.\n"},
    {"notes.md", "Authorization: Bearer <token>\nAuthorization: ApiKey $KEY\n"},
    {"notes.md", "Password hashing: argon2id. Token for v2.1.10: see docs/auth2.md\n"},
    {"notes.md", "---\nname: review\ndescription: Use for auth code\ntools: [Read, Grep]\n---\nReview it.\n"},
    {"recipe.yaml",
     "version: 1.0.0\ntitle: x\nextensions:\n  - type: stdio\n    cmd: npx\n    args:\n      - -y\n      - x\n"},
    {"build.yml", "env:\n  NODE_AUTH_TOKEN: ${{ secrets.NPM_TOKEN }}\n  COLOR: 1\nwith:\n  token: ${TOKEN}\n"},
    {"notes.md", "| token | max_tokens |\n|---|---|\n| the job's | 4096 |\n\n| model |\n|---|\n| llama3.1-8b |\n"},
    {"notes.md", "| 18 | roles and quotas per token | OpenSandbox#348 |\n"},
    {"notes.md", "Add `--otp <one-time password>`, or use the second factor.\n"},
    {"notes.md", "Bypass: see below. Compass: north. Trespass: none.\nUse KeePass: it is free.\n"},
    {"notes.md", "The password — argon2id-hashed — is stored. API tokens – see docs/auth2.md → section v2.1.\n"},
    {"notes.md", "密码：请询问用户\n请输入密码\n\nPasswort: bitte den Nutzer fragen\n"},
    {"notes.md", "Pass/fail: 3/4. Checks that pass: all of them.\n<![CDATA[text]]>\n"},
    {"a.js", "const t = process.env.API_TOKEN || '';\nconst u = process.env.API_TOKEN ?? \"<token>\";\n"},
    {"a.js", "if (token || \"a b\".length) run(secret ?? null);\n"},
    {"notes.md", "Set `API_TOKEN` or \"password\" first; token || \"default\".\n"},
    // Blocks of code and tables.
    {"notes.md", "```yaml\nenv:\n  API_KEY: ${API_KEY}\n  DB_PASSWORD: <your password>\n```\n"},
    {"notes.md", "```yaml\nsteps:\n  - run: make test\n    with: {token: $TOKEN}\n```\n"},
    {"notes.md", "```\nARCH=arm64 make\nnpm run build: all\n```\n"},
    {"notes.md", "```sh\nexport PATH=/opt/bin:$PATH\nARCH=arm64 make\n```\n"},
    {"notes.md", "```ts\nconst token = await getToken(session);\n```\n"},
    {"notes.md", "```json\n{\"name\": \"x\", \"scripts\": {\"test\": \"vitest\"}}\n```\n"},
    {"notes.md", "```json\n{\"model\": ...}\n```\n"},
    {"notes.md", "{\"name\": \"password\", \"type\": \"string\", \"value\": \"string\"}\n"},
    {"notes.md", "Listens on fe80:12:ab:cd:ef and 12:30:45:00:11.\nsrc/a.cc:12:5:error: x\n"},
    {"notes.md", "user, token and max_tokens\nme, a1b2c3d4 and 4096, or none\n"},
    {"users.csv", "user,role\nadmin,owner2025a\n"},
    {"notes.md", "The image is identified by its digest. ENV and SetEnv give variables.\n"},
    {"main.tf", "variable \"db_password\" {\n  sensitive = true\n}\nvariable \"region\" {\n  default = \"eu\"\n}\n"},
    {"theme.json", R"({"defs": {"blue": "#0000ff"}, "theme": {"primary": "blue"}})"},
    {"command.toml", "description = \"Counts\"\nprompt = \"\"\"\nCount max_tokens: 8000 of it.\n\"\"\"\n"},
};

TEST(NamedSecrets, FilesWithOneAreLeftOut) {
  for (const TextCase& one : kSecretTexts)
    EXPECT_TRUE(mayHoldSecret(one.path, one.text)) << one.path << "\n" << one.text;
}

TEST(NamedSecrets, OrdinaryFilesAreCopied) {
  for (const TextCase& one : kOrdinaryTexts)
    EXPECT_FALSE(mayHoldSecret(one.path, one.text)) << one.path << "\n" << one.text;
}

}  // namespace
}  // namespace caisson::cli
