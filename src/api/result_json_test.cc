#include "api/result_json.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_writer.h"

namespace caisson {
namespace {

using OrderedJson = nlohmann::ordered_json;
using namespace std::string_literals;

RunResult success() {
  RunResult result;
  result.sandbox_id = "sb-1";
  result.outcome = OutcomeKind::exited;
  result.out.data = "hello\n";
  result.usage.wall_ms = 12.3456;
  result.layers = {{"seccomp", "allowlist"}};
  return result;
}

OrderedJson rendered(const RunResult& result) { return OrderedJson::parse(renderResult(result)); }

TEST(ResultJson, HasTheFixedFieldsInTheFixedOrder) {
  std::vector<std::string> keys;
  const OrderedJson json = rendered(success());
  for (const auto& [key, value] : json.items()) {
    if (key != "signal_name" && !key.ends_with("_encoding") && key != "notices" && key != "lifecycle")
      keys.push_back(key);
  }
  EXPECT_EQ(keys, (std::vector<std::string>{"version", "sandbox_id", "outcome", "exit_code", "signal", "limit",
                                            "stdout", "stderr", "truncated", "duration_ms", "usage", "denials",
                                            "violations", "layers", "warnings"}));
}

TEST(ResultJson, IsOneLine) { EXPECT_EQ(renderResult(success()).find('\n'), std::string::npos); }

TEST(ResultJson, SaysHowAProgramExited) {
  const OrderedJson json = rendered(success());
  EXPECT_EQ(json["outcome"], "exited");
  EXPECT_EQ(json["exit_code"], 0);
  EXPECT_TRUE(json["signal"].is_null());
  EXPECT_TRUE(json["limit"].is_null());
  EXPECT_EQ(json["stdout"], "hello\n");
  EXPECT_EQ(json["stdout_encoding"], "utf-8");
  EXPECT_EQ(json["truncated"], (OrderedJson{{"stdout", false}, {"stderr", false}}));
  EXPECT_DOUBLE_EQ(json["duration_ms"].get<double>(), 12.346);
  EXPECT_TRUE(json["usage"]["processes_peak"].is_null());
}

TEST(ResultJson, HasNoExitCodeUnlessTheProgramExited) {
  RunResult result = success();
  result.outcome = OutcomeKind::signaled;
  result.signal = SIGSEGV;
  const OrderedJson json = rendered(result);
  EXPECT_TRUE(json["exit_code"].is_null());
  EXPECT_EQ(json["signal"], SIGSEGV);
  EXPECT_EQ(json["signal_name"], "SIGSEGV");

  result.outcome = OutcomeKind::limit;
  result.signal = 0;
  result.limit = Limit::memory;
  EXPECT_EQ(rendered(result)["limit"], "memory");
}

TEST(ResultJson, MarksBytesThatAreNotUtf8AndGivesThemAsBase64) {
  RunResult result = success();
  result.out.data = "\xff\x00\x01"s;
  result.err.data = "\xfe\xfe"s;
  const OrderedJson json = rendered(result);
  EXPECT_EQ(json["stdout"], "/wAB");
  EXPECT_EQ(json["stdout_encoding"], "base64");
  EXPECT_EQ(json["stderr"], "/v4=");
}

TEST(ResultJson, TextCutInsideACharacterIsStillText) {
  RunResult result = success();
  result.out = {.data = "ab\xe2\x82", .truncated = true, .dropped = 7};
  const OrderedJson json = rendered(result);
  EXPECT_EQ(json["stdout"], "ab");
  EXPECT_EQ(json["stdout_encoding"], "utf-8");
  EXPECT_EQ(json["truncated"]["stdout"], true);
  EXPECT_EQ(json["truncated"]["stdout_dropped_bytes"], 7);
  result.out.truncated = false;
  EXPECT_EQ(rendered(result)["stdout_encoding"], "base64");
}

TEST(ResultJson, CarriesTheErrorOfARunThatNeverStarted) {
  const OrderedJson json =
      rendered(refusedResult(sysError(Stage::mounts, "mount", "/x\xff", EPERM, "run caisson doctor")));
  EXPECT_EQ(json["outcome"], "setup_failed");
  EXPECT_EQ(json["error"]["stage"], "mounts");
  EXPECT_EQ(json["error"]["object"], "/x\xef\xbf\xbd");
  EXPECT_EQ(json["error"]["errno"], "EPERM");
  EXPECT_EQ(json["error"]["reason"], "Operation not permitted");
  EXPECT_EQ(json["error"]["hint"], "run caisson doctor");
  EXPECT_FALSE(rendered(success()).contains("error"));
}

TEST(ResultJson, ContainsNoTerminalControlCharacters) {
  RunResult result = success();
  result.out.data = "\x1b[2J\xe2\x80\xae\xc2\x9b\x7f\"\\";
  const std::string text = renderResult(result);
  EXPECT_NE(text.find("\\u001b[2J\\u202e\\u009b\\u007f\\\"\\\\"), std::string::npos);
  EXPECT_EQ(OrderedJson::parse(text)["stdout"], result.out.data);
}

TEST(JsonWriter, NestsAndSeparates) {
  JsonWriter json;
  json.beginObject().key("a").beginArray().number(1).number(2.5).beginObject().end().end().key("b").null().end();
  EXPECT_EQ(json.text(), R"({"a":[1,2.5,{}],"b":null})");
}

TEST(JsonWriter, WritesCharactersBeyondTheBasicPlaneAsSurrogatePairs) {
  JsonWriter json;
  json.string("\xf3\xa0\x81\x81 \xf0\x9f\x98\x80");
  EXPECT_EQ(json.text(), "\"\\udb40\\udc41 \xf0\x9f\x98\x80\"");
}

}  // namespace
}  // namespace caisson
