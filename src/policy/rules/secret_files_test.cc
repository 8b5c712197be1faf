#include "policy/rules/secret_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>

#include "policy/rules/name_pattern.h"

namespace caisson::policy {

extern const char* const kDocumentDirectory;

namespace {

SecretJudgement judgePath(std::string_view path, bool directory = false) {
  const std::size_t slash = path.rfind('/');
  return judgeSecret(path.substr(0, slash), path.substr(slash + 1), directory);
}

bool isHidden(std::string_view path, bool directory = false) {
  return judgePath(path, directory).verdict == SecretVerdict::hide;
}

TEST(SecretFiles, AreHiddenByName) {
  for (const char* path :
       {"/p/.env", "/p/.env.local", "/p/.env-dev", "/p/prod.env", "/p/a/.netrc", "/p/.pypirc", "/p/.git-credentials",
        "/p/id_rsa", "/p/id_ed25519", "/p/cert.p12", "/p/cert.pfx", "/p/.pgpass", "/p/credentials.json", "/p/.htpasswd",
        "/p/terraform.tfstate", "/p/prod.tfvars", "/p/app/.flaskenv", "/p/client_secret_1.apps.json",
        "/p/.vault_pass.txt"}) {
    EXPECT_TRUE(isHidden(path)) << path;
  }
}

TEST(SecretFiles, OrdinaryFilesAreNotRead) {
  for (const char* path :
       {"/p/keyboard.c", "/p/monkey.h", "/p/node_modules/x/package.json", "/p/node_modules/x/Makefile", "/p/a.png",
        "/p/id_rsa.pub", "/p/tokenizer.rs", "/p/.gitignore", "/p/lib.so", "/p/lib.so.1", "/p/env.d.ts"}) {
    EXPECT_EQ(judgePath(path).verdict, SecretVerdict::no) << path;
  }
}

TEST(SecretFiles, CaseDoesNotMatter) {
  for (const char* path : {"/p/.ENV", "/p/.Netrc", "/p/PROD.PFX", "/p/.AWS/Credentials", "/p/Terraform.TFState"}) {
    EXPECT_TRUE(isHidden(path)) << path;
  }
  EXPECT_NE(judgePath("/p/server.PEM").checks & kCheckPrivate, 0);
}

TEST(SecretFiles, PlacesCountAlsoAboveTheWorkspace) {
  EXPECT_TRUE(isHidden("/home/u/.aws/credentials"));
  EXPECT_TRUE(isHidden("/home/u/.kube/config"));
  EXPECT_TRUE(isHidden("/p/.docker/config.json"));
  EXPECT_TRUE(isHidden("/p/.config/gh", true));
  EXPECT_TRUE(isHidden("/p/.git/credentials"));
  EXPECT_FALSE(isHidden("/p/aws/config"));
  EXPECT_FALSE(isHidden("/p/kube/config"));
  EXPECT_TRUE(isInSecretDirectory("/home/u/.ssh"));
  EXPECT_TRUE(isInSecretDirectory("/home/u/.gnupg/private-keys-v1.d"));
  EXPECT_FALSE(isInSecretDirectory("/home/u/ssh/.sshrc"));
  EXPECT_FALSE(isInSecretDirectory("/"));
}

TEST(SecretFiles, CopiesCountAsTheName) {
  for (const char* name :
       {".env", "prod.env", ".netrc", "terraform.tfstate", "credentials.json", "wallet.dat", "server.p12"}) {
    const std::string plain(name);
    const std::size_t dot = plain.rfind('.') == 0 ? plain.size() : plain.rfind('.');
    const std::string stem = plain.substr(0, dot), ending = plain.substr(dot);
    for (const std::string& copy : {plain + "~",
                                    plain + ".bak",
                                    plain + ".old",
                                    plain + ".orig",
                                    plain + ".save",
                                    plain + ".1",
                                    plain + ".2024-01-01",
                                    plain + ".bak.2",
                                    plain + "." + "20240101",
                                    "." + plain + ".swp",
                                    plain + ".swp",
                                    "#" + plain + "#",
                                    plain + " (copy)",
                                    stem + " (1)" + ending,
                                    stem + " copy" + ending,
                                    stem + "-old" + ending,
                                    stem + "_20240101120000" + ending,
                                    plain + ".~1~",
                                    "Copy of " + plain,
                                    plain + ".dpkg-old",
                                    plain + ".pacsave",
                                    "." + plain + ".un~",
                                    "." + plain + ".kate-swp",
                                    stem + " - Copy" + ending,
                                    stem + " - Copy (2)" + ending,
                                    stem + " (conflicted copy 2026-01-01)" + ending,
                                    stem + " (Ann's conflicted copy)" + ending,
                                    stem + "_BACKUP_1234" + ending,
                                    plain + ".BAK"}) {
      EXPECT_TRUE(isHidden("/p/" + copy)) << copy;
      EXPECT_TRUE(mayBeSecret(copy)) << copy;
    }
  }
}

TEST(SecretFiles, OriginalsOfSwapFilesHaveADotOrNone) {
  for (const char* copy : {".netrc.swp", ".npmrc.swp", ".envrc.swp", "..netrc.un~"}) {
    EXPECT_NE(judgeSecret("/p", copy, false).verdict, SecretVerdict::no) << copy;
  }
  EXPECT_EQ(originalNames(".config.swp"), (std::vector<std::string>{".config.swp", ".config", "config"}));
  EXPECT_EQ(originalNames("Secrets - Copy (2).yaml"),
            (std::vector<std::string>{"secrets - copy (2).yaml", "secrets - copy.yaml", "secrets.yaml"}));
}

TEST(SecretFiles, TemplatesAndPublicKeysStay) {
  for (const char* path :
       {"/p/.env.example", "/p/.env.sample", "/p/.env.template", "/p/.env.dist", "/p/secrets.yaml.example",
        "/p/.env.local.example", "/p/.env.example.bak", "/p/id_rsa.pub", "/p/pubring.gpg", "/p/known_hosts"}) {
    EXPECT_EQ(judgePath(path).verdict, SecretVerdict::no) << path;
  }
  EXPECT_EQ(judgePath("/p/example.env").verdict, SecretVerdict::by_content);
  EXPECT_EQ(judgePath("/p/example.com.key").verdict, SecretVerdict::by_content) << "a domain";
}

TEST(SecretFiles, ContentDecidesWhereTheNameDoesNot) {
  for (const char* path :
       {"/p/server.pem", "/p/tls.key", "/p/.npmrc", "/p/pip.conf", "/p/wp-config.php", "/p/deploy", "/p/.toolrc",
        "/p/config.json", "/p/settings.xml", "/p/notes.txt", "/p/run.sh", "/p/server.crt", "/p/my-rsa-backup"}) {
    EXPECT_EQ(judgePath(path).verdict, SecretVerdict::by_content) << path;
  }
  EXPECT_EQ(judgePath("/p/node_modules/x/settings.json").verdict, SecretVerdict::by_content) << "a name of the table";
  EXPECT_EQ(judgePath("/p/node_modules/x/package-data.json").verdict, SecretVerdict::no);
  for (const char* path : {"/p/node_modules/x/credentials.js", "/p/.venv/lib/site-packages/botocore/credentials.py",
                           "/p/node_modules/mime-db/db.json"}) {
    const SecretJudgement judged = judgePath(path);
    EXPECT_EQ(judged.checks & (kCheckSettings | kCheckRandom | kCheckRaw), 0U) << path;
  }
  EXPECT_EQ(judgePath("/p/node_modules/.env").verdict, SecretVerdict::hide);
}

TEST(SecretFiles, ScriptsTablesAndUnknownEndingsAreReadForLess) {
  const auto checks = [](std::string_view path) { return judgePath(path).checks; };
  EXPECT_EQ(checks("/p/Makefile"), kCheckTokens | kCheckUrls);
  EXPECT_EQ(checks("/p/package.json"), kCheckTokens | kCheckUrls);
  EXPECT_EQ(checks("/p/app.py"), kCheckTokens | kCheckUrls);
  EXPECT_EQ(checks("/p/app.py.orig"), kCheckTokens | kCheckUrls | kCheckRandom) << "no program needs a copy";
  EXPECT_EQ(checks("/p/run.sh"), kCheckTokens | kCheckUrls | kCheckRandom | kCheckCommands);
  EXPECT_EQ(checks("/p/users.csv"), kCheckTokens | kCheckTable);
  EXPECT_TRUE(judgePath("/p/users.csv").first_only);
  EXPECT_TRUE(judgePath("/p/legacy.sapphire").unnamed) << "shown if it is a program or an archive";
  EXPECT_NE(checks("/p/app.service") & kCheckSettings, 0);
  EXPECT_NE(checks("/p/.zshrc.local") & kCheckSettings, 0);
  EXPECT_TRUE(isHidden("/p/Chrome Passwords.csv"));
  EXPECT_FALSE(isHidden("/p/passwords.py"));
}

/// The search drops names for which this is false, without asking again.
TEST(SecretFiles, QuickFilterKeepsWhatTheTableMatches) {
  for (const SecretPattern& one : secretPatterns()) {
    if (one.verdict == SecretVerdict::no) continue;
    std::string path(one.pattern);
    if (path.ends_with('/')) path.pop_back();
    std::string name = path.substr(path.rfind('/') + 1);
    std::ranges::replace(name, '|', ' ');
    for (std::size_t star = name.find('*'); star != std::string::npos; star = name.find('*'))
      name.replace(star, 1, "x");
    EXPECT_TRUE(mayBeSecret(name)) << one.pattern;
  }
}

/// A star alone would make the search keep every name, and one without text behind it is looked up by its beginning.
TEST(SecretFiles, PatternsNameSomething) {
  std::set<std::string_view> seen;
  for (const SecretPattern& one : secretPatterns()) {
    std::string_view last = one.pattern;
    if (last.ends_with('/')) last.remove_suffix(1);
    last = last.substr(last.rfind('/') == std::string_view::npos ? 0 : last.rfind('/') + 1);
    EXPECT_GE(last.size() - static_cast<std::size_t>(std::ranges::count(last, '*')), 2U) << one.pattern;
    EXPECT_FALSE(last.starts_with('*') && last.ends_with('*')) << one.pattern;
    EXPECT_TRUE(std::ranges::none_of(one.pattern, [](char c) { return c >= 'A' && c <= 'Z'; })) << one.pattern;
    EXPECT_TRUE(seen.insert(one.pattern).second) << one.pattern;
  }
}

TEST(SecretFiles, AreAllDocumented) {
  const char* source = std::getenv("CAISSON_SOURCE_DIR");
  std::ifstream document((source != nullptr ? std::string(source) + "/docs" : kDocumentDirectory) +
                         std::string("/secret-files.md"));
  ASSERT_TRUE(document) << kDocumentDirectory;
  std::set<std::string> documented;
  bool tables = false;
  for (std::string line; std::getline(document, line);) {
    tables = tables || line == "## Names and places";
    if (!tables || !line.starts_with("| ") || line.starts_with("| kind")) continue;
    for (std::size_t at = line.find('`'); at != std::string::npos; at = line.find('`', at + 1)) {
      const std::size_t end = line.find('`', at + 1);
      ASSERT_NE(end, std::string::npos) << line;
      documented.insert(line.substr(at + 1, end - at - 1));
      at = end;
    }
  }
  std::set<std::string> table;
  for (auto* patterns : {&secretPatterns, &homeSecrets}) {
    for (const SecretPattern& one : (*patterns)()) {
      std::string shown(one.pattern);
      std::ranges::replace(shown, '|', ' ');
      table.insert((patterns == &homeSecrets ? "~/" : "") + shown);
    }
  }
  EXPECT_EQ(documented, table);
}

}  // namespace
}  // namespace caisson::policy
