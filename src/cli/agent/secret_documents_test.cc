// Text files of agents that hold a secret in the structure of a document, also where it cannot be read as one.
#include <gtest/gtest.h>
#include <time.h>

#include "cli/agent/front_matter.h"
#include "cli/agent/settings.h"

namespace caisson::cli {
namespace {

/// Each entry of a line is read once: with a search of the rest of the line at each comma, 1 MiB took 7 seconds.
TEST(AgentSettings, FrontMatterWithManyEntriesIsReadInLinearTime) {
  timespec start{}, end{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
  for (const std::string& line : {std::string(1U << 20, ','), std::string(1U << 20, '{')})
    EXPECT_FALSE(hasEnvironmentOrHeaderLine("[x\n{" + line + "\n"));
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
  EXPECT_LT(end.tv_sec - start.tv_sec, 3);
  EXPECT_TRUE(hasEnvironmentOrHeaderLine("[x\n{" + std::string(1000, ',') + "env: {ACME: canary}\n"));
}

TEST(AgentSettings, TableWithManyColumnsIsReadInLinearTime) {
  std::string table;
  for (int i = 0; i < 60'000; ++i) table += "| password ";
  table += "\n";
  for (int i = 0; i < 150'000; ++i) table += "|-\n";
  timespec start{}, end{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
  EXPECT_FALSE(mayHoldSecret("a.md", table));
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
  EXPECT_LT(end.tv_sec - start.tv_sec, 8);
}

struct DocumentCase {
  const char* path;
  const char* text;
};

constexpr DocumentCase kSecretDocuments[] = {
    // Front matter.
    {"a.md", "---\nname: a\nmcpServers:\n  a:\n    command: x\n    env:\n      ACME: canary\n---\nText\n"},
    {"a.md", "---\r\nname: a\r\nmcpServers:\r\n  a:\r\n    env:\r\n      ACME: canary\r\n---\r\nText\r\n"},
    {"a.md", "---\rname: a\rmcpServers:\r  a:\r    env:\r      ACME: canary\r---\rText\r"},
    {"a.md", "\xEF\xBB\xBF---\nname: a\nmcpServers:\n  a:\n    env:\n      ACME: canary\n---\nText\n"},
    {"a.md", "--- \nname: a\nmcpServers:\n  a:\n    env:\n      ACME: canary\n---\nText\n"},
    {"a.md", "\n---\nmcpServers:\n  a:\n    env:\n      ACME: canary\n---\nText\n"},
    {"a.md", "---\nmcpServers:\n  a:\n    env:\n      ACME: canary\n"},
    {"a.markdown", "---\nmcpServers:\n  a:\n    env:\n      ACME: canary\n---\nText\n"},
    {"SKILL.MD", "---\nmcpServers:\n  a:\n    env:\n      ACME: canary\n---\nText\n"},
    {"a.md", "---\n- a:\n    env:\n      ACME: canary\n---\nText\n"},
    // Front matter that the reader refuses.
    {"a.md", "---\ndescription: Use this: when asked\nmcpServers:\n  a:\n    env:\n      ACME: canary\n---\nText\n"},
    {"a.md", "---\ndescription: Use this: when asked\nenv: # of the server\n\n  ACME: canary\n---\nText\n"},
    {"a.md", "---\ndescription: Use this: when asked\nenv:\n- ACME: canary\n---\nText\n"},
    {"a.md", "---\ndescription: Use this: when asked\na: {command: x, \"env\": {ACME: canary}}\n---\nText\n"},
    {"a.md", "---\ndescription: Use this: when asked\nhttp_headers: {X-Team: canary}\n---\nText\n"},
    {"a.md", "---\ndescription: Use this: when asked\na:\n  - env: {ACME: canary}\n---\nText\n"},
    {"a.md", "---\nname: !str a\nenvs:\n  ACME: canary\n---\nText\n"},
    {"a.md", "---\nname: a\nname: b\nenvironment:\n  ACME: canary\n---\nText\n"},
    {"a.md", "---\nb: &b {t: 1}\nx:\n  <<: *b\n  env: &e\n    ACME: canary\n---\nText\n"},
    // Documents that cannot be read, or that have a list at the top.
    {"a.yaml", "a: !str b\nenv:\n  ACME: canary\n"},
    {"a.yaml", "b: &b {t: 1}\nx:\n  <<: *b\n  env:\n    ACME: canary\n"},
    {"a.yml", "- cmd: x\n  env:\n    ACME: canary\n"},
    {"a.yml", "---\n- cmd: x\n  env:\n    ACME: canary\n"},
    {"a.json", "[{\"command\": \"x\", \"env\": {\"ACME\": \"canary\"}}]"},
    {"a.json", "[{\"\\u0070assword\": \"canary\"}]"},
    {"a.JSON", "{\"a\": 1, \"a\": 2, \"x\": {\"command\": \"x\", \"env\": {\"ACME\": \"canary\"}}}"},
    {"a.json5", "{x: {command: 'x', env: {ACME: 'canary'}}}"},
    {"a.toml", "a = 1\na = 2\n[env]\nACME = \"canary\"\n"},
    {"a.jsonl", "{\"env\": {\"ACME\": \"canary\"}}\n{}\n"},
    {"a.jsonl", "{}\r\n[{\"env\": {\"ACME\": \"canary\"}}]\r\n"},
    {"notes.txt", "x\x01K\xCA\xC9OR0e\xF0\xF5"},
    {"a.ndjson", "{}\n{\"env\": {\"ACME\"\n"},
};

constexpr DocumentCase kOrdinaryDocuments[] = {
    {"a.md", "---\nname: a\ndescription: Use this: when asked\ntools: [Read, Grep]\n---\nText\n"},
    {"a.md", "---\r\nname: a\r\ndescription: Use this: when asked, env: or headers\r\n---\r\nText\r\n"},
    {"a.md", "---\ndescription: Use this: env\nenv:\nheaders: {}\ntools: Read\n---\nSet env: X first\n"},
    {"a.md", "---\nname: !str a\n---\n\nenv:\n  COLOR: set it\n"},
    {"a.md", "---\n---\n\nenv: x\n"},
    {"a.md", "# Title\n\n---\nenv:\n  COLOR: set it\n---\n"},
    {"notes.txt", "Grüße aus Köln: 你好\n"},
    {"a.json", ""},
    {"a.json", "\xEF\xBB\xBF{\"theme\": \"dark\"}\r\n"},
    {"a.json", "[{\"name\": \"a\"}, 1, \"text\"]"},
    {"a.jsonc", "// list\n[\"a\", // first\n]\n"},
    {"a.yaml", "- name: a\n  steps: [b, c]\n"},
    {"a.yaml", "---\n- name: a\n"},
    {"a.yaml", "# nothing\n"},
    {"a.toml", "a = 1\n"},
    {"a.jsonl", "{\"a\": 1}\n\n[1, 2]\n\"x\"\n"},
};

TEST(SecretDocuments, WhatHoldsOneOrCannotBeReadIsLeftOut) {
  for (const DocumentCase& one : kSecretDocuments)
    EXPECT_TRUE(mayHoldSecret(one.path, one.text)) << one.path << "\n" << one.text;
}

TEST(SecretDocuments, OrdinaryFilesAreCopied) {
  for (const DocumentCase& one : kOrdinaryDocuments)
    EXPECT_FALSE(mayHoldSecret(one.path, one.text)) << one.path << "\n" << one.text;
}

}  // namespace
}  // namespace caisson::cli
