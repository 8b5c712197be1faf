// Images of the local store as the root: layers, configuration, digests.
#include <gtest/gtest.h>

#include <cstdlib>

#include "functional/busybox_root.h"
#include "functional/sandbox.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

class ImageUse : public SandboxTest {
 protected:
  void SetUp() override {
    SandboxTest::SetUp();
    if (IsSkipped()) return;
    requireOrSkip(hasBusybox(), "no /bin/busybox on this machine");
    how.env = {{"CAISSON_HOME", home / "state"}};
    how.cwd = workspace.path();
    const RunOutput images = runCaisson({"image", "list"}, how);
    requireOrSkip(images.exit_status == 0, "caisson-image is not beside caisson: " + images.err);
  }
  /// Imports an image of these layers, lowest first; returns its digest.
  std::string import(const std::string& name, const std::string& config, const std::vector<const TempDir*>& layers) {
    const TempDir layout;
    std::vector<std::string> make{"python3",
                                  std::string(std::getenv("CAISSON_SOURCE_DIR")) + "/tests/functional/oci_layout.py",
                                  layout / "image", config};
    for (const TempDir* layer : layers) make.push_back(layer->path());
    const RunOutput made = runProgram(make);
    EXPECT_EQ(made.exit_status, 0) << made.describe();
    const RunOutput imported = runCaisson({"image", "import", "--quiet", layout / "image", name}, how);
    EXPECT_EQ(imported.exit_status, 0) << imported.describe();
    const RunOutput inspected = runCaisson({"image", "inspect", name}, how);
    EXPECT_EQ(inspected.exit_status, 0) << inspected.describe();
    return inspected.json()[0]["Digest"];
  }
  [[nodiscard]] RunOutput caisson(std::vector<std::string> arguments) const { return runCaisson(arguments, how); }

  const TempDir home;
  RunOptions how;
};

TEST_F(ImageUse, ConfigurationAppliesBelowThePolicy) {
  CONFORMS("R-ROOT-1");
  const TempDir root;
  installBusybox(root);
  root.write("srv/app/file", "data\n");
  import("app:1",
         R"({"Env":["PATH=/bin","GREETING=hello","MODE=image","LD_PRELOAD=/x.so","HOME=/x"],"WorkingDir":"/srv/app",
             "Entrypoint":["sh","-c"],"Cmd":["echo $GREETING $MODE $HOME $LD_PRELOAD; pwd; cat file"],"User":"33"})",
         {&root});
  const RunOutput output = caisson({"run", "--image", "app:1", "--workspace", ":none", "--env", "MODE=policy"});
  EXPECT_EQ(output.out, "hello policy /home/sandbox\n/srv/app\ndata\n") << output.describe();
  EXPECT_TRUE(contains(output.err, "user 33 is not used")) << output.describe();
  EXPECT_EQ(caisson({"run", "--image", "app:1", "--", "echo", "mine"}).out, "mine\n") << "replaces the entrypoint";
  const RunOutput none = caisson({"run", "--image", root.path()});
  EXPECT_EQ(none.exit_status, 125) << none.describe();
  EXPECT_TRUE(contains(none.err, "no command given")) << none.describe();
}

TEST_F(ImageUse, LayersAreStackedAndStayUnchanged) {
  CONFORMS("R-ROOT-1");
  const TempDir lower, upper;
  installBusybox(lower);
  lower.write("etc/name", "lower\n");
  lower.write("etc/kept", "kept\n");
  lower.write("gone/file", "gone\n");
  upper.write("etc/name", "upper\n");
  upper.write(".wh.gone", "");
  import("stacked", "{}", {&lower, &upper});
  EXPECT_EQ(
      caisson({"run", "--image", "stacked", "--", "sh", "-c", "cat /etc/name /etc/kept; test -e /gone || echo no"}).out,
      "upper\nkept\nno\n");
  const std::string change = "echo x > /etc/name; rm /etc/kept; mkdir /gone; ls /gone; cat /etc/name";
  EXPECT_EQ(caisson({"run", "--image", "stacked", "--user", "root", "--", "sh", "-c", change}).out, "x\n");
  EXPECT_EQ(caisson({"run", "--image", "stacked", "--", "cat", "/etc/name"}).out, "upper\n");
  EXPECT_EQ(caisson({"image", "verify", "stacked"}).exit_status, 0);
}

TEST_F(ImageUse, DigestPinsTheImageAndSessionsKeepTheirs) {
  CONFORMS("R-ROOT-2");
  const TempDir first, second;
  for (const TempDir* root : {&first, &second}) installBusybox(*root);
  first.write("name", "first\n");
  second.write("name", "second\n");
  const std::string digest = import("moving:1", "{}", {&first});
  const RunOutput made = caisson({"session", "create", "--image", "moving:1"});
  ASSERT_EQ(made.exit_status, 0) << made.describe();
  const std::string id = made.out.substr(0, made.out.find('\n'));
  EXPECT_EQ(caisson({"run", "--image", "moving@" + digest, "--", "cat", "/name"}).out, "first\n");
  const std::string other = import("moving:1", "{}", {&second});
  EXPECT_NE(other, digest);
  EXPECT_EQ(caisson({"run", "--image", "moving:1", "--", "cat", "/name"}).out, "second\n");
  const RunOutput kept = caisson({"session", "exec", id, "--", "cat", "/name"});
  EXPECT_EQ(kept.out, "first\n") << kept.describe();
  const RunOutput wrong = caisson({"run", "--image", "moving@sha256:" + std::string(64, '0'), "--", "cat", "/name"});
  EXPECT_EQ(wrong.exit_status, 125) << wrong.describe();
  EXPECT_EQ(wrong.out, "");
  EXPECT_EQ(caisson({"session", "destroy", id}).exit_status, 0);
}

}  // namespace
}  // namespace caisson::test
