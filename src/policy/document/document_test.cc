#include "policy/document/document.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace caisson::policy {

namespace {

Result<Document> read(std::string_view text, Format format) { return readText(text, format, "p"); }

std::string repeated(std::string_view part, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += part;
  return text;
}

}  // namespace

TEST(Document, TheThreeFormatsSayTheSame) {
  const std::pair<Format, const char*> cases[] = {
      {Format::toml, "a = 1\nb = \"x\"\n[c]\nd = [true, 1.5]\n"},
      {Format::json, "{\n\"b\": \"x\",\n\"a\": 1,\n\"c\": {\"d\": [true, 1.5]}}"},
      {Format::yaml, "a: 1\nb: x\nc:\n  d: [true, 1.5]\n"},
  };
  for (const auto& [format, text] : cases) {
    const auto document = read(text, format);
    ASSERT_TRUE(document) << document.error().message();
    EXPECT_EQ(document->root.find("a")->integer, 1);
    EXPECT_EQ(document->root.find("b")->text, "x");
    const Node* list = document->root.find("c")->find("d");
    ASSERT_NE(list, nullptr);
    ASSERT_EQ(list->items.size(), 2U);
    EXPECT_TRUE(list->items[0].boolean);
    EXPECT_EQ(list->items[1].floating, 1.5);
  }
}

TEST(Document, RemembersLines) {
  const auto toml = read("\n\n[resources]\nmemory = 1\n", Format::toml);
  EXPECT_EQ(toml->root.find("resources")->find("memory")->line, 4);
  const auto json = read("{\n\"resources\":\n{\"cpus\": 1,\n\"memory\":\n 12\n}}", Format::json);
  EXPECT_EQ(json->root.find("resources")->find("cpus")->line, 3);
  EXPECT_EQ(json->root.find("resources")->find("memory")->line, 4);
  const auto yaml = read("a: 1\nresources:\n  memory: 1\n", Format::yaml);
  EXPECT_EQ(yaml->root.find("resources")->find("memory")->line, 3);
}

TEST(Document, SyntaxErrorsNameFileAndLine) {
  const std::pair<Format, const char*> cases[] = {
      {Format::toml, "a = 1\nb = = 2\n"}, {Format::json, "{\"a\": 1,\n]"}, {Format::yaml, "a: 1\nb: [\n"}};
  for (const auto& [format, text] : cases) {
    const auto document = read(text, format);
    ASSERT_FALSE(document);
    EXPECT_EQ(document.error().stage, Stage::policy);
    EXPECT_TRUE(document.error().object.starts_with("p:")) << document.error().message();
  }
}

TEST(Document, AKeyGivenTwiceIsAnError) {
  EXPECT_FALSE(read("a = 1\na = 2\n", Format::toml));
  EXPECT_FALSE(read("{\"a\": 1, \"a\": 2}", Format::json));
  EXPECT_FALSE(read("a: 1\na: 2\n", Format::yaml));
  EXPECT_FALSE(read("{a: 1, \"a\": 2}", Format::yaml));
}

TEST(Document, DeepDottedKeysAreRejectedWhateverIsQuotedBeforeThem) {
  std::string key = "a";
  for (int i = 0; i < 200'000; ++i) key += ".a";
  for (const std::string& before :
       std::vector<std::string>{"", R"("""a""", )", R"("""a"""", )", R"("""a""""", )", "'''a'''', ", R"("\\", )"}) {
    const std::string text = "x = { " + (before.empty() ? before : "s = " + before) + key + " = 1 }\n";
    const auto document = read(text, Format::toml);
    ASSERT_FALSE(document) << before;
    EXPECT_NE(document.error().message().find("too deep"), std::string::npos) << document.error().message();
  }
}

/// Nothing before the key decides whether its dots count, so no reading of quotes can differ from that of toml++.
TEST(Document, DotsCountWhateverPrecedesThemAndHoweverTheyAreWritten) {
  const auto chain = [](const std::string& part) {
    std::string key = "a";
    for (int i = 0; i < 5000; ++i) key += "." + part;
    return key;
  };
  for (const char* part :
       {"a", "\"a\"", "'a'", " a ", "\t\"a\\\"b\" ", "'a\"b'", "\"a'b\"", "\"\"", "\"a.b\"", "-_1"}) {
    for (const char* before :
         {"", "s = \"\"\"\n\"\"\"\"\"\n", "s = '''\n'''''\n", "# \"\"\"\n", "s = \"\\\\\"\n", "'' = 1\n", "["}) {
      const std::string text = std::string(before) + chain(part) + (before[0] == '[' ? "]\n" : " = 1\n");
      const auto document = read(text, Format::toml);
      ASSERT_FALSE(document) << before << part;
      EXPECT_NE(document.error().message().find("too deep"), std::string::npos) << document.error().message();
    }
  }
}

TEST(Document, DotsOfHostsAndAddressesInOneLineAreNoKey) {
  std::string hosts = "hosts = [";
  for (int i = 0; i < 200; ++i) hosts += "\"a.b.example.org\", '10.0.0." + std::to_string(i) + "', ";
  EXPECT_TRUE(read(hosts + "] # and so on. And so on...\n", Format::toml));
}

TEST(Document, DatesAreRejected) {
  for (const char* text : {"name = 1979-05-27\n", "a = 07:32:00\n", "a = [1979-05-27T07:32:00Z]\n"}) {
    const auto document = read(text, Format::toml);
    ASSERT_FALSE(document) << text;
    EXPECT_NE(document.error().message().find("dates and times"), std::string::npos) << document.error().message();
  }
}

TEST(Document, NumbersBeyondADoubleAreExactOrRefused) {
  // 2^53 + 1 is the first whole number that a double cannot hold.
  const auto exact = read(R"({"a": 9007199254740993})", Format::json);
  ASSERT_TRUE(exact) << exact.error().message();
  EXPECT_EQ(exact->root.find("a")->integer, 9007199254740993);
  for (const char* text : {R"({"a": 18446744073709551617})", R"({"a": 1e400})", R"({"a": -9223372036854775809})"}) {
    const auto document = read(text, Format::json);
    ASSERT_FALSE(document) << text;
    EXPECT_NE(document.error().message().find("too large"), std::string::npos) << document.error().message();
  }
}

TEST(Document, YamlFollowsTheCoreSchema) {
  const auto document = read(
      "yes: yes\noctal: 0o17\nhex: 0xff\nold: 017\nquoted: \"true\"\nsingle: '1'\nempty:\ntilde: ~\nneg: -1.5e3\n"
      "inf: -.inf\nplus: +7\nversion: 1.2.3\n",
      Format::yaml);
  ASSERT_TRUE(document) << document.error().message();
  const Node& root = document->root;
  EXPECT_EQ(root.find("yes")->text, "yes");
  EXPECT_EQ(root.find("octal")->integer, 15);
  EXPECT_EQ(root.find("hex")->integer, 255);
  EXPECT_EQ(root.find("old")->integer, 17);
  EXPECT_EQ(root.find("quoted")->type, Node::Type::text);
  EXPECT_EQ(root.find("single")->type, Node::Type::text);
  EXPECT_EQ(root.find("empty")->type, Node::Type::null);
  EXPECT_EQ(root.find("tilde")->type, Node::Type::null);
  EXPECT_EQ(root.find("neg")->floating, -1500);
  EXPECT_EQ(root.find("inf")->type, Node::Type::floating);
  EXPECT_EQ(root.find("plus")->integer, 7);
  EXPECT_EQ(root.find("version")->text, "1.2.3");
}

TEST(Document, YamlRejectsAmbiguousSyntax) {
  const char* const cases[] = {
      "base: &b {x: 1}\na:\n  <<: *b\n",  // merge
      "a: !!str 1\n",                     // tags
      "a: !custom x\n",
      "a: ! 12\n",
      "a: &b ! 12\n",
      "a: &b # c\n  ! 12\n",
      "a: &b:c\n",            // an anchor that libyaml would cut short
      "a: x\xE2\x80\xA8y\n",  // a line break of YAML 1.1
      "a: *b\n",              // an anchor that is not there
      "null: 1\n",
      "a: &a [*a]\n",              // a cycle
      "--- \na: 1\n--- \nb: 2\n",  // two documents
      "? [a, b]\n: 1\n",           // a key that is not a scalar
      "- 1\n- 2\n",                // not a table
  };
  for (const char* text : cases) EXPECT_FALSE(read(text, Format::yaml)) << text;
}

TEST(Document, YamlAnchorsMeanTheLatest) {
  const auto document = read("a: &x [&x 1, *x]\nb: *x\nc: &x\nd: *x\ne: &x é\nf: &x /*é*/\ng: *x\n", Format::yaml);
  ASSERT_TRUE(document) << document.error().message();
  EXPECT_EQ(document->root.find("a")->items[1].integer, 1);
  EXPECT_EQ(document->root.find("b")->integer, 1);
  EXPECT_EQ(document->root.find("d")->type, Node::Type::null);
  EXPECT_EQ(document->root.find("g")->text, "/*é*/");
  EXPECT_NE(read("a: &x 1\nb: &x [*x]\n", Format::yaml).error().reason.find("contains it"), std::string::npos);
}

TEST(Document, YamlErrorsNameTheLine) {
  EXPECT_EQ(read("a: 1\nb: [\n  1}\n", Format::yaml).error().object, "p:3");
  EXPECT_EQ(read("a: 1\n\nb: \x01\n", Format::yaml).error().object, "p:3");
  EXPECT_EQ(read("a: 1\nb:\n  c: !t 1\n", Format::yaml).error().object, "p:3");
  EXPECT_FALSE(read(repeated("%TAG !a! b\n", 90'000), Format::yaml));
}

TEST(Document, YamlExpandsAliasesUnderABound) {
  const auto good = read("a: &x [1, 2]\nb: *x\n", Format::yaml);
  ASSERT_TRUE(good) << good.error().message();
  EXPECT_EQ(good->root.find("b")->items.size(), 2U);

  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int level = 1; level < 12; ++level) {
    const std::string before = "*a" + std::to_string(level - 1);
    bomb += "a" + std::to_string(level) + ": &a" + std::to_string(level) + " [" + before + repeated("," + before, 9) +
            "]\n";
  }
  const auto exploded = read(bomb, Format::yaml);
  ASSERT_FALSE(exploded);
  EXPECT_NE(exploded.error().reason.find("too many"), std::string::npos);
}

TEST(Document, YamlAliasesCopyABoundedAmountOfText) {
  const std::string text(800'000, 'A');
  const std::string half(400'000, 'A');
  const std::string bombs[] = {
      "image: &x \"" + text + "\"\nvolumes: [" + repeated("*x,", 19'000) + "]\n",  // a string
      "a: &x\n  ? " + text + "\n  : 1\nb: [" + repeated("*x,", 19'000) + "]\n",    // a key
      "a: &x [" + half + ", [" + half + "]]\nb: [*x, *x, *x, *x, *x, *x]\n",       // a tree
      "a: " + repeated("&x [", 60) + text + repeated("]", 60) + "\n",              // nested anchors, no alias
  };
  for (const std::string& bomb : bombs) {
    const auto document = read(bomb, Format::yaml);
    ASSERT_FALSE(document) << bomb.substr(0, 20);
    EXPECT_NE(document.error().reason.find("copy too much text"), std::string::npos) << document.error().message();
  }
  const auto good = read("a: &x " + text + "\nb: [*x, *x, *x]\n", Format::yaml);
  ASSERT_TRUE(good) << good.error().message();
  EXPECT_EQ(good->root.find("b")->items[2].text.size(), text.size());
}

TEST(Document, DepthIsBounded) {
  EXPECT_FALSE(read("{\"a\":" + repeated("[", 400'000), Format::json));
  EXPECT_FALSE(read("{\"a\":" + repeated("[", 100) + repeated("]", 100) + "}", Format::json));
  EXPECT_FALSE(read("a: " + repeated("[", 400'000), Format::yaml));
  EXPECT_FALSE(read(repeated("- ", 400'000), Format::yaml));
  EXPECT_FALSE(read("a = " + repeated("[", 400'000), Format::toml));
  EXPECT_FALSE(read(repeated("a.", 400'000) + "a = 1", Format::toml));
  EXPECT_FALSE(read("[" + repeated("a.", 400'000) + "a]", Format::toml));
  EXPECT_FALSE(read("x = '''\n'''\n" + repeated("\"a\".", 200'000) + "a = 1", Format::toml));
}

TEST(Document, ManyDotsInStringsAreFine) {
  EXPECT_TRUE(read("a = [" + repeated("'a.b.c.d.e', ", 100) + "]", Format::toml));
  EXPECT_TRUE(read("a = '''\n" + repeated("...", 100) + "\n''' # " + repeated(".", 100), Format::toml));
}

TEST(Document, TextMustBeUtf8WithoutNul) {
  using namespace std::string_view_literals;
  const std::string_view cases[] = {"a = '\xFF'"sv,         "a = '\xC0\x80'"sv,
                                    "a = '\xED\xA0\x80'"sv, "a = '\xF5\x80\x80\x80'"sv,
                                    "a = 'x\0y'"sv,         "a = '\xE2\x82"sv};
  for (const auto text : cases) EXPECT_FALSE(read(text, Format::toml)) << text;
  EXPECT_FALSE(read("{\"a\": \"x\\u0000y\"}", Format::json));
  EXPECT_FALSE(read("{\"a\\u0000\": 1}", Format::json));
  EXPECT_FALSE(read("a: \"x\\0y\"", Format::yaml));
  EXPECT_FALSE(read("a = \"x\\u0000y\"", Format::toml));
  EXPECT_TRUE(read("a = '\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80'", Format::toml));
}

TEST(Document, CarriageReturnNeedsALineFeed) {
  const std::pair<std::string_view, Format> hidden[] = {{"extends: dev # note\rnetwork: {mode: proxy}\n", Format::yaml},
                                                        {"a: 1\r", Format::yaml},
                                                        {"a: 1\r\r\nb: 1\n", Format::yaml},
                                                        {"{\"a\": 1,\r\"b\": 2}", Format::json},
                                                        {"a = 1 # note\rb = 2\n", Format::toml}};
  for (const auto& [text, format] : hidden) {
    const auto document = read(text, format);
    ASSERT_FALSE(document) << text;
    EXPECT_NE(document.error().reason.find("carriage return"), std::string::npos) << document.error().message();
  }
  EXPECT_TRUE(read("a: 1 # note\r\nb: 2\r\n", Format::yaml));
  EXPECT_TRUE(read("{\r\n\"a\": \"\\r\"}\r\n", Format::json));
  EXPECT_TRUE(read("a = 1\r\nb = 2\r\n", Format::toml));
}

TEST(Document, BareTomlKeysAreAscii) {
  EXPECT_FALSE(read("a\xEF\xBB\xBE = 1", Format::toml));
  EXPECT_FALSE(read("\xC3\xA9 = 1", Format::toml));
  EXPECT_TRUE(read("a = \"\"\"x\\\n \xC3\xA9\"\"\"", Format::toml));
  EXPECT_TRUE(read("'\xC3\xA9' = 1", Format::toml));
}

TEST(Document, SizeIsBounded) {
  EXPECT_FALSE(read("a = '" + std::string(kMaxDocumentBytes, 'x') + "'", Format::toml));
  EXPECT_FALSE(read("{\"a\": [" + repeated("1,", 200'000) + "1]}", Format::json));
  EXPECT_FALSE(read("{\"a\": 99999999999999999999}", Format::json));
  EXPECT_FALSE(read("{\"a\": 1e999}", Format::json));
  EXPECT_FALSE(read("a: 99999999999999999999", Format::yaml));
}

TEST(Document, ReadsOnlyRegularFiles) {
  const auto directory = std::filesystem::temp_directory_path() / ("caisson-document-" + std::to_string(::getpid()));
  std::filesystem::create_directory(directory);
  const std::string fifo = directory / "fifo.toml";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_NE(readRegularFile(fifo).error().reason.find("not a regular file"), std::string::npos);
  EXPECT_NE(readRegularFile(directory).error().reason.find("directory"), std::string::npos);
  EXPECT_EQ(readRegularFile(directory / "absent.toml").error().sys_errno, ENOENT);
  EXPECT_FALSE(readRegularFile("/dev/zero"));
  std::ofstream(directory / "large.toml") << std::string(kMaxDocumentBytes + 1, '#');
  EXPECT_FALSE(readRegularFile(directory / "large.toml"));
  std::ofstream(directory / "good.toml") << "a = 1";
  EXPECT_EQ(*readRegularFile(directory / "good.toml"), "a = 1");
  for (const char* file : {"fifo.toml", "large.toml", "good.toml"}) std::filesystem::remove(directory / file);
  std::filesystem::remove(directory);
}

}  // namespace caisson::policy
