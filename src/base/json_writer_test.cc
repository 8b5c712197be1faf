#include "base/json_writer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>

namespace caisson {
namespace {

void writeSample(JsonWriter& json) {
  json.beginObject().key("name").string("a \"b\"").key("empty").beginArray().end();
  json.key("list").beginArray().number(1).beginObject().key("x").null().end().end();
  json.key("words").strings(std::vector<std::string>{"p", "q"}).key("none").beginObject().end();
  json.key("yes").boolean(true).end();
}

TEST(JsonWriter, WritesOneLineByDefault) {
  JsonWriter json;
  writeSample(json);
  EXPECT_EQ(json.text(),
            R"({"name":"a \"b\"","empty":[],"list":[1,{"x":null}],"words":["p","q"],"none":{},"yes":true})");
}

TEST(JsonWriter, IndentsLikeOtherWriters) {
  JsonWriter plain, indented(JsonWriter::Layout::indented);
  writeSample(plain);
  writeSample(indented);
  EXPECT_EQ(indented.text(), nlohmann::ordered_json::parse(plain.text()).dump(2));
}

TEST(JsonWriter, StringsAreValidUtf8AndReadableOnATerminal) {
  EXPECT_EQ(jsonString("\xff"), "\"\xEF\xBF\xBD\"");
  EXPECT_EQ(jsonString("tab\t, escape \x1b, line\n"), R"("tab\t, escape \u001b, line\n")");
  EXPECT_EQ(jsonString("reversed \xE2\x80\xAE"), R"("reversed \u202e")");
  EXPECT_EQ(nlohmann::json::parse(jsonString("\x1b\xE2\x80\xAE\\")), "\x1b\xE2\x80\xAE\\");
}

TEST(JsonWriter, BytesThatAreNotUtf8AreMarkedAndBase64) {
  JsonWriter json;
  const std::vector<std::string> plain{"x", "y"}, other{"x", "\xff"};
  json.beginObject().bytes("a", "text").bytes("b", "\xff").bytes("c", plain).bytes("d", other).end();
  EXPECT_EQ(json.text(), R"({"a":"text","b":"/w==","b_encoding":"base64","c":["x","y"],)"
                         R"("d":["eA==","/w=="],"d_encoding":"base64"})");
}

TEST(JsonWriter, NumbersAreNeverInExponentForm) {
  JsonWriter json;
  json.beginArray().number(1e20).number(0.0004).number(1.5).number(std::numeric_limits<double>::infinity());
  json.number(std::numeric_limits<std::uint64_t>::max()).end();
  EXPECT_EQ(json.text(), "[100000000000000000000,0,1.5,null,18446744073709551615]");
}

}  // namespace
}  // namespace caisson
