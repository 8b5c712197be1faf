#include "policy/describe/json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "policy/decode/decode.h"
#include "policy/fields.h"
#include "policy/profiles/profiles.h"
#include "support/conforms.h"

namespace caisson::policy {

namespace {

/// The schema of a dotted key, or null.
nlohmann::json schemaOf(const nlohmann::json& schema, std::string_view key) {
  const nlohmann::json* node = &schema;
  for (std::size_t start = 0; start <= key.size();) {
    const std::size_t end = std::min(key.find('.', start), key.size());
    const std::string part(key.substr(start, end - start));
    if (!node->contains("properties") || !(*node)["properties"].contains(part)) return nullptr;
    if ((*node)["additionalProperties"] != false) return nullptr;
    node = &(*node)["properties"][part];
    start = end + 1;
  }
  return *node;
}

}  // namespace

TEST(Json, EveryProfileReadsBackAsItself) {
  for (const std::string_view name : builtinNames()) {
    const Policy policy = *builtin(name);
    const auto again = parse(toJson(policy), Format::json, "round trip");
    ASSERT_TRUE(again) << again.error().message();
    EXPECT_TRUE(sameSettings(policy, *again)) << name;
  }
}

TEST(Json, UnusualTextReadsBackAsItself) {
  Policy policy = *builtin("bash");
  policy.description = "quote \" backslash \\ newline \n delete \x7f \xC3\xA9 </script>";
  policy.environment.set = {{"A", "b\tc"}, {"B.C", ""}};
  policy.resources.cpus = 0.1;
  policy.resources.wall_seconds = 1.0 / 3;
  const auto again = parse(toJson(policy), Format::json, "round trip");
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_TRUE(sameSettings(policy, *again));
}

TEST(Json, PathsThatAreNotUtf8ReadBackAsThemselves) {
  Policy policy = *builtin("bash");
  policy.filesystem.denied = {"/workspace/a\377b", "/workspace/c"};
  policy.filesystem.workspace.path = "/srv/\200";
  const std::string text = toJson(policy);
  EXPECT_NE(text.find("\"denied_encoding\": \"base64\""), std::string::npos) << text;
  const auto again = parse(text, Format::json, "round trip");
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_TRUE(sameSettings(policy, *again));
}

TEST(Json, EncodingsThatAreNotKnownAreRefused) {
  for (const char* text : {R"({"filesystem": {"denied": ["YQ=="], "denied_encoding": "rot13"}})",
                           R"({"filesystem": {"denied": ["/a"], "denied_encoding": "base64"}})",
                           R"({"filesystem": {"denied_encoding": "base64"}})",
                           R"({"filesystem": {"denied": ["L2EA"], "denied_encoding": "base64"}})",
                           R"({"name": "YQ==", "name_encoding": "base64"})",
                           R"({"filesystem": {"denied": [1], "denied_encoding": "base64"}})"}) {
    EXPECT_FALSE(parse(text, Format::json, "p")) << text;
  }
}

TEST(Schema, IsJsonAndCoversEveryField) {
  CONFORMS("R-POLICY-1");
  const auto parsed = nlohmann::json::parse(schema(), nullptr, false);
  ASSERT_FALSE(parsed.is_discarded());
  EXPECT_EQ(parsed["$schema"], "https://json-schema.org/draft/2020-12/schema");
  for (const Field& field : fields()) {
    const auto own = schemaOf(parsed, field.key);
    ASSERT_FALSE(own.is_null()) << field.key << " is missing, or its table allows unknown keys";
    EXPECT_EQ(own["description"], std::string(field.description));
    EXPECT_TRUE(own.contains("default"));
    EXPECT_TRUE(own.contains("anyOf"));
  }
  for (const char* part :
       {"filesystem", "process", "network", "resources", "syscalls", "environment", "commands", "approvals", "audit"}) {
    EXPECT_FALSE(parsed["properties"][part]["properties"].empty()) << part;
  }
  EXPECT_FALSE(schemaOf(parsed, "extends").is_null());
  EXPECT_FALSE(schemaOf(parsed, "format_version").is_null());
}

TEST(Schema, ListsOfTablesAreAlsoTablesOfEntriesByKey) {
  const auto parsed = nlohmann::json::parse(schema());
  for (const auto& [field, key] : {std::pair("filesystem.tmpfs", "path"), std::pair("network.credentials", "name")}) {
    const auto forms = schemaOf(parsed, field)["anyOf"];
    ASSERT_EQ(forms.size(), 2U) << field;
    auto list = forms[0]["items"]["properties"];
    const auto table = forms[1]["additionalProperties"];
    EXPECT_EQ(list.erase(key), 1U) << field;
    EXPECT_EQ(table["properties"], list) << field;
    EXPECT_EQ(table["additionalProperties"], false) << field;
  }
}

}  // namespace caisson::policy
