// Language runtimes and their package managers work unchanged in `full` with the default profile.
#include <gtest/gtest.h>

#include "functional/sandbox.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

class Languages : public SandboxTest {
 protected:
  /// Python reads the program from a file, as multiprocessing needs it.
  [[nodiscard]] RunOutput python(const std::string& program) const {
    workspace.write("program.py", program);
    return run({}, {"/usr/bin/python3", "program.py"});
  }
};

#define requireProgram(program) requireOrSkip(systemHas(program), std::string(program) + " is not installed below /usr")

TEST_F(Languages, PythonSubprocess) {
  CONFORMS("R-USE-1");
  requireProgram("python3");
  const RunOutput output = python(R"py(
import subprocess, sys, os
print(subprocess.run(["tr", "a", "b"], input="banana", capture_output=True, text=True, check=True).stdout)
print(subprocess.check_output("echo $0 | cat", shell=True, text=True).strip())
print(subprocess.run([sys.executable, "-c", "import os; os.kill(os.getpid(), 15)"]).returncode)
try: subprocess.run(["sleep", "30"], timeout=0.1)
except subprocess.TimeoutExpired: print("expired")
print(os.popen("pwd").read().strip())
)py");
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_EQ(output.out, "bbnbnb\n/bin/sh\n-15\nexpired\n/workspace\n");
}

TEST_F(Languages, PythonThreads) {
  requireProgram("python3");
  const RunOutput output = python(R"py(
import threading, queue, concurrent.futures
q = queue.Queue()
threads = [threading.Thread(target=lambda n=n: q.put(n * n)) for n in range(20)]
for t in threads: t.start()
for t in threads: t.join()
with concurrent.futures.ThreadPoolExecutor(8) as pool: total = sum(pool.map(lambda n: n, range(100)))
print(sum(q.queue), total)
)py");
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_EQ(output.out, "2470 4950\n");
}

TEST_F(Languages, PythonMultiprocessingWithLocksQueuesAndSharedMemory) {
  requireProgram("python3");
  const RunOutput output = python(R"py(
import multiprocessing
from multiprocessing import shared_memory
def square(n): return n * n
def add(lock, value):
    for _ in range(50):
        with lock: value.value += 1
if __name__ == "__main__":
    for method in "fork", "spawn", "forkserver":
        with multiprocessing.get_context(method).Pool(2) as pool: print(method, pool.map(square, [1, 2, 3]))
    lock, value = multiprocessing.Lock(), multiprocessing.Value("i", 0)
    workers = [multiprocessing.Process(target=add, args=(lock, value)) for _ in range(3)]
    for w in workers: w.start()
    for w in workers: w.join()
    queue = multiprocessing.Queue(); queue.put("queued")
    memory = shared_memory.SharedMemory(create=True, size=4096); memory.buf[0] = 7
    print(value.value, queue.get(), memory.buf[0]); memory.close(); memory.unlink()
)py");
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_EQ(output.out, "fork [1, 4, 9]\nspawn [1, 4, 9]\nforkserver [1, 4, 9]\n150 queued 7\n");
}

TEST_F(Languages, PythonAsyncioWithSubprocessAndLoopbackServer) {
  requireProgram("python3");
  const RunOutput output = python(R"py(
import asyncio
async def answer(reader, writer):
    writer.write((await reader.readline()).upper()); await writer.drain(); writer.close()
async def main():
    process = await asyncio.create_subprocess_exec("echo", "child", stdout=asyncio.subprocess.PIPE)
    print((await process.communicate())[0].decode().strip())
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(b"loopback\n"); print((await reader.readline()).decode().strip()); writer.close()
    print(sum(await asyncio.gather(*(asyncio.sleep(0.01, n) for n in range(10)))))
asyncio.run(main())
)py");
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_EQ(output.out, "child\nLOOPBACK\n45\n");
}

TEST_F(Languages, PythonSqlite) {
  requireProgram("python3");
  const RunOutput output = python(R"py(
import sqlite3
for path in "/workspace/a.db", "/tmp/a.db", "/home/sandbox/a.db":
    db = sqlite3.connect(path)
    print(db.execute("pragma journal_mode=wal").fetchone()[0])
    with db: db.execute("create table t(x)"); db.executemany("insert into t values (?)", [(n,) for n in range(100)])
    print(sqlite3.connect(path).execute("select sum(x) from t").fetchone()[0])
)py");
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_EQ(output.out, "wal\n4950\nwal\n4950\nwal\n4950\n");
}

TEST_F(Languages, PythonVirtualEnvironment) {
  requireProgram("python3");
  const RunOutput output = script(R"sh(set -e
    /usr/bin/python3 -m venv --without-pip v; echo 'print("module")' > "$(echo v/lib/python3*/site-packages)/m.py"
    . v/bin/activate; python -c 'import m, sys; print(sys.prefix)')sh");
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_EQ(output.out, "module\n/workspace/v\n");
}

TEST_F(Languages, PythonSeesAConsistentSystem) {
  requireProgram("python3");
  const RunOutput output = python(R"py(
import getpass, os, pathlib, random, socket, ssl, tempfile, time, uuid
print(getpass.getuser(), socket.gethostname(), pathlib.Path.home(), tempfile.gettempdir())
print(len(os.urandom(16)), len(str(uuid.uuid4())), time.monotonic() > 0, bool(ssl.create_default_context()))
with tempfile.TemporaryFile() as f: print(f.write(b"x"))
)py");
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_EQ(output.out, "sandbox sandbox /home/sandbox /tmp\n16 36 True True\n1\n");
}

TEST_F(Languages, NodeWithWorkersChildrenTimersAndFiles) {
  requireProgram("node");
  workspace.write("m.js", R"js(
const { Worker, isMainThread, parentPort } = require('worker_threads');
if (!isMainThread) { parentPort.postMessage('worker'); return; }
const fs = require('fs'), net = require('net'), { execFileSync } = require('child_process');
(async () => {
  console.log(await new Promise((done, fail) => new Worker(__filename).on('message', done).on('error', fail)));
  console.log(execFileSync('echo', ['child']).toString().trim());
  await fs.promises.writeFile('f', 'file'); console.log(fs.readFileSync('f', 'utf8'));
  console.log(require('crypto').createHash('sha256').update('').digest('hex').slice(0, 8));
  const server = net.createServer((s) => s.end('socket')).listen(0, '127.0.0.1', () => {
    net.connect(server.address().port, '127.0.0.1').on('data', (d) => { console.log(d.toString()); server.close(); });
  });
})();
)js");
  const RunOutput output = run({}, {"node", "m.js"});
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_EQ(output.out, "worker\nchild\nfile\ne3b0c442\nsocket\n");
}

TEST_F(Languages, NpmInstallsALocalTarballAndRunsItsScripts) {
  requireProgram("node");
  requireProgram("npm");
  workspace.write("dep/package.json", R"({"name": "dep", "version": "1.0.0", "main": "i.js", "bin": "cli.js",
    "scripts": {"postinstall": "node -e \"require('fs').writeFileSync('installed', 'yes')\""}})");
  workspace.write("dep/i.js", "module.exports = 'from the tarball';\n");
  workspace.write("dep/cli.js", "#!/usr/bin/env node\nconsole.log('command ' + require('./i.js'));\n", 0755);
  workspace.write("app/package.json", R"({"name": "app", "version": "1.0.0", "scripts": {"start": "dep"}})");
  const RunOutput output = script(R"sh(set -e
    cd dep; npm pack --silent > /dev/null; cd ../app
    npm install --silent --no-audit --no-fund --offline ../dep/dep-1.0.0.tgz
    cat node_modules/dep/installed; echo; node -p "require('dep')"; npm run --silent start)sh");
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_EQ(output.out, "yes\nfrom the tarball\ncommand from the tarball\n");
}

TEST_F(Languages, CargoBuildsTestsAndRunsACrate) {
  requireProgram("cargo");
  workspace.write("crate/Cargo.toml", "[package]\nname = \"c\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
  workspace.write("crate/src/main.rs", R"rs(use std::{process::Command, sync::mpsc, thread};
fn main() {
    let (tx, rx) = mpsc::channel();
    for n in 0..4 { let tx = tx.clone(); thread::spawn(move || tx.send(n).unwrap()); }
    drop(tx);
    let out = Command::new("echo").arg("child").output().unwrap();
    println!("{} {}", rx.iter().sum::<i32>(), String::from_utf8(out.stdout).unwrap().trim());
}
#[test]
fn adds() { assert_eq!(1 + 1, 2); }
)rs");
  const RunOutput output = script(
      "cd crate && cargo build -q --offline && cargo run -q --offline && cargo test -q --offline 2>&1 | "
      "grep -c 'test result: ok'");
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_EQ(output.out, "6 child\n1\n");
}

TEST_F(Languages, JavaCompilesAndRuns) {
  requireProgram("javac");
  requireProgram("java");
  workspace.write("M.java", R"java(import java.util.concurrent.*; import java.nio.file.*;
public class M { public static void main(String[] a) throws Exception {
  var pool = Executors.newFixedThreadPool(4);
  System.out.println(pool.submit(() -> 6 * 7).get()); pool.shutdown();
  Files.writeString(Path.of("f"), "file"); System.out.println(Files.readString(Path.of("f")));
  var p = new ProcessBuilder("echo", "child").start(); System.out.print(new String(p.getInputStream().readAllBytes()));
  System.out.println(System.getProperty("user.name") + " " + System.getProperty("user.home"));
} })java");
  const RunOutput output = script("javac M.java && java M");
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_EQ(output.out, "42\nfile\nchild\nsandbox /home/sandbox\n");
}

TEST_F(Languages, GoBuildsRunsAndTests) {
  requireProgram("go");
  workspace.write("go.mod", "module example.org/m\n\ngo 1.18\n");
  workspace.write("m.go", R"go(package main
import ("fmt"; "os/exec"; "sync")
func main() {
	var wg sync.WaitGroup; sum := make(chan int, 100)
	for i := 0; i < 100; i++ { wg.Add(1); go func(n int) { defer wg.Done(); sum <- n }(i) }
	wg.Wait(); close(sum); total := 0
	for n := range sum { total += n }
	out, err := exec.Command("echo", "child").Output()
	fmt.Print(total, " ", string(out), err, "\n")
}
)go");
  const RunOutput output = script("go build -o m . && ./m && go run .");
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_EQ(output.out, "4950 child\n<nil>\n4950 child\n<nil>\n");
}

TEST_F(Languages, Perl) {
  requireProgram("perl");
  const RunOutput output =
      run({}, {"perl", "-MFile::Temp=tempfile", "-MPOSIX", "-e",
               "my ($h, $n) = tempfile(); print $h 'x'; close $h; print -s $n, ' ';"
               "my $p = fork; exit 3 unless $p; waitpid $p, 0; print $? >> 8, ' ', scalar getpwuid($<), \"\\n\";"});
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_EQ(output.out, "1 3 sandbox\n");
}

}  // namespace
}  // namespace caisson::test
