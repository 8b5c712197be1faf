#include "base/json_value.h"

#include <gtest/gtest.h>

namespace caisson {
namespace {

TEST(JsonValue, TextThatIsNotJsonIsNothing) {
  for (const char* text : {"", "{", "{\"a\":1}x", "nul", "\"\xff\""}) EXPECT_FALSE(JsonValue::parse(text)) << text;
}

TEST(JsonValue, MembersKeepTheOrderOfTheText) {
  const auto value = JsonValue::parse(R"({"z":1,"a":["x",2,null],"m":{"k":"v"}})");
  ASSERT_TRUE(value && value->isObject());
  const auto members = value->members();
  ASSERT_EQ(members.size(), 3U);
  EXPECT_EQ(members[0].first, "z");
  EXPECT_EQ(members[0].second.integer(), 1);
  ASSERT_TRUE(members[1].second.isArray());
  EXPECT_EQ(members[1].second.items()[0].text(), "x");
  EXPECT_EQ(members[2].second.textAt("k"), "v");
}

TEST(JsonValue, OtherTypesAreNothing) {
  const auto value = JsonValue::parse(R"({"n":1.5,"s":"7","b":true,"u":9223372036854775808})");
  ASSERT_TRUE(value);
  EXPECT_FALSE(value->integerAt("u")) << "it would wrap to a negative number";
  EXPECT_FALSE(value->integerAt("n"));
  EXPECT_FALSE(value->integerAt("s"));
  EXPECT_FALSE(value->integerAt("b"));
  EXPECT_FALSE(value->textAt("n"));
  EXPECT_FALSE(value->textAt("missing"));
  EXPECT_FALSE(value->find("s")->find("inner"));
  EXPECT_TRUE(value->find("s")->members().empty());
  EXPECT_TRUE(value->items().empty());
}

TEST(JsonValue, ValueOutlivesTheOneItCameFrom) {
  std::optional<JsonValue> inner;
  {
    const auto outer = JsonValue::parse(R"({"a":{"b":"kept"}})");
    inner = outer->find("a");
  }
  EXPECT_EQ(inner->textAt("b"), "kept");
}

TEST(JsonValue, WrittenTextIsTheSameValue) {
  const auto value = JsonValue::parse("{ \"b\" : [ 1, 2.5 ],\n\"a\" : \"\\u00e4\" }");
  ASSERT_TRUE(value);
  EXPECT_EQ(value->written(), "{\"b\":[1,2.5],\"a\":\"\u00e4\"}");
  EXPECT_EQ(value->find("b")->indented(), "[\n  1,\n  2.5\n]");
}

}  // namespace
}  // namespace caisson
