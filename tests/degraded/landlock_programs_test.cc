// Programs that people use, in the landlock tier as it is under docker's defaults: no namespaces.
#include "degraded/degraded.h"

namespace caisson::test {
namespace {

class LandlockPrograms : public DegradedTest {
 protected:
  [[nodiscard]] RunOutput script(const std::string& text, std::vector<std::string> options = {}) const {
    std::vector<std::string> arguments{"run", "--tier", "landlock", "--workspace", workspace.path() + ":rw"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    arguments.insert(arguments.end(), {"--", "sh", "-ec", text});
    return caissonWithout("namespaces", arguments, {.timeout = std::chrono::seconds(120)});
  }
};

TEST_F(LandlockPrograms, GitClonesCommitsAndBranches) {
  requireOrSkip(hasProgram("git"), "no git here");
  const RunOutput output = script(
      "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b.invalid GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b.invalid\n"
      "git init -q origin; cd origin; echo one > file; git add file; git commit -qm first; cd ..\n"
      "git clone -q origin copy; cd copy; echo two >> file; git commit -qam second; git checkout -qb branch\n"
      "git gc -q; git status --short; git log --format=%s; git fsck --no-progress; cat file");
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_EQ(output.out, "second\nfirst\none\ntwo\n") << output.describe();
}

TEST_F(LandlockPrograms, GitClonesARepositoryThatIsShownReadOnly) {
  requireOrSkip(hasProgram("git"), "no git here");
  const TempDir source;
  const RunOutput made = runProgram({"sh", "-ec",
                                     "cd " + source.path() +
                                         "; git init -q; echo one > file; git add file; git -c user.name=a "
                                         "-c user.email=a@b.invalid commit -qm first; chmod -R a+rX ."});
  ASSERT_EQ(made.exit_status, 0) << made.describe();
  source.openToAll();
  const RunOutput output =
      script("git config --global safe.directory '*'; git clone -q file://" + source.path() + " copy; cat copy/file",
             {"--ro", source.path()});
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_EQ(output.out, "one\n") << output.describe();
}

TEST_F(LandlockPrograms, NpmRunsTests) {
  requireOrSkip(exists("/usr/bin/npm"), "no npm here");
  workspace.write("package.json",
                  R"({"name": "x", "version": "1.0.0", "scripts": {"test": "node --test"}, "dependencies": {}})");
  workspace.write(
      "sum.test.js",
      "const test = require('node:test'); const assert = require('node:assert'); const fs = require('fs');\n"
      "test('adds', () => { fs.writeFileSync('w', ''); fs.chmodSync('w', 0o600); fs.utimesSync('w', 1, 2);\n"
      "  assert.strictEqual(fs.statSync('w').mtimeMs, 2000); assert.strictEqual(1 + 1, 2); });\n");
  const RunOutput output = script(
      "npm test 2>&1 && npm pack --silent && npm install --offline --no-audit ./x-1.0.0.tgz "
      "--prefix \"$TMPDIR/target\" 2>&1 && ls \"$TMPDIR/target/node_modules\"");
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_TRUE(contains(output.out, "pass 1")) << output.describe();
  EXPECT_TRUE(output.out.ends_with("\nx\n")) << output.describe();
}

TEST_F(LandlockPrograms, PythonMakesAVirtualEnvironment) {
  const bool venv =
      exists("/usr/bin/python3") && runProgram({"/usr/bin/python3", "-c", "import venv, ensurepip"}).exit_status == 0;
  requireOrSkip(venv, "no python3 with venv here");
  workspace.write("module/setup.py", "from setuptools import setup\nsetup(name='module', py_modules=['module'])\n");
  workspace.write("module/module.py", "value = 7\n");
  const RunOutput output = script(
      "/usr/bin/python3 -m venv env; . env/bin/activate; python -c 'import sys; print(sys.prefix != sys.base_prefix)'\n"
      "pip --version > /dev/null; cp -r module \"$TMPDIR/m\"\n"
      "python -c 'import tempfile, os, multiprocessing; f = tempfile.NamedTemporaryFile(); "
      "print(os.path.exists(f.name))'");
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_EQ(output.out, "True\nTrue\n") << output.describe();
}

TEST_F(LandlockPrograms, MakeBuildsAndInstalls) {
  requireOrSkip(hasProgram("make") && hasProgram("cc"), "no make or cc here");
  workspace.write("hello.c", "#include <stdio.h>\nint main(void) { puts(\"hello\"); return 0; }\n");
  workspace.write("Makefile",
                  "hello: hello.c\n\tcc -o $@ $<\ninstall: hello\n\tinstall -m 755 -D hello $(PREFIX)/bin/hello\n"
                  "\tcp -p hello.c $(PREFIX)/\n\ttouch -r hello.c hello\n");
  const RunOutput output = script(
      "make -s -j2 install PREFIX=\"$PWD/out\"; out/bin/hello; stat -c %a out/bin/hello; tar cf a.tar out; mkdir t\n"
      "tar xpf a.tar -C t; t/out/bin/hello");
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_EQ(output.out, "hello\n755\nhello\n") << output.describe();
}

TEST_F(LandlockPrograms, CargoBuilds) {
  requireOrSkip(hasProgram("cargo") && hasProgram("cc") && !runsAsRoot(), "no cargo of this user here");
  workspace.write("Cargo.toml", "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
  workspace.write("src/main.rs", "fn main() { println!(\"built\"); }\n");
  const RunOutput output = script("cargo run -q --offline");
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_EQ(output.out, "built\n") << output.describe();
}

}  // namespace
}  // namespace caisson::test
