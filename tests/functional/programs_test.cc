// Ordinary programs work unchanged in `full` with the default profile: shells, tools, version control, build tools.
#include <gtest/gtest.h>

#include "functional/sandbox.h"
#include "functional/tree_state.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

class Programs : public SandboxTest {};

#define requireProgram(program) requireOrSkip(systemHas(program), std::string(program) + " is not installed below /usr")

TEST_F(Programs, BashWithPipesJobsHereDocumentsAndSubstitution) {
  CONFORMS("R-USE-1");
  const RunOutput output = script(R"sh(
    set -euo pipefail
    cat <(printf 'b\na\n') | sort | tr -d '\n'; echo
    sleep 0.05 & wait $!
    cat <<END | wc -l
one
two
END
    declare -A map=([k]=v); echo "${map[k]}"
    echo "$((6 * 7))" > >(cat); wait
    trap 'echo bye' EXIT
    kill -0 $$
  )sh");
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_EQ(output.out, "ab\n2\nv\n42\nbye\n");
}

/// Programs size pools, heaps and caches by these values: they must show the limit, not the machine.
TEST_F(Programs, SeeTheLimitsOfTheirSandbox) {
  const std::vector<std::string> limits{"--memory", "256M", "--cpus", "1"};
  const auto expect = [&](const std::string& program, const std::string& command, const std::string& answer) {
    if (!systemHas(program)) return;
    const RunOutput output = script(command, limits);
    EXPECT_EQ(output.out, answer) << command << output.describe();
  };
  expect("nproc", "nproc", "1\n");
  expect("free", "free -m | awk '/^Mem:/ { print $2, $3 }'", "256 0\n");
  expect("top", "top -bn1 | grep -ciE '^.*mem *: *256.0 total'", "1\n");
  expect("getconf", "getconf _NPROCESSORS_ONLN", "1\n");
  expect("python3", "python3 -c 'import os; print(os.cpu_count(), len(os.sched_getaffinity(0)))'", "1 1\n");
  expect("getconf", "echo $(($(getconf _PHYS_PAGES) * $(getconf PAGESIZE) >> 20))", "256\n");
  expect("busybox", "busybox free -m | awk '/^Mem:/ { print $2 }'", "256\n");
  expect("java", "java -XX:+PrintFlagsFinal -version 2>&1 | awk '$2 == \"MaxHeapSize\" { print $4 <= 128 * 1048576 }'",
         "1\n");
  expect("node", "node -p 'const os = require(\"os\"); [os.cpus().length, os.totalmem() / 1048576].join()'", "1,256\n");
  expect("java", "echo 'System.out.println(Runtime.getRuntime().availableProcessors());' | jshell -s -", "1\n");
}

TEST_F(Programs, BashLoginShell) {
  CONFORMS("R-USE-1");
  const RunOutput output = run({}, {"bash", "-lc", "echo $USER $HOME; ulimit -c; type -t ls"});
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_EQ(output.out, "sandbox /home/sandbox\n0\nfile\n");
  EXPECT_EQ(output.err, "");
}

TEST_F(Programs, Coreutils) {
  const RunOutput output = script(R"sh(
    set -e
    mkdir -p a/b; echo text > a/b/f; cp -a a c; mv c d; ln -s d/b/f link; ln d/b/f hard
    chmod 640 hard; touch -d 2001-02-03 old; stat -c %a hard; readlink -f link; date -r old +%Y
    seq 5 | paste -sd+ | head -c 3; echo; du -s . > /dev/null; df /tmp > /dev/null; sha256sum hard | cut -c1-8
    truncate -s 10 hard; stat -c %s d/b/f; install -m 755 old new; mktemp > /dev/null; mkfifo p; rm -r a d; ls
    timeout 5 true; nice true; nohup true 2> /dev/null; env -i true; id -un; tee t < old; split -n 2 old; shuf -i 1-3 | wc -l
  )sh");
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_EQ(output.out, "640\n/workspace/d/b/f\n2001\n1+2\nb9e68e1b\n10\nhard\nlink\nnew\nold\np\nsandbox\n3\n");
}

TEST_F(Programs, FindGrepSedAwkXargsDiff) {
  const RunOutput output = script(R"sh(
    set -e
    printf 'one\ntwo\nthree\n' > f; mkdir d; cp f d/g
    find . -name g -o -name f | sort | xargs grep -c t | paste -sd' '
    sed -i s/two/2/ f; awk '{ n += length } END { print n }' f
    diff f d/g > /dev/null || echo differ
    find . -type f -print0 | xargs -0 -P 2 -n 1 wc -l | wc -l
  )sh");
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_EQ(output.out, "./d/g:2 ./f:2\n9\ndiffer\n2\n");
}

TEST_F(Programs, TarAndGzip) {
  const RunOutput output = script(R"sh(
    set -e
    mkdir t; echo data > t/f; ln -s f t/l; chmod 600 t/f
    tar czf t.tgz t; mv t was; tar xzf t.tgz; stat -c %a t/f; readlink t/l; cmp t/f was/f
    gzip -k t/f; zcat t/f.gz; gzip -t t/f.gz
    tar cf - t | tar tf - | sort | paste -sd' '
  )sh");
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_EQ(output.out, "600\nf\ndata\nt/ t/f t/f.gz t/l\n");
}

TEST_F(Programs, GitInANewRepository) {
  CONFORMS("R-USE-1");
  requireProgram("git");
  const RunOutput output = script(R"sh(
    set -e
    git init -q repo; cd repo; git config user.email a@example.org; git config user.name A
    echo 1 > f; git add f; git commit -qm one; git checkout -qb side; echo 2 > f; git commit -qam two
    git checkout -q -; git merge -q side; git status --porcelain; git log --format=%s; git gc -q; git fsck 2> /dev/null
    git clone -q . ../copy; git -C ../copy stash list; git worktree add -q ../tree side 2>&1; cat ../tree/f
  )sh");
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_EQ(output.out, "two\none\n2\n");
}

TEST_F(Programs, GitInTheTemporaryAndHomeDirectory) {
  requireProgram("git");
  for (const std::string directory : {"/tmp", "/home/sandbox"}) {
    const RunOutput output = script("set -e; cd " + directory + R"sh(
      git init -q r; cd r; echo 1 > f; git add f
      git -c user.email=a@example.org -c user.name=A commit -qm one; git status --porcelain; git log --format=%s)sh");
    EXPECT_EQ(output.out, "one\n") << directory << output.describe();
  }
}

TEST_F(Programs, GitOnAnExistingRepositoryOfTheHost) {
  requireProgram("git");
  const RunOutput made = onHost(R"sh(
    set -e
    git init -q; git config user.email a@example.org; git config user.name A
    mkdir d; echo 1 > d/f; git add .; git commit -qm one; echo 2 > d/f)sh");
  ASSERT_EQ(made.exit_status, 0) << made.describe();
  const auto before = treeState(workspace.path());

  const RunOutput output = script(
      "set -e; git status --porcelain; git commit -qam two; git log --format=%s; git mv d/f d/g; "
      "git commit -qm three; git status --porcelain; cat d/g");
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_EQ(output.out, " M d/f\ntwo\none\n2\n");
  EXPECT_EQ(differences(before, treeState(workspace.path())), "");

  // The same repository read-only: neither missing write access nor the owner may break git.
  EXPECT_EQ(script("git status --porcelain", {"--workspace", ".:ro"}).out, " M d/f\n");
  const RunOutput for_real = script("git commit -qam two && git log --format=%s", {"--workspace", ".:rw"});
  EXPECT_EQ(for_real.out, "two\none\n") << for_real.describe();
  EXPECT_EQ(onHost("git status --porcelain; git log --format=%s").out, "two\none\n");
}

TEST_F(Programs, GccCompilesAndRunsInWorkspaceAndTmp) {
  requireProgram("gcc");
  for (const std::string directory : {"/workspace", "/tmp", "/home/sandbox"}) {
    const RunOutput output = script("set -e; cd " + directory + R"sh(
      printf '#include <stdio.h>\nint main(void) { return puts("c") < 0; }\n' > m.c
      gcc -O1 -Wall -o m m.c; ./m)sh");
    EXPECT_EQ(output.out, "c\n") << directory << "\n" << output.describe();
  }
}

TEST_F(Programs, GppWithThreadsExceptionsAndASharedLibrary) {
  requireProgram("g++");
  workspace.write("m.cc", R"cc(#include <iostream>
#include <stdexcept>
#include <thread>
                               int twice(int);
                               int main() {
                                 int sum = 0;
                                 std::thread worker([&] { sum = twice(21); });
                                 worker.join();
                                 try {
                                   throw std::runtime_error("caught");
                                 } catch (const std::exception& e) {
                                   std::cout << sum << e.what() << '\n';
                                 }
                               })cc");
  workspace.write("twice.cc", "int twice(int x) { return 2 * x; }\n");
  const RunOutput output = script(R"sh(set -e
    g++ -shared -fPIC -o libtwice.so twice.cc
    g++ -pthread -o m m.cc -L. -ltwice -Wl,-rpath,'$ORIGIN'
    ./m; ldd ./m | grep -c libtwice.so)sh");
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_EQ(output.out, "42caught\n1\n");
}

TEST_F(Programs, MakeInParallel) {
  requireProgram("make");
  workspace.write("Makefile", "all: a b c\n\t@cat a b c\na b c:\n\t@sleep 0.05; echo $@ > $@\n");
  const RunOutput output = script("make -s -j4 && make -q a");
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_EQ(output.out, "a\nb\nc\n");
}

TEST_F(Programs, CmakeConfiguresBuildsAndTests) {
  requireProgram("cmake");
  requireProgram("gcc");
  workspace.write("CMakeLists.txt",
                  "cmake_minimum_required(VERSION 3.20)\nproject(p C)\nenable_testing()\n"
                  "add_executable(p p.c)\nadd_test(NAME t COMMAND p)\n");
  workspace.write("p.c", "int main(void) { return 0; }\n");
  const RunOutput output =
      script("cmake -S . -B build > log && cmake --build build >> log && cd build && ctest -Q && echo ok");
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_EQ(output.out, "ok\n");
}

TEST_F(Programs, CurlKnowsItsVersionAndFindsNoNetwork) {
  CONFORMS("R-NETWORK-1", "R-USE-1");
  requireProgram("curl");
  const RunOutput output = run({}, {"curl", "--version"});
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_TRUE(output.out.starts_with("curl ")) << output.describe();
  EXPECT_EQ(script("echo content > f; curl -sS file:///workspace/f").out, "content\n");
  EXPECT_EQ(run({}, {"curl", "-sS", "--max-time", "5", "http://127.0.0.1:9/"}).exit_status, 7);  // no listener
}

TEST_F(Programs, JqTransformsStandardInput) {
  CONFORMS("R-USE-1");
  requireProgram("jq");
  EXPECT_EQ(run({}, {"jq", "-c", ".a | map(. + 1)"}, {.stdin_data = R"({"a": [1, 2]})"}).out, "[2,3]\n");
}

TEST_F(Programs, VimEditsAFile) {
  CONFORMS("R-USE-1");
  requireProgram("vim");
  const RunOutput output = script("printf 'a\\nb\\n' > f; vim -es -u NONE -c '%s/a/z/' -c 'wq' f; cat f");
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_EQ(output.out, "z\nb\n");
}

TEST_F(Programs, LessAndTree) {
  CONFORMS("R-USE-1");
  requireProgram("less");
  requireProgram("tree");
  workspace.write("d/f", "shown\n");
  EXPECT_EQ(run({}, {"less", "-FX", "d/f"}).out, "shown\n");
  const RunOutput output = run({}, {"tree", "--noreport", "d"});
  EXPECT_TRUE(contains(output.out, "f")) << output.describe();
  EXPECT_EQ(output.exit_status, 0);
}

TEST_F(Programs, GdbStarts) {
  requireProgram("gdb");
  const RunOutput output = run({}, {"gdb", "--version"});
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_TRUE(output.out.starts_with("GNU gdb")) << output.describe();
}

TEST_F(Programs, AScriptByItsInterpreterLine) {
  CONFORMS("R-USE-1");
  workspace.write("s", "#!/bin/sh\necho \"ran $0 $*\"\n", 0755);
  workspace.write("e", "#!/usr/bin/env bash\necho \"$BASH_VERSION\" | grep -c .\n", 0755);
  EXPECT_EQ(run({}, {"./s", "a b"}).out, "ran ./s a b\n");
  EXPECT_EQ(run({}, {"/workspace/e"}).out, "1\n");
}

TEST_F(Programs, LocalesTimeZonesAndUsersAreThere) {
  const RunOutput output = script(
      "locale charmap; TZ=Europe/Berlin date -d @0 +%H; getent passwd sandbox | cut -d: -f1,3,4,6; "
      "getent group 1000 | cut -d: -f1; getent hosts localhost | wc -l; getent services http | wc -l");
  const std::string services = exists("/etc/services") ? "1\n" : "0\n";  // a minimal host has none to show
  EXPECT_EQ(output.out, "UTF-8\n01\nsandbox:1000:1000:/home/sandbox\nsandbox\n1\n" + services) << output.describe();
}

}  // namespace
}  // namespace caisson::test
