#include "plan/secrets.h"

#include <gtest/gtest.h>

namespace caisson::plan {
namespace {

TEST(SecretContent, PrivateKeyIsFoundByItsHeader) {
  EXPECT_TRUE(hasPrivateKey("-----BEGIN OPENSSH PRIVATE KEY-----\nx"));
  EXPECT_TRUE(
      hasPrivateKey("-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n-----BEGIN RSA PRIVATE KEY-----\n"));
  EXPECT_TRUE(hasPrivateKey("PuTTY-User-Key-File-3: ssh-ed25519"));
  EXPECT_FALSE(hasPrivateKey("-----BEGIN CERTIFICATE-----\nabc"));
  EXPECT_FALSE(hasPrivateKey("how to make a PRIVATE KEY"));
  EXPECT_FALSE(hasPrivateKey(std::string_view("-----BEGIN \0PRIVATE KEY", 23))) << "a program that looks for keys";
}

TEST(SecretContent, CertificatesAloneArePublic) {
  EXPECT_TRUE(hasOnlyPublicKeys("# bundle\n-----BEGIN CERTIFICATE-----\nabc"));
  EXPECT_TRUE(hasOnlyPublicKeys("-----BEGIN PUBLIC KEY-----\nabc"));
  EXPECT_FALSE(hasOnlyPublicKeys("-----BEGIN CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----"));
  EXPECT_FALSE(hasOnlyPublicKeys("\x30\x82")) << "binary: not known to be public";
}

TEST(SecretContent, FilesThatMayContainAKeyAreFoundByName) {
  for (const char* name : {"deploy_key", "server.crt", "my-rsa-backup", "tls-combined.txt", "PRIVATE"}) {
    EXPECT_TRUE(mayHoldKey(name)) << name;
  }
  for (const char* name : {"keyboard.c", "keys.ts", "id_rsa.pub", "README", "certificates.md"}) {
    EXPECT_FALSE(mayHoldKey(name)) << name;
  }
}

TEST(RedactGitConfig, PasswordsAndTokensAreReplaced) {
  const auto redacted = redactGitConfig(
      "[remote \"origin\"]\n\turl = https://me:ghp_secret@example.org/x.git\n\tpushurl = "
      "https://ghp_token@example.org/x\n"
      "[http]\n\textraHeader = AUTHORIZATION: basic c2VjcmV0\n[core]\n\tbare = false\n");
  ASSERT_TRUE(redacted);
  EXPECT_EQ(redacted->find("ghp_"), std::string::npos) << *redacted;
  EXPECT_EQ(redacted->find("c2Vjc"), std::string::npos) << *redacted;
  EXPECT_NE(redacted->find("url = https://REDACTED@example.org/x.git"), std::string::npos) << *redacted;
  EXPECT_NE(redacted->find("bare = false"), std::string::npos);
}

TEST(RedactGitConfig, UnusualSpellingsAreReplacedToo) {
  for (const char* text : {"[http] extraHeader = canary\n", "[http]\n\textraheader = a \\\n canary \\\n canary\n",
                           "\turl = https://me:it's-canary@example.org/x\n", "\tPassword=canary"}) {
    const auto redacted = redactGitConfig(text);
    ASSERT_TRUE(redacted) << text;
    EXPECT_EQ(redacted->find("canary"), std::string::npos) << *redacted;
  }
}

TEST(RedactGitConfig, ConfigurationWithoutSecretsStays) {
  EXPECT_FALSE(
      redactGitConfig("[remote \"origin\"]\n\turl = https://example.org/x.git\n\turl = git@example.org:x\n"
                      "\turl = ssh://git@example.org/x\n"));
}

}  // namespace
}  // namespace caisson::plan
