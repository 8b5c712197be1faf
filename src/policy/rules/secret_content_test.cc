#include "policy/rules/secret_content.h"

#include <gtest/gtest.h>

#include <string>

namespace caisson::policy {
namespace {

std::optional<std::string_view> why(std::string_view name, std::string_view text, bool whole = true) {
  return secretIn(judgeSecret("/p", name, false), text, whole);
}

TEST(SecretContent, PrivateKeyIsFoundByItsHeader) {
  EXPECT_TRUE(hasPrivateKey("-----BEGIN OPENSSH PRIVATE KEY-----\nx"));
  EXPECT_TRUE(
      hasPrivateKey("-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n-----BEGIN RSA PRIVATE KEY-----\n"));
  EXPECT_TRUE(hasPrivateKey("-----BEGIN PGP PRIVATE KEY BLOCK-----\nx"));
  EXPECT_TRUE(hasPrivateKey("PuTTY-User-Key-File-3: ssh-ed25519"));
  EXPECT_TRUE(hasPrivateKey("[Interface]\nPrivateKey = x\n"));
  EXPECT_TRUE(hasPrivateKey("{\"kty\":\"RSA\",\"d\":\"x\"}"));
  EXPECT_FALSE(hasPrivateKey("-----BEGIN CERTIFICATE-----\nabc"));
  EXPECT_FALSE(hasPrivateKey("-----BEGIN PRIVATE KEY-----\n<your key>\n"));
  EXPECT_FALSE(hasPrivateKey("how to make a PRIVATE KEY"));
  EXPECT_FALSE(hasPrivateKey(std::string_view("-----BEGIN \0PRIVATE KEY", 23))) << "a program that looks for keys";
}

TEST(SecretContent, BinaryKeysAreToldFromCertificates) {
  const std::string body(200, 'x');
  EXPECT_TRUE(hasPrivateKey(std::string("\x30\x82\x04\xA4\x02\x01\x00\x02", 8) + body)) << "PKCS #1 or #8";
  EXPECT_TRUE(hasPrivateKey(std::string("\xFE\xED\xFE\xED", 4) + body)) << "a Java store";
  EXPECT_FALSE(hasPrivateKey(std::string("\x30\x82\x04\xA4\x30\x82\x03\x10", 8) + body)) << "a certificate";
  EXPECT_TRUE(why("x.key", std::string("\x30\x82\x04\xA4\x02\x01\x00\x02", 8) + body));
  EXPECT_FALSE(why("x.key", std::string("\x30\x82\x04\xA4\x30\x82\x03\x10", 8) + body));
}

TEST(SecretContent, CertificatesAndPublicKeysAreShown) {
  for (const char* text : {"# bundle\n-----BEGIN CERTIFICATE-----\nabc", "-----BEGIN PUBLIC KEY-----\nabc",
                           "-----BEGIN PGP PUBLIC KEY BLOCK-----\nx", "ssh-ed25519 AAAA me\n", "", "\n"}) {
    EXPECT_FALSE(why("server.pem", text)) << text;
    EXPECT_FALSE(why("release.key", text)) << text;
    EXPECT_FALSE(why("release.asc", text)) << text;
  }
  EXPECT_TRUE(why("server.pem", "-----BEGIN CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\nx"));
  EXPECT_TRUE(why("master.key", "0123456789abcdef")) << "not known to be public";
}

TEST(SecretContent, KeyBehindTheFirstKilobytesIsFound) {
  const std::string text = std::string(100'000, '#') + "\n-----BEGIN PRIVATE KEY-----\nMII";
  EXPECT_TRUE(why("bundle.pem", text));
  EXPECT_TRUE(why("backup", text));
  EXPECT_TRUE(why("backup", "x", false)) << "larger than what is read";
  EXPECT_TRUE(why("bundle.pem", "-----BEGIN CERTIFICATE-----", false));
  EXPECT_FALSE(why("data.json", "x", false)) << "data, not a configuration";
}

TEST(SecretContent, ProgramsWithoutAnEndingAreShown) {
  EXPECT_FALSE(why("caisson",
                   std::string("\x7F"
                               "ELF",
                               4) +
                       "-----BEGIN PRIVATE KEY-----",
                   false));
  EXPECT_TRUE(why("deploy_key", "-----BEGIN PRIVATE KEY-----\nMII"));
}

TEST(SecretContent, TokensAreFoundByShape) {
  for (const char* token :
       {"AKIAIOSFODNN7REALKEY", "ghp_aB3dE5gH7jK9mN1pQ3sT5vX7zA9bC1dE3fG5", "github_pat_11ABCDE0aB3dE5gH7jK9mN_x",
        "glpat-aB3dE5gH7jK9mN1pQ3sT", "xoxb-123456789012-123456789012-aB3dE5gH7jK9", "sk_live_aB3dE5gH7jK9mN1pQ3",
        "sk-ant-api03-aB3dE5gH7jK9mN1pQ3sT", "sk-proj-aB3dE5gH7jK9mN1pQ3sT", "AIzaSyA1bC3dE5fG7hI9jK1lM3nO5pQ7rS9tU1v",
        "npm_aB3dE5gH7jK9mN1pQ3sT5vX7zA9bC1dE3fG5",
        "token: eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.aB3dE5gH7jK9mN1p"}) {
    EXPECT_TRUE(findToken(std::string("x = \"") + token + "\"\n")) << token;
    EXPECT_TRUE(why("ci.yaml", std::string("x: ") + token + "\n")) << token;
  }
  for (const char* text :
       {"ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "sk-learn", "risk-assessment-of-many-things-in-it", "AKIA",
        "eyJhbGciOiJIUzI1NiJ9", "my_ghp_ aB3d", "hf_hub_download", "npm_config_registry"}) {
    EXPECT_FALSE(findToken(text)) << text;
  }
}

TEST(SecretContent, SettingsNeedAValue) {
  for (const char* text :
       {"//registry.example.org/:_authToken=aB3dE5gH", "password: hunter2", "\"password\": \"hunter2\"",
        "<password>hunter2</password>", "define('DB_PASSWORD', 'hunter2');", "'password' => 'hunter2',",
        "<add key=\"ClearTextPassword\" value=\"hunter2\" />", "export API_TOKEN=hunter2", "Server=x;Password=hunter2;",
        "$config['password'] = 'hunter2';", "requirepass hunter2",
        "\"github-oauth\": {\"github.com\": \"hunter2hunter\"}", "\"Authorization\": \"Bearer hunter2hunter\"",
        "user = \"me:hunter2\"", "client_secret: |\n  hunter2\n", "SIGNING_KEY=aB3dE5gH7jK9mN1pQ3sT"}) {
    EXPECT_TRUE(hasSecretSetting(text, false)) << text;
  }
  for (const char* text :
       {"//registry.example.org/:_authToken=${NPM_TOKEN}", "password:", "\"password\": \"\"",
        "<password></password>\n<x>y</x>", "# password: hunter2", "password: <your password>", "max_tokens: 4096",
        "password_file: /run/secrets/x", "token: {{ token }}", "\"password\": null", "password = $DB_PASSWORD",
        "key: value", "registry=https://registry.example.org/", "'password' => env('DB_PASSWORD', '')",
        "\"apiKey\": \"{env:API_KEY}\""}) {
    EXPECT_FALSE(hasSecretSetting(text, false)) << text;
  }
  EXPECT_FALSE(hasSecretSetting("POSTGRES_PASSWORD: postgres", true));
  EXPECT_TRUE(hasSecretSetting("POSTGRES_PASSWORD: aB3!dE5gH7jK9", true));
  EXPECT_FALSE(hasSecretSetting("\"token\": \"Zugriffsschl\\u00fcssel\"", true));
}

TEST(SecretContent, TokensThatManualsShowDoNotCount) {
  for (const char* text :
       {"AKIAIOSFODNN7EXAMPLE", "sk_test_4eC39HqLyjWDarjtT1zdp7dc",
        "AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRAZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
        "token: eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0"
        ".SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c"}) {
    EXPECT_FALSE(findToken(text)) << text;
  }
  EXPECT_FALSE(hasSecretSetting("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", false));
  EXPECT_FALSE(hasSecretSetting("SECRET_KEY = 'django-insecure-aB3!dE5gH7jK9mN1pQ3sT'", true));
}

TEST(SecretContent, TokensWithoutAPrefix) {
  EXPECT_TRUE(findToken("run('MTE5NDQ4MjAxOTM3NDY1MTU5.Gq7Vn3.xKd9Lm2Wt5Zb8Rc4Yf6Hj1Ps0GaTeUw8Q')")) << "Discord";
  EXPECT_FALSE(findToken("run('MTE5NDQ4MjAxOTM3NDY1MTU5.Gq7Vn3.xKd9Lm2')")) << "short";
  EXPECT_FALSE(findToken("run('MyModuleWithAVeryLongNameX.method.xKd9Lm2Wt5Zb8Rc4Yf6Hj1Ps0GaTeUw8Q')")) << "no number";
  EXPECT_TRUE(findToken("'k3T8Q~q7Vn3xKd9Lm2Wt5Zb8Rc4Yf6Hj1Ps0GaT'")) << "Azure";
  EXPECT_TRUE(findToken("'9f3c1b7a5e2d804c6f1e9a7b3d5c2048-us14'")) << "Mailchimp";
  EXPECT_FALSE(findToken("9f3c1b7a5e2d804c6f1e9a7b3d5c2048-usual")) << "a digest";
}

TEST(SecretContent, ValuesBesideTheirName) {
  for (const char* text :
       {"- name: DB_PASSWORD\n  value: hunter2", R"({"name": "DB_PASSWORD", "value": "hunter2"})",
        R"({"ParameterKey": "DbPassword", "ParameterValue": "hunter2"})",
        "<key>API_TOKEN</key>\n<string>hunter2</string>", "<name>a.ConnectionPassword</name><value>hunter2</value>",
        "<Password>\n  <Value>hunter2</Value>", R"({"name":"Cookie","value":"sid=q7Vn3xKd9Lm2Wt5Z; theme=dark"})",
        "#define SECRET_PASS \"hunter2\"", "user a insecure-password hunter2", "IPSec secret hunter2",
        "set :api_token, 'hunter2'", "rootpw --plaintext hunter2"}) {
    EXPECT_TRUE(hasSecretSetting(text, false)) << text;
  }
  for (const char* text : {"- name: DB_PASSWORD\n  valueFrom:\n    secretKeyRef: x", R"({"name":"Cookie","value":""})",
                           "<field name=\"password\" type=\"password\"/>", "<key>API_TOKEN</key>\n<true/>",
                           "#define SECRET_PASS \"\"", "arn:aws:secretsmanager:eu-west-1:482019374651:secret:db-a1B2c3",
                           "USDC_TOKEN = '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48'"}) {
    EXPECT_FALSE(hasSecretSetting(text, false)) << text;
  }
}

TEST(SecretContent, DocumentsOfPrograms) {
  for (const char* text : {"# Netscape HTTP Cookie File\n.a.org\tTRUE\t/\tTRUE\t1\tSID\tx\n",
                           R"([{"domain":"a.org","httpOnly":true,"value":"q7Vn3xKd9Lm2Wt5Z"}])",
                           "otpauth://totp/a?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=b", "<KeePassFile>",
                           "machine a.org login me password hunter2", "db.example.org:5432:shop:app:hunter2"}) {
    EXPECT_TRUE(secretDocument(text)) << text;
  }
  for (const char* text :
       {"# Netscape HTTP Cookie File\n", R"([{"domain":"a.org","httpOnly":true,"value":"dark"}])",
        "otpauth://totp/a?secret=JBSWY3DPEHPK3PXP", "machine learning is fun", "http://db.example.org:5432:"}) {
    EXPECT_FALSE(secretDocument(text)) << text;
  }
}

TEST(SecretContent, PasswordsOfCommands) {
  for (const char* text :
       {"$p = ConvertTo-SecureString 'Sommer2024' -AsPlainText -Force", "sshpass -p 'hunter2x' ssh a",
        "mysqldump -u root -phunter2x shop", "curl -u me:hunter2x https://a.org", "keytool -storepass hunter2x",
        "echo 'hunter2x' | docker login --password-stdin", "credentials += Credentials(\"a\", \"b\", \"c\", \"d\")"}) {
    EXPECT_TRUE(hasCommandPassword(text)) << text;
  }
  for (const char* text :
       {"$p = ConvertTo-SecureString $env:P -AsPlainText -Force", "ConvertTo-SecureString 'Sommer2024'",
        "sshpass -p \"$PASS\" ssh a", "mysql -u root -proot", "mysql; mkdir -p build", "curl -u $A:$B https://a.org",
        "# sshpass -p hunter2x", "echo \"$TOKEN\" | docker login --password-stdin", "docker run -p 8080:80 a"}) {
    EXPECT_FALSE(hasCommandPassword(text)) << text;
  }
}

TEST(SecretContent, ColumnsOfPasswords) {
  EXPECT_TRUE(hasPasswordColumn("name,url,username,password\na,https://a.org,me,hunter2\n"));
  EXPECT_TRUE(hasPasswordColumn("\"url\",\"password\"\r\n\"https://a.org/?a,b\",\"hunter2\"\r\n"));
  EXPECT_TRUE(hasPasswordColumn("user,password\nana,Gk7!pQ2vXz9w\n"));
  EXPECT_FALSE(hasPasswordColumn("name,email,password\nana,a@example.org,secret\n")) << "of a test";
  EXPECT_FALSE(hasPasswordColumn("name,url,password\na,https://a.org,\n")) << "no value";
  EXPECT_FALSE(hasPasswordColumn("time,token_count\n1,2\n"));
}

TEST(SecretContent, UrlsWithAPassword) {
  EXPECT_TRUE(hasUrlPassword("index-url = https://me:hunter2@example.org/simple", false));
  EXPECT_TRUE(hasUrlPassword("0123 branch 'main' of https://me:hunter2@example.org/x", false));
  EXPECT_TRUE(hasUrlPassword("https://conda.example.org/t/aa-0123456789/main", false));
  EXPECT_FALSE(hasUrlPassword("https://example.org/a:b@c", false));
  EXPECT_FALSE(hasUrlPassword("https://me:${PASSWORD}@example.org/", false));
  EXPECT_FALSE(hasUrlPassword("postgres://postgres:postgres@localhost/db", true));
  EXPECT_TRUE(hasUrlPassword("postgres://app:aB3!dE5gH7jK9@localhost/db", true));
  EXPECT_TRUE(secretIn(judgeSecret("/p/.git", "FETCH_HEAD", false), "0 of https://me:hunter2@example.org/x"));
  EXPECT_TRUE(secretIn(judgeSecret("/p/.git/logs", "HEAD", false), "0 clone: from https://me:hunter2@example.org/x"));
}

TEST(SecretContent, ClustersAndOtherEncodings) {
  EXPECT_TRUE(why("prod.yaml", "apiVersion: v1\nkind: Secret\ndata:\n  a: Yg==\n"));
  EXPECT_FALSE(why("prod.yaml", "apiVersion: v1\nkind: SealedSecret\nspec:\n  a: Yg==\n"));
  EXPECT_TRUE(why("prod.yaml", "kind: Config\nusers:\n- user:\n    client-key-data: eA==\n"));
  const std::string token = "x=ghp_aB3dE5gH7jK9mN1pQ3sT5vX7zA9bC1dE3fG5";
  std::string wide = "\xFF\xFE";
  for (const char c : token) wide += std::string{c, '\0'};
  EXPECT_TRUE(why("notes.txt", wide));
  EXPECT_TRUE(why("db_password.secret", "hunter2!\n")) << "a single value";
  EXPECT_TRUE(why(".npmrc", "hunter2hunter\n")) << "not a setting";
  EXPECT_FALSE(why(".npmrc", "registry=https://registry.example.org/\n"));
  EXPECT_FALSE(why("api.token", "see the manual for how to get one\n"));
}

}  // namespace
}  // namespace caisson::policy
