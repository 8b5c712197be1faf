// What an MCP client must ask the user about: directories beyond the workspace, and commits.
#include <unistd.h>

#include <chrono>

#include "mcp_fixture.h"
#include "support/conforms.h"
#include "support/scripts.h"

namespace caisson::test {
namespace {

TEST_F(Mcp, ADirectoryBeyondTheWorkspaceIsShownOnlyWithConsent) {
  const TempDir other;
  other.write("secret.txt", "of another project");
  other.openToAll();
  const Json arguments{{"workspace_path", other.path()}};
  EXPECT_EQ(start()->call("sandbox_create", arguments)["isError"], true);

  const auto client = start({{"elicitation", Json::object()}});
  const Json params{{"name", "sandbox_create"}, {"arguments", arguments}};
  const Json asked = client->request("tools/call", params)["result"];
  ASSERT_EQ(asked["resultType"], "input_required") << asked;
  EXPECT_NE(asked["inputRequests"]["approval"]["params"]["message"].get<std::string>().find(other.path()),
            std::string::npos);
  const auto reply = [&](const Json& answer, const Json& to) {
    Json again = to;
    again["requestState"] = asked["requestState"];
    again["inputResponses"] = {{"approval", answer}};
    return client->request("tools/call", again);
  };
  const Json yes{{"action", "accept"}, {"content", {{"decision", "allow"}}}};
  for (const Json& no : {Json{{"action", "decline"}}, Json{{"action", "cancel"}},
                         Json{{"action", "accept"}, {"content", {{"decision", "deny"}}}}})
    EXPECT_EQ(reply(no, params)["result"]["isError"], true) << no;
  // The consent is for one directory: with another one in the arguments it is invalid.
  Json transplanted = params;
  transplanted["arguments"]["workspace_path"] = "/etc";
  EXPECT_TRUE(reply(yes, transplanted).contains("error"));
  EXPECT_TRUE(reply(yes, params)["result"]["structuredContent"].contains("sandbox_id"));
}

/// The workspace of a new sandbox if the host and the client, with these roots, both name the home directory.
class McpHome : public Mcp {
 protected:
  [[nodiscard]] Json createWith(const std::string& home_variable, const std::vector<std::string>& roots,
                                const Json& arguments = Json::object()) const {
    auto variables = environment();
    variables["HOME"] = home_variable;
    variables["CLAUDE_PROJECT_DIR"] = owner.path();
    McpClient client({}, variables, {{"roots", Json::object()}, {"elicitation", Json::object()}});
    Json params{{"name", "sandbox_create"}, {"arguments", arguments}};
    const Json asked = client.request("tools/call", params)["result"];
    if (!asked.contains("inputRequests") || !asked["inputRequests"].contains("roots")) return asked;
    Json list = Json::array();
    for (const std::string& root : roots) list.push_back({{"uri", "file://" + root}});
    params["requestState"] = asked["requestState"];
    params["inputResponses"]["roots"] = {{"roots", list}};
    return client.request("tools/call", params)["result"];
  }
  static std::string workspaceIn(const Json& made) {
    EXPECT_TRUE(made.contains("structuredContent")) << made;
    return made.contains("structuredContent") ? made["structuredContent"].value("workspace", "none") : "none";
  }

  const TempDir owner;
};

TEST_F(McpHome, IsNotShownBecauseItIsARootOfTheClient) {
  CONFORMS("R-FILES-22");
  owner.openToAll();
  const std::string above = owner.path().substr(0, owner.path().rfind('/'));
  EXPECT_EQ(workspaceIn(createWith(owner.path(), {owner.path()})), "");
  EXPECT_EQ(workspaceIn(createWith(owner.path(), {above})), "");
  EXPECT_EQ(workspaceIn(createWith(owner.path(), {"/", owner.path(), workspace.path()})), workspace.path());
  const Json asked = createWith(owner.path(), {}, {{"workspace_path", owner.path()}});
  ASSERT_EQ(asked["resultType"], "input_required") << asked;
  EXPECT_NE(asked.dump().find("which holds your home directory"), std::string::npos) << asked;
}

TEST_F(McpHome, IsNotShownIfTheVariableNamesALinkToIt) {
  CONFORMS("R-FILES-22");
  owner.openToAll();
  const TempDir links;
  links.openToAll();
  ASSERT_EQ(::symlink(owner.path().c_str(), (links / "home").c_str()), 0);
  EXPECT_EQ(workspaceIn(createWith(links / "home", {owner.path()})), "");
}

TEST_F(Mcp, ChangesReachTheRealFilesOnlyWithConsentToExactlyThese) {
  workspace.makeDir(".git/hooks", 0777);
  const auto client = start({{"elicitation", Json::object()}});
  const std::string id = create(*client);
  client->tool("sandbox_execute",
               {{"sandbox_id", id}, {"command", "echo new > a.txt; echo evil > .git/hooks/pre-commit"}});
  const auto commit = [&](Json arguments, const Json& round) {
    arguments["sandbox_id"] = id;
    Json params{{"name", "sandbox_commit"}, {"arguments", std::move(arguments)}};
    params.update(round);
    return client->request("tools/call", params)["result"];
  };
  const auto reply = [](const Json& asked, const char* decision) {
    return Json{{"requestState", asked["requestState"]},
                {"inputResponses", {{"approval", {{"action", "accept"}, {"content", {{"decision", decision}}}}}}}};
  };
  const Json asked = commit(Json::object(), Json::object());
  ASSERT_EQ(asked["resultType"], "input_required") << asked;
  const std::string words = asked["inputRequests"]["approval"]["params"]["message"];
  EXPECT_NE(words.find("modified a.txt"), std::string::npos) << words;
  EXPECT_EQ(words.find("pre-commit"), std::string::npos) << words;
  EXPECT_EQ(commit(Json::object(), reply(asked, "deny"))["isError"], true);
  EXPECT_EQ(readFile(workspace / "a.txt"), "from the host\n");
  // The content changed: the old consent does not cover it.
  client->tool("sandbox_write_file", {{"sandbox_id", id}, {"path", "b.txt"}, {"content", "more"}});
  const Json again = commit(Json::object(), reply(asked, "allow"));
  ASSERT_EQ(again["resultType"], "input_required") << again;
  const Json done = commit(Json::object(), reply(again, "allow"));
  EXPECT_EQ(done["structuredContent"]["committed"], true) << done;
  EXPECT_EQ(readFile(workspace / "a.txt"), "new\n");
  EXPECT_FALSE(exists(workspace / ".git/hooks/pre-commit"));
  const Json hook = commit({{"paths", {".git/hooks/pre-commit"}}}, Json::object());
  ASSERT_EQ(hook["resultType"], "input_required") << hook;
  EXPECT_NE(hook["inputRequests"]["approval"]["params"]["message"].get<std::string>().find("execute"),
            std::string::npos);
  const auto without_prompts = start();
  EXPECT_EQ(
      without_prompts->call("sandbox_commit", {{"sandbox_id", id}, {"paths", {".git/hooks/pre-commit"}}})["isError"],
      true);
}

/// A commit with its prompts, as a client of 2026-07-28 sends it.
class McpConsent : public Mcp {
 protected:
  Json commit(McpClient& client, const std::string& id, const Json& round = Json::object(),
              Json arguments = Json::object()) {
    arguments["sandbox_id"] = id;
    Json params{{"name", "sandbox_commit"}, {"arguments", std::move(arguments)}};
    params.update(round);
    return client.request("tools/call", params)["result"];
  }
  static Json answer(const Json& asked, const char* decision) {
    return Json{{"requestState", asked["requestState"]},
                {"inputResponses", {{"approval", {{"action", "accept"}, {"content", {{"decision", decision}}}}}}}};
  }
  static std::string message(const Json& asked) { return asked["inputRequests"]["approval"]["params"]["message"]; }
};

TEST_F(McpConsent, ContentSwappedDuringThePromptIsNotCommitted) {
  const auto client = start({{"elicitation", Json::object()}});
  const std::string id = create(*client);
  const auto run = [&](const std::string& script) {
    client->tool("sandbox_execute", {{"sandbox_id", id}, {"command", script}});
  };
  run("printf good > a.txt; ln -s a.txt link.txt");
  Json asked = commit(*client, id);
  ASSERT_EQ(asked["resultType"], "input_required") << asked;
  // "good": the first digits of its SHA-256.
  EXPECT_NE(message(asked).find("sha256 770e607624d6"), std::string::npos) << message(asked);
  for (const char* swap :
       {"printf evil > a.txt", "chmod 755 a.txt", "ln -sfn b.txt link.txt", "printf more > extra.txt"}) {
    run(swap);
    const Json again = commit(*client, id, answer(asked, "allow"));
    ASSERT_EQ(again["resultType"], "input_required") << swap << again;
    EXPECT_EQ(readFile(workspace / "a.txt"), "from the host\n") << swap;
    EXPECT_FALSE(exists(workspace / "extra.txt"));
    asked = again;
  }
  EXPECT_EQ(commit(*client, id, answer(asked, "allow"))["structuredContent"]["committed"], true);
  EXPECT_EQ(readFile(workspace / "a.txt"), "evil");
}

TEST_F(McpConsent, NamesThatAreNotUtf8AreDistinctAndCanBeSelected) {
  const auto client = start({{"elicitation", Json::object()}});
  const std::string id = create(*client);
  client->tool("sandbox_execute",
               {{"sandbox_id", id},
                {"command", "printf 1 > \"$(printf 'a\\377\\nb')\"; printf 2 > \"$(printf 'a\\376\\nb')\""}});
  const Json named{{"paths", {"Yf8KYg=="}}, {"paths_encoding", "base64"}};
  Json wanted{{"sandbox_id", id}};
  const Json both = client->tool("sandbox_diff", wanted)["changes"];
  ASSERT_EQ(both.size(), 2U) << both;
  EXPECT_EQ(both[0]["path"], "Yf4KYg==") << both;
  EXPECT_EQ(both[1]["path"], "Yf8KYg==") << both;
  EXPECT_EQ(both[1]["path_encoding"], "base64") << both;
  wanted.update(named);
  EXPECT_EQ(client->tool("sandbox_diff", wanted)["changes"], Json::array({both[1]}));
  const Json listed = client->tool("sandbox_read_file", {{"sandbox_id", id}, {"path", "."}})["entries"];
  EXPECT_EQ(std::count_if(listed.begin(), listed.end(),
                          [](const Json& one) { return one.value("name_encoding", "") == "base64"; }),
            2)
      << listed;
  const Json read =
      client->tool("sandbox_read_file", {{"sandbox_id", id}, {"path", "Yf8KYg=="}, {"path_encoding", "base64"}});
  EXPECT_EQ(read["content"], "1") << read;
  EXPECT_EQ(read["path"], "Yf8KYg==") << read;

  // Names that do not show what they are need the user's own answer, and are shown without raw control characters.
  const Json held = client->tool("sandbox_commit", {{"sandbox_id", id}, {"dry_run", true}})["held"];
  ASSERT_EQ(held.size(), 2U) << held;
  EXPECT_EQ(held[1]["path_encoding"], "base64") << held;
  const Json asked = commit(*client, id, Json::object(), named);
  ASSERT_EQ(asked["resultType"], "input_required") << asked;
  EXPECT_NE(message(asked).find("\n- added $'a\\377\\nb' (1 bytes"), std::string::npos) << message(asked);
  const Json done = commit(*client, id, answer(asked, "allow"), named);
  EXPECT_EQ(done["structuredContent"]["committed"], true) << done;
  EXPECT_EQ(done["structuredContent"]["applied"][0]["path"], "Yf8KYg==") << done;
  EXPECT_EQ(readFile(workspace / "a\xff\nb"), "1");
  EXPECT_FALSE(exists(workspace / "a\xfe\nb"));
  for (const char* wrong : {"YQA=", "Y!"})
    EXPECT_EQ(commit(*client, id, Json::object(), {{"paths", {wrong}}, {"paths_encoding", "base64"}})["isError"], true);
}

TEST_F(McpConsent, RunningProcessCannotChangeWhatWasApproved) {
  const auto client = start({{"elicitation", Json::object()}});
  const std::string id = create(*client);
  client->tool("sandbox_execute",
               {{"sandbox_id", id},
                {"background", true},
                {"command", "while :; do printf good > t; mv t a.txt; printf evil > t; mv t a.txt; done"}});
  int refused = 0, written = 0;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (refused + written <= 10 && std::chrono::steady_clock::now() < deadline) {
    const Json asked = commit(*client, id, Json::object(), {{"paths", {"a.txt"}}});
    if (asked["resultType"] != "input_required") continue;  // the file was being replaced
    const bool shown_good = message(asked).find("sha256 770e607624d6") != std::string::npos;
    const std::string before = readFile(workspace / "a.txt");
    const Json done = commit(*client, id, answer(asked, "allow"), {{"paths", {"a.txt"}}});
    const std::string now = readFile(workspace / "a.txt");
    if (done.contains("structuredContent") && done["structuredContent"].value("committed", false)) {
      ++written;
      EXPECT_EQ(now, shown_good ? "good" : "evil") << "what arrived is not what was shown";
    } else {
      ++refused;
      EXPECT_EQ(now, before);
    }
  }
  EXPECT_GT(refused + written, 10);
}

TEST_F(McpConsent, WholeManifestIsShownInPages) {
  const auto client = start({{"elicitation", Json::object()}});
  const std::string id = create(*client);
  client->tool("sandbox_execute",
               {{"sandbox_id", id}, {"command", "mkdir d; for i in $(seq 100 349); do echo x > d/$i.txt; done"}});
  Json asked = commit(*client, id);
  std::string shown;
  EXPECT_NE(message(asked).find("251 changes (251 added, 0 modified, 0 deleted, 500 bytes)"), std::string::npos)
      << message(asked);
  for (int page = 1; page <= 3; ++page) {
    EXPECT_NE(message(asked).find("Page " + std::to_string(page) + " of 3"), std::string::npos) << message(asked);
    shown += message(asked);
    if (page < 3) asked = commit(*client, id, answer(asked, "show the next page"));
    ASSERT_EQ(asked["resultType"], "input_required") << asked;
  }
  for (int i = 100; i < 350; ++i) EXPECT_NE(shown.find("d/" + std::to_string(i) + ".txt"), std::string::npos) << i;
  EXPECT_FALSE(exists(workspace / "d"));
  EXPECT_EQ(commit(*client, id, answer(asked, "allow"))["structuredContent"]["changes"], 251);
  EXPECT_TRUE(exists(workspace / "d/349.txt"));
}

TEST_F(McpConsent, FilesThatNeedCautionAreListedFirstAndTheirNamesAreLimited) {
  workspace.makeDir(".git/hooks", 0777);
  const auto client = start({{"elicitation", Json::object()}});
  const std::string id = create(*client);
  client->tool("sandbox_execute",
               {{"sandbox_id", id},
                {"command", "echo new > a.txt; for i in $(seq 100 249); do echo x > .git/hooks/hook-$i; done"}});
  Json named{{"paths", {"a.txt"}}};
  for (int i = 100; i < 250; ++i) named["paths"].push_back(".git/hooks/hook-" + std::to_string(i));
  Json asked = commit(*client, id, Json::object(), named);
  ASSERT_EQ(asked["resultType"], "input_required") << asked;
  const std::string first = message(asked);
  const std::string caution = first.substr(0, first.find("\nPage 1 of 2:"));
  EXPECT_NE(caution.find("CAREFUL"), std::string::npos) << caution;
  EXPECT_NE(caution.find("hook-119 ("), std::string::npos) << caution;
  EXPECT_EQ(caution.find("hook-120"), std::string::npos) << caution;
  EXPECT_NE(caution.find(" and 130 more"), std::string::npos) << caution;
  EXPECT_EQ(first.find("a.txt"), std::string::npos) << first;
  EXPECT_NE(first.find("\n- added .git/hooks/hook-199 ("), std::string::npos) << first;
  asked = commit(*client, id, answer(asked, "show the next page"), named);
  const std::string second = message(asked);
  EXPECT_TRUE(second.starts_with(caution)) << second;
  EXPECT_NE(second.find("hook-249 (2 bytes"), std::string::npos) << second;
  EXPECT_NE(second.find("; careful: "), std::string::npos) << second;
  EXPECT_NE(second.find("\n- modified a.txt"), std::string::npos) << second;
  EXPECT_EQ(message(commit(*client, id, answer(asked, "show the next page"), named)), first);
  EXPECT_EQ(commit(*client, id, answer(asked, "allow"), named)["structuredContent"]["changes"], 151);
  EXPECT_TRUE(exists(workspace / ".git/hooks/hook-249"));
}

TEST_F(McpConsent, PageOfLongNamesIsLimited) {
  const auto client = start({{"elicitation", Json::object()}});
  const std::string id = create(*client);
  client->tool("sandbox_execute",
               {{"sandbox_id", id},
                {"command",
                 "d=$(printf '%0250d' 0); p=$d; for i in 1 2 3 4 5 6 7 8 9; do p=$p/$d; done; mkdir -p $p; "
                 "for i in $(seq 100 160); do echo x > $p/$i.txt; done"}});
  Json asked = commit(*client, id);
  ASSERT_EQ(asked["resultType"], "input_required") << asked.dump().substr(0, 2000);
  std::string shown;
  for (int page = 1; page <= 3; ++page) {
    EXPECT_LT(message(asked).size(), 80'000U);
    EXPECT_NE(message(asked).find("Page " + std::to_string(page) + " of 3"), std::string::npos);
    shown += message(asked);
    asked = commit(*client, id, answer(asked, "show the next page"));
    ASSERT_EQ(asked["resultType"], "input_required") << asked.dump().substr(0, 2000);
  }
  for (int i = 100; i <= 160; ++i) EXPECT_NE(shown.find("/" + std::to_string(i) + ".txt"), std::string::npos) << i;
}

TEST_F(McpConsent, UnusualFilesAreHeldBackAndTheDigestIsChecked) {
  const auto client = start({{"elicitation", Json::object()}});
  const std::string id = create(*client);
  client->tool("sandbox_execute",
               {{"sandbox_id", id}, {"command", "echo x > b.py; echo x > .newtool.toml; echo x > tool"}});
  const Json dry = commit(*client, id, Json::object(), {{"dry_run", true}})["structuredContent"];
  EXPECT_EQ(dry["changes"], 1) << dry;
  EXPECT_EQ(dry["held"].size(), 2U) << dry;
  client->tool("sandbox_write_file", {{"sandbox_id", id}, {"path", "b.py"}, {"content", "y\n"}});
  EXPECT_EQ(commit(*client, id, Json::object(), {{"digest", dry["digest"]}})["isError"], true);
  const Json asked = commit(*client, id, Json::object(), {{"paths", {"tool"}}});
  ASSERT_EQ(asked["resultType"], "input_required") << asked;
  EXPECT_NE(message(asked).find("CAREFUL"), std::string::npos) << message(asked);
}

}  // namespace
}  // namespace caisson::test
