#include "tool/registry.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "policy/fields.h"
#include "policy/profiles/profiles.h"
#include "support/conforms.h"
#include "support/temp_dir.h"

namespace caisson::tool {
namespace {

class ToolRegistry : public testing::Test {
 protected:
  ToolRegistry() { ::setenv("CAISSON_HOME", home_.path().c_str(), 1); }
  ~ToolRegistry() override { ::unsetenv("CAISSON_HOME"); }

  const Tool search_{.name = "search",
                     .description = "finds \"text\"\n\xc3\xa4",
                     .command = {"grep", "--", "{pattern}"},
                     .policy = *policy::builtin("files")};
  const test::TempDir home_;
};

std::string refusal(const Result<Tool>& tool) { return tool ? "" : tool.error().message(); }

}  // namespace

TEST_F(ToolRegistry, StoresTheDeclaration) {
  const auto registry = Registry::open();
  ASSERT_TRUE(registry);
  ASSERT_TRUE(registry->add(search_));
  const auto found = registry->find("search");
  ASSERT_TRUE(found && *found) << found.error().message();
  EXPECT_EQ((*found)->command, search_.command);
  EXPECT_EQ((*found)->description, search_.description);
  EXPECT_TRUE(policy::sameSettings((*found)->policy, search_.policy));
  EXPECT_FALSE(registry->add(search_)) << "the name is taken";
  EXPECT_FALSE(*registry->find("other"));
  EXPECT_EQ(registry->list()->tools.size(), 1U);
  EXPECT_TRUE(*registry->remove("search"));
  EXPECT_FALSE(*registry->remove("search"));
  EXPECT_FALSE(*registry->find("search"));
}

/// A model calls tools, so their declarations must not choose where secrets are sent.
TEST_F(ToolRegistry, AToolHasNoCredentials) {
  const auto registry = Registry::open();
  ASSERT_TRUE(registry);
  Tool tool = search_;
  tool.policy.network.credentials.push_back({.host = "api.example.org", .secret_env = "KEY"});
  const auto added = registry->add(tool);
  ASSERT_FALSE(added);
  EXPECT_NE(added.error().message().find("cannot name network.credentials"), std::string::npos);
}

TEST_F(ToolRegistry, NamesAreFileNamesAndNoInterpreters) {
  const auto registry = Registry::open();
  for (const std::string& name : {std::string(), std::string("a/b"), std::string(".."), std::string(".hidden"),
                                  std::string("-x"), std::string("a b"), std::string("bash"), std::string("python3"),
                                  std::string(65, 'a'), std::string("\xe2\x80\xae"), std::string("a\nb")}) {
    EXPECT_FALSE(checkName(name)) << name;
    Tool tool = search_;
    tool.name = name;
    EXPECT_FALSE(registry->add(tool)) << name;
    EXPECT_FALSE(registry->find(name)) << name;
  }
  EXPECT_TRUE(checkName("web-fetch.v2"));
}

TEST_F(ToolRegistry, DamagedEntryIsIgnoredAndOthersStillWork) {
  const auto registry = Registry::open();
  ASSERT_TRUE(registry->add(search_));
  home_.write("tools/broken.json", "{");
  const auto listing = registry->list();
  ASSERT_TRUE(listing);
  EXPECT_EQ(listing->tools.size(), 1U);
  ASSERT_EQ(listing->damaged.size(), 1U);
  EXPECT_NE(listing->damaged[0].message().find("broken"), std::string::npos);
  EXPECT_FALSE(registry->find("broken"));
  EXPECT_TRUE(*registry->remove("broken"));
}

TEST_F(ToolRegistry, AnEntryIsReadStrictly) {
  CONFORMS("R-POLICY-5");
  const std::string good = writeTool(search_);
  ASSERT_EQ(refusal(readTool(good, "search")), "");
  EXPECT_NE(refusal(readTool(good, "other")), "") << "kept under another name";
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return refusal(readTool(text, "search"));
  };
  EXPECT_NE(with("\"format_version\": 1", "\"format_version\": 2"), "");
  EXPECT_NE(with("\"description\"", "\"privileged\": true, \"description\""), "");
  EXPECT_NE(with("\"{pattern}\"", "7"), "");
  EXPECT_NE(with("\"{pattern}\"", "\"{pattern\""), "");
  EXPECT_NE(with("\"policy\": {", "\"policy\": {\"unknown\": 1,"), "");
  EXPECT_NE(refusal(readTool("[]", "search")), "");
  EXPECT_NE(refusal(readTool("{}", "search")), "");
}

}  // namespace caisson::tool
