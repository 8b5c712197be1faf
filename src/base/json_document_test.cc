#include "base/json_document.h"
#include "support/conforms.h"

#include <gtest/gtest.h>

namespace caisson {
namespace {

TEST(JsonDocument, RejectsInvalidAndExcessiveInput) {
  CONFORMS("R-SESSION-11");
  EXPECT_FALSE(parseJson("{\"a\":", {}));
  EXPECT_FALSE(parseJson("", {}));
  EXPECT_FALSE(parseJson("{\"a\":\"\xff\"}", {}));
  EXPECT_FALSE(parseJson("1e999", {}));
  EXPECT_FALSE(parseJson(std::string(65, '[') + std::string(65, ']'), {}));
  EXPECT_TRUE(parseJson(std::string(64, '[') + std::string(64, ']'), {}));
  EXPECT_FALSE(parseJson(std::string(1000000, '['), {}));
  EXPECT_FALSE(parseJson("[1,2,3,4]", {.values = 4}));
  EXPECT_TRUE(parseJson("[1,2,3,4]", {.values = 5}));
  EXPECT_FALSE(parseJson("\"12345678\"", {.bytes = 9}));
}

TEST(JsonDocument, CountsNothingInsideStrings) {
  const auto value = parseJson(R"({"a":"[[[[{{{{,,,,\"[[[["})", {.depth = 1, .values = 2});
  ASSERT_TRUE(value);
  EXPECT_EQ(textAt(*value, "a"), "[[[[{{{{,,,,\"[[[[");
}

TEST(JsonDocument, WritesOneLineOfValidText) {
  EXPECT_EQ(writeJson(Json{{"a", "x\ny"}}), R"({"a":"x\ny"})");
  EXPECT_EQ(writeJson(Json("\xff")), "\"\xEF\xBF\xBD\"");
}

TEST(JsonDocument, BytesThatAreNotUtf8AreMarkedAndBase64) {
  Json value = Json::object();
  setBytes(value, "a", "text");
  setBytes(value, "b", "\xff");
  setBytes(value, "c", std::vector<std::string>{"x", "y"});
  setBytes(value, "d", std::vector<std::string>{"x", "\xff"});
  EXPECT_EQ(writeJson(value), R"({"a":"text","b":"/w==","b_encoding":"base64","c":["x","y"],)"
                              R"("d":["eA==","/w=="],"d_encoding":"base64"})");
}

TEST(JsonDocument, AccessorsReturnNulloptForTheWrongType) {
  const Json value = *parseJson(R"({"t":"x","i":3,"b":true,"big":18446744073709551615,"f":1.0,"o":{}})");
  EXPECT_EQ(textAt(value, "t"), "x");
  EXPECT_EQ(textAt(value, "i"), std::nullopt);
  EXPECT_EQ(integerAt(value, "i"), 3);
  EXPECT_EQ(integerAt(value, "big"), std::nullopt);
  EXPECT_EQ(integerAt(value, "f"), std::nullopt);
  EXPECT_EQ(booleanAt(value, "b"), true);
  EXPECT_EQ(booleanAt(value, "missing"), std::nullopt);
  EXPECT_EQ(find(Json("text"), "x"), nullptr);
  EXPECT_NE(findObject(value, "o"), nullptr);
}

}  // namespace
}  // namespace caisson
