#include "policy/describe/explain.h"

#include <gtest/gtest.h>

#include "policy/decode/decode.h"
#include "policy/fields.h"
#include "policy/profiles/profiles.h"
#include "support/conforms.h"

namespace caisson::policy {

TEST(Explain, ShowsValuesDefaultsCeilingsAndWidenings) {
  CONFORMS("R-POLICY-3");
  const auto policy = parse("resources.memory = '1G'\nnetwork.mode = 'proxy'", Format::toml, "p.toml");
  ASSERT_TRUE(policy) << policy.error().message();
  const std::string text = explain(*policy);
  EXPECT_NE(text.find("1 GiB  (at most 2 GiB)"), std::string::npos) << text;
  EXPECT_NE(text.find("120 s  (default, at most 600 s)"), std::string::npos) << text;
  EXPECT_NE(text.find("resources.memory: 512 MiB -> 1 GiB"), std::string::npos) << text;
  EXPECT_NE(text.find("network.mode: none -> proxy"), std::string::npos) << text;
  for (const Field& field : fields()) {
    EXPECT_NE(text.find(field.key.substr(field.key.find('.') + 1)), std::string::npos) << field.key;
  }
}

TEST(Explain, SaysWhenNothingWasWidened) {
  EXPECT_NE(explain(*builtin("strict")).find("widened\n  nothing\n"), std::string::npos);
}

TEST(Explain, KeepsControlCharactersFromTheTerminal) {
  Policy policy;
  policy.description = "a\x1b[2Jb\nresources";
  const std::string text = explain(policy);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_NE(text.find("a?[2Jb?resources"), std::string::npos);
}

TEST(Explain, QuotesBlanksThatLookLikeAnotherLine) {
  Policy policy;
  policy.filesystem.read_only = {"/srv/a" + std::string(60, ' ') + "network.mode  none"};
  const std::string text = explain(policy);
  EXPECT_EQ(text.find("network.mode  none"), std::string::npos);
  EXPECT_NE(text.find("$'/srv/a \\040"), std::string::npos) << text;
}

TEST(Explain, QuotesElementsThatLookLikeTwo) {
  Policy policy;
  policy.filesystem.read_only = {"/srv/a, /srv/private", "/srv/b]  (default", "/srv/c d"};
  const std::string text = explain(policy);
  EXPECT_NE(text.find("[$'/srv/a, /srv/private', $'/srv/b] \\040(default', /srv/c d]"), std::string::npos) << text;
}

}  // namespace caisson::policy
