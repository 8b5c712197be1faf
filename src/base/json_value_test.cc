#include "base/json_value.h"

#include <gtest/gtest.h>

namespace caisson {
namespace {

TEST(JsonValue, InvalidJsonIsNullopt) {
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

TEST(JsonValue, AccessorsOfOtherTypesReturnNullopt) {
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

TEST(JsonValue, ValueOutlivesItsParent) {
  std::optional<JsonValue> inner;
  {
    const auto outer = JsonValue::parse(R"({"a":{"b":"kept"}})");
    inner = outer->find("a");
  }
  EXPECT_EQ(inner->textAt("b"), "kept");
}

TEST(JsonValue, DeepTextIsNothing) {
  const auto nested = [](std::size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); };
  const auto deepest = JsonValue::parse(nested(128));
  ASSERT_TRUE(deepest);
  EXPECT_EQ(deepest->written(), nested(128));
  EXPECT_FALSE(JsonValue::parse(nested(129)));
  EXPECT_FALSE(JsonValue::parse(nested(1'000'000))) << "writing it would overflow the stack";
  EXPECT_TRUE(JsonValue::parse("[\"" + std::string(1000, '[') + "\\\"{\"]")) << "brackets in a string";
  std::string side_by_side = "[0";
  for (int i = 0; i < 1000; ++i) side_by_side += ",[{}]";
  EXPECT_TRUE(JsonValue::parse(side_by_side + "]"));
}

TEST(JsonValue, ObjectOfTooManyKeysIsNothing) {
  const auto object = [](int keys) {
    std::string text = "{\"first\":[1,2]";
    for (int i = 1; i < keys; ++i) text += ",\"" + std::to_string(i) + "\":0";
    return text + "}";
  };
  EXPECT_TRUE(JsonValue::parse(object(10'000)));
  EXPECT_FALSE(JsonValue::parse(object(10'001))) << "the time to read it grows with the square of its keys";
  std::string list = "[0";
  for (int i = 0; i < 20'000; ++i) list += ",{}";
  EXPECT_TRUE(JsonValue::parse(list + "]"));
}

TEST(JsonValue, WrittenTextIsTheSameValue) {
  const auto value = JsonValue::parse("{ \"b\" : [ 1, 2.5 ],\n\"a\" : \"\\u00e4\" }");
  ASSERT_TRUE(value);
  EXPECT_EQ(value->written(), "{\"b\":[1,2.5],\"a\":\"\u00e4\"}");
  EXPECT_EQ(value->find("b")->indented(), "[\n  1,\n  2.5\n]");
}

}  // namespace
}  // namespace caisson
