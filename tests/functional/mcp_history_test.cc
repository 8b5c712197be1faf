// Checkpoints, forks, diffs and the lifetime of MCP sandboxes.
#include <algorithm>
#include <csignal>
#include <filesystem>

#include "functional/sandbox.h"
#include "mcp_fixture.h"
#include "support/conforms.h"
#include "support/scripts.h"

namespace caisson::test {
namespace {

TEST_F(Mcp, CheckpointForkDiffAndRestoreWork) {
  const auto client = start();
  const std::string id = create(*client);
  const auto put = [&](const std::string& sandbox, const std::string& text) {
    client->tool("sandbox_write_file", {{"sandbox_id", sandbox}, {"path", "state"}, {"content", text}});
  };
  const auto get = [&](const std::string& sandbox) {
    return client->tool("sandbox_read_file", {{"sandbox_id", sandbox}, {"path", "state"}}).value("content", "");
  };
  put(id, "first");
  const Json kept = client->tool("sandbox_checkpoint", {{"sandbox_id", id}, {"name", "one"}, {"stop_processes", true}});
  EXPECT_EQ(kept["checkpoint"], "one") << kept;
  const Json branch = client->tool("sandbox_fork", {{"sandbox_id", id}, {"stop_processes", true}});
  ASSERT_TRUE(branch.contains("sandbox_id")) << branch;
  put(id, "second");
  EXPECT_EQ(get(branch["sandbox_id"]), "first");
  const Json changes = client->tool("sandbox_diff", {{"sandbox_id", id}, {"checkpoint", "one"}});
  ASSERT_EQ(changes["total_changes"], 1) << changes;
  EXPECT_EQ(changes["changes"][0]["path"], "state");
  EXPECT_EQ(changes["changes"][0]["change"], "modified");
  client->tool("sandbox_restore", {{"sandbox_id", id}, {"checkpoint", "one"}, {"stop_processes", true}});
  EXPECT_EQ(get(id), "first");
  EXPECT_EQ(client->call("sandbox_restore", {{"sandbox_id", id}, {"checkpoint", "none such"}})["isError"], true);
}

TEST_F(Mcp, DiffReturnsPatchWhenAsked) {
  const auto client = start();
  const std::string id = create(*client);
  const std::string large = "for i in $(seq 40000); do echo line $i; done > large.txt";
  client->tool("sandbox_execute",
               {{"sandbox_id", id},
                {"command", "echo more >> a.txt; mkdir sub; echo new > sub/b.txt; printf '\\0' > binary; " + large}});
  const Json plain = client->tool("sandbox_diff", {{"sandbox_id", id}});
  EXPECT_FALSE(plain.contains("patch")) << plain;

  const Json whole = client->tool("sandbox_diff", {{"sandbox_id", id}, {"patch", true}});
  const std::string patch = whole.value("patch", "");
  EXPECT_NE(patch.find("--- a/a.txt\n+++ b/a.txt\n@@ -1 +1,2 @@\n from the host\n+more\n"), std::string::npos) << whole;
  EXPECT_NE(patch.find("+++ b/sub/b.txt\n@@ -0,0 +1 @@\n+new\n"), std::string::npos) << whole;
  EXPECT_EQ(patch.find("large.txt"), std::string::npos) << "longer than the limit";
  std::map<std::string, std::string> left_out;
  for (const Json& one : whole["left_out"]) left_out[one["path"]] = one["reason"];
  EXPECT_NE(left_out["large.txt"].find("max_bytes"), std::string::npos) << whole["left_out"];
  EXPECT_NE(left_out["binary"].find("binary"), std::string::npos) << whole["left_out"];
  EXPECT_EQ(whole["changes"][0]["path"], "a.txt") << whole;
  EXPECT_EQ(whole["changes"][0]["added_lines"], 1) << whole;
  EXPECT_EQ(whole["changes"][1]["path"], "binary") << whole;
  EXPECT_EQ(whole["changes"][1]["binary"], true) << whole;
  EXPECT_NE(whole.value("note", "").find("lacks 2 of the changed files"), std::string::npos) << whole;
  const Json more = client->tool(
      "sandbox_diff", {{"sandbox_id", id}, {"patch", true}, {"paths", {"large.txt"}}, {"max_bytes", 1 << 20}});
  EXPECT_TRUE(more.value("patch", "").ends_with("\n+line 40000\n")) << more.dump().substr(0, 300);
  EXPECT_FALSE(more.contains("note")) << more["note"];
  const Json less = client->tool("sandbox_diff", {{"sandbox_id", id}, {"patch", true}, {"max_bytes", 120}});
  EXPECT_LE(less.value("patch", "").size(), 120U) << less;
  EXPECT_NE(less["left_out"].dump().find("name it in `paths`"), std::string::npos) << less;

  const Json part = client->tool("sandbox_diff", {{"sandbox_id", id}, {"patch", true}, {"paths", {"/workspace/sub/"}}});
  EXPECT_EQ(part.value("patch", ""),
            "diff --git a/sub/b.txt b/sub/b.txt\nnew file mode 100644\n--- /dev/null\n+++ b/sub/b.txt\n@@ -0,0 +1 @@\n"
            "+new\n");
  EXPECT_EQ(part["left_out"].size(), 0U) << part;

  for (const char* path : {"/workspace", "/workspace/", "./", "."}) {
    const Json all = client->tool("sandbox_diff", {{"sandbox_id", id}, {"patch", true}, {"paths", {path}}});
    EXPECT_EQ(all.value("patch", ""), patch) << path;
  }
}

TEST_F(Mcp, SandboxesEndWithTheServerUnlessKept) {
  CONFORMS("R-SESSION-10");
  auto client = start();
  create(*client);
  const std::string kept = create(*client, {{"keep", true}});
  client->tool("sandbox_execute", {{"sandbox_id", kept}, {"command", "echo still here > note"}});
  client->signal(SIGTERM);
  EXPECT_EQ(client->wait(), 0);
  const std::string left = sessions();
  EXPECT_NE(left.find(kept), std::string::npos) << left;
  EXPECT_EQ(std::count(left.begin(), left.end(), '\n'), 1) << left;
  client = start();
  EXPECT_EQ(client->tool("sandbox_list", Json::object())["sandboxes"], Json::array());
  EXPECT_EQ(client->tool("sandbox_read_file", {{"sandbox_id", kept}, {"path", "note"}})["content"], "still here\n");
  EXPECT_EQ(client->tool("sandbox_destroy", {{"sandbox_id", kept}})["destroyed"], true);
  client->closeInput();
  EXPECT_EQ(client->wait(), 0);
  EXPECT_EQ(sessions(), "");
}

TEST_F(Mcp, AClientThatDiesLeavesNothing) {
  CONFORMS("R-SESSION-10");
  const std::string marker = uniqueMarker();
  {
    const auto client = start();
    const std::string id = create(*client);
    client->send("tools/call", {{"name", "sandbox_execute"},
                                {"arguments", {{"sandbox_id", id}, {"command", "sh -c 'sleep 300; :' " + marker}}}});
    ASSERT_TRUE(eventually([&] { return !processesNaming(marker).empty(); }));
  }
  EXPECT_EQ(sessions(), "");
  EXPECT_TRUE(eventually([&] { return processesNaming(marker).empty(); })) << "a process is left";
  for (const char* directory : {"state/stores", "state/runs"}) {
    EXPECT_EQ(runProgram({"sh", "-c", "ls -A " + (home / directory) + " 2>/dev/null"}).out, "") << directory;
  }
}

}  // namespace
}  // namespace caisson::test
