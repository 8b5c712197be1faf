#include "audit/redact.h"

#include <gtest/gtest.h>

#include <ctime>
#include <vector>

namespace caisson::audit {
namespace {

using Words = std::vector<std::string>;

std::string preview(const Words& words) { return redactedPreview(words, 1000); }

TEST(Redaction, RemovesValuesNamedAsSecrets) {
  const std::string secret = "hunter2hunter2";
  for (const Words& words : {
           Words{"deploy", "--password", secret},
           Words{"deploy", "--password=" + secret},
           Words{"env", "DB_PASSWORD=" + secret, "x"},
           Words{"sh", "-c", "export API_KEY=" + secret + "; go"},
           Words{"sh", "-c", "export TOKEN='" + secret + "'"},
           Words{"sh", "-c", "mysql --password " + secret},
           Words{"curl", "-u", "me:" + secret, "http://h"},
           Words{"curl", "--user", "me:" + secret},
           Words{"curl", "https://me:" + secret + "@host/x"},
           Words{"git", "clone", "https://" + secret + "@github.com/x"},
           Words{"curl", "-H", "Authorization: Bearer " + secret},
           Words{"curl", "-H", "Cookie: sid=" + secret},
           Words{"curl", "-d", "{\"password\": \"" + secret + "\"}"},
           Words{"x", "https://h/?access_token=" + secret + "&y=1"},
           Words{"x", "--api-key", secret},
           Words{"AWS_SECRET_ACCESS_KEY=" + secret},
       }) {
    EXPECT_EQ(preview(words).find(secret), std::string::npos) << preview(words);
    EXPECT_NE(preview(words).find(kRedacted), std::string::npos) << preview(words);
  }
}

TEST(Redaction, RecognisesTokensByTheirPrefix) {
  for (const std::string token :
       {"ghp_0123456789abcdefghij0123456789abcdef", "github_pat_11ABCDEFG0123456789_abc", "glpat-0123456789abcdefghij",
        "xoxb-123456789012-abcdefghijkl", "AKIAIOSFODNN7EXAMPLE", "sk-proj-0123456789abcdefghijklmnop",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"}) {
    EXPECT_EQ(preview({"use", token}).find(token), std::string::npos) << token;
    EXPECT_EQ(preview({"sh", "-c", "echo " + token + " | x"}).find(token), std::string::npos) << token;
  }
  const std::string pem = "-----BEGIN PRIVATE KEY-----\nMIIBVgIBADANB\n-----END PRIVATE KEY-----";
  EXPECT_EQ(preview({"echo", pem, "after"}).find("MIIB"), std::string::npos);
  EXPECT_NE(preview({"echo", pem, "after"}).find("after"), std::string::npos);
}

TEST(Redaction, LeavesOrdinaryCommandsAlone) {
  EXPECT_EQ(preview({"make", "-j2", "test"}), "make -j2 test");
  EXPECT_EQ(preview({"git", "show", "7be9a54d0a2cf2e5aa8b63a7e5d5a6f6f2f9a8b1"}),
            "git show 7be9a54d0a2cf2e5aa8b63a7e5d5a6f6f2f9a8b1");
  EXPECT_EQ(preview({"sh", "-c", "echo a b"}), "sh -c 'echo a b'");
  EXPECT_EQ(preview({"echo", "a' b"}), "echo 'a'\\'' b'") << "a quote cannot end the quotes";
  EXPECT_EQ(preview({"curl", "-u", "a b:secret"}), "curl -u 'a b:[redacted]'");
  EXPECT_EQ(preview({"git", "show", "HEAD~1"}), "git show HEAD~1");
  EXPECT_EQ(preview({"curl", "https://host/path"}), "curl https://host/path");
  EXPECT_EQ(preview({"sort", "-k", "2"}), "sort -k 2");
}

TEST(Redaction, TruncatesAtCharactersAndNeverRevealsASecret) {
  EXPECT_EQ(redactedPreview(Words{std::string(200, 'a')}, 100), std::string(100, 'a') + "...");
  const std::string two_bytes = "\xC3\xA4";
  std::string many;
  for (int i = 0; i < 150; ++i) many += two_bytes;
  EXPECT_EQ(redactedPreview(Words{many}, 100).size(), 1 + 99 * 2 + 3);  // quoted, since it is not a plain word
  const std::string late = std::string(95, 'a') + " --password=secretsecret";
  EXPECT_EQ(redactedPreview(Words{late}, 120).find("secretsecret"), std::string::npos);
}

/// The processor time of redacting long arguments of `size` bytes each.
std::clock_t timeFor(std::size_t size) {
  const std::clock_t start = std::clock();
  for (const char letter : {'=', ':', '-', '\'', '"', '@', ' '}) (void)preview({std::string(size, letter)});
  (void)preview({std::string(size, 'a') + "=x"});
  return std::clock() - start;
}

TEST(Redaction, IsLinear) {
  const std::clock_t quarter = timeFor(1 << 20);
  EXPECT_LT(timeFor(4 << 20), 10 * quarter + CLOCKS_PER_SEC / 10) << "quadratic would be 16 times as long";
}

}  // namespace
}  // namespace caisson::audit
