#!/usr/bin/env python3
"""projects.py CAISSON [NAME...]: builds and tests real projects under the unmodified profile `dev`.

Each project is written to a new directory. A session with that directory as workspace runs the commands that a developer
would type. The last line has the number of passed projects. A project whose tools are missing is skipped.
"""
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse

BLOCKED = re.compile(r"^(10\.|127\.|169\.254\.|172\.(1[6-9]|2\d|3[01])\.|192\.0\.[02]\.|192\.168\.|198\.(1[89]|51)\.|203\.0\.113\.|100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.)")


class Skipped(Exception):
    pass


class Failed(Exception):
    pass


def write(directory, files):
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def need(*programs):
    missing = [name for name in programs if shutil.which(name) is None]
    if missing:
        raise Skipped("not installed: " + ", ".join(missing))


def need_path(path, package):
    if not pathlib.Path(path).exists():
        raise Skipped(f"not installed: {package}")


class Sandbox:
    """A session with `directory` as workspace."""

    def __init__(self, caisson, directory, home, options=()):
        self.caisson = caisson
        self.environment = dict(os.environ, CAISSON_HOME=str(home / "state"), XDG_CONFIG_HOME=str(home / "config"))
        made = self.call("session", "create", "--workspace", str(directory), *options)
        self.id = made.stdout.strip()

    def call(self, *arguments, check=True):
        done = subprocess.run([self.caisson, *arguments], env=self.environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=1200)
        if check and done.returncode != 0:
            raise Failed(f"caisson {' '.join(arguments)}: status {done.returncode}\n"
                         f"{done.stdout[-2000:]}\n{done.stderr[-3000:]}")
        return done

    def run(self, script):
        """Runs a shell command; returns its output."""
        return self.call("session", "exec", self.id, "--", "sh", "-c", script).stdout

    def close(self):
        self.call("session", "destroy", self.id, check=False)


def registry():
    """Returns (URL, host) of the configured npm registry."""
    need("node", "npm")
    url = subprocess.run(["npm", "config", "get", "registry"], capture_output=True, text=True).stdout.strip()
    return url, urllib.parse.urlparse(url).hostname


def online(home):
    """Returns flags for a sandbox with access to the npm registry. If its address is in a blocked range, the owner's
    configuration allows it."""
    url, host = registry()
    try:
        addresses = {entry[4][0] for entry in socket.getaddrinfo(host, 443, socket.AF_INET)}
    except OSError as error:
        raise Skipped(f"the address of the npm registry cannot be resolved: {error}")
    if any(BLOCKED.match(address) for address in addresses):
        write(home, {"config/caisson/config.toml": f"[network]\nprivate_hosts = [\"{host}\"]\n"})
    flags = ["--net", "proxy", "--allow-host", host, "--env", f"npm_config_registry={url}"]
    if "NODE_EXTRA_CA_CERTS" in os.environ:
        flags += ["--env", "NODE_EXTRA_CA_CERTS"]
    return flags


def node_dependency():
    """Vite and Next.js need Node 20.19; with an older Node, a newer one is installed from npm."""
    version = subprocess.run(["node", "--version"], capture_output=True, text=True).stdout.strip().lstrip("v")
    major, minor = (int(part) for part in version.split(".")[:2])
    return {} if (major, minor) >= (20, 19) else {"node": "^20.19.0"}


def vite(directory, home):
    flags = online(home)
    write(directory, {
        "package.json": json.dumps({
            "name": "vite-app", "private": True, "type": "module",
            "scripts": {"build": "tsc && vite build", "test": "vitest run"},
            "dependencies": {"react": "^19.0.0", "react-dom": "^19.0.0"},
            "devDependencies": {"vite": "^7.0.0", "typescript": "^5.0.0", "vitest": "^3.0.0",
                                "@vitejs/plugin-react": "^5.0.0", "@types/react": "^19.0.0",
                                "@types/react-dom": "^19.0.0", **node_dependency()}}),
        "tsconfig.json": json.dumps({"compilerOptions": {
            "target": "ES2022", "module": "ESNext", "moduleResolution": "bundler", "jsx": "react-jsx", "strict": True,
            "noEmit": True, "skipLibCheck": True}, "include": ["src"]}),
        "vite.config.ts": "import react from '@vitejs/plugin-react';\nexport default { plugins: [react()] };\n",
        "index.html": "<!doctype html><div id=root></div><script type=module src=/src/main.tsx></script>\n",
        "src/sum.ts": "export const sum = (a: number, b: number): number => a + b;\n",
        "src/sum.test.ts": "import { expect, test } from 'vitest';\nimport { sum } from './sum';\n"
                           "test('adds', () => { expect(sum(2, 3)).toBe(5); });\n",
        "src/main.tsx": "import { createRoot } from 'react-dom/client';\nimport { sum } from './sum';\n"
                        "createRoot(document.getElementById('root')!).render(<p>{sum(40, 2)}</p>);\n",
    })

    def check(sandbox):
        sandbox.run("npm install --no-audit --no-fund")
        sandbox.run("npm run build && test -s dist/index.html")
        assert "1 passed" in re.sub(r"\x1b\[[0-9;]*m", "", sandbox.run("npm test"))

    return flags, check


def next_app(directory, home):
    flags = online(home)
    write(directory, {
        "package.json": json.dumps({
            "name": "next-app", "private": True, "scripts": {"build": "next build"},
            "dependencies": {"next": "^15.0.0", "react": "^19.0.0", "react-dom": "^19.0.0", **node_dependency()}}),
        "app/layout.js": "export default function Layout({ children }) {\n"
                         "  return <html><body>{children}</body></html>;\n}\n",
        "app/page.js": "export default function Page() { return <main>built inside</main>; }\n",
    })

    def check(sandbox):
        sandbox.run("npm install --no-audit --no-fund")
        sandbox.run("NEXT_TELEMETRY_DISABLED=1 npm run build")
        assert "built inside" in sandbox.run("cat .next/server/app/index.html")
        script = ("npx next start -p 3000 >/tmp/server.log 2>&1 & server=$!; "
                  "for i in $(seq 100); do node -e \"fetch('http://127.0.0.1:3000/').then(r => r.text())"
                  ".then(t => console.log(t)).catch(() => process.exit(1))\" && break; sleep 0.3; done; kill $server")
        assert "built inside" in sandbox.run(script)

    return flags, check


def python_extension(directory, home):
    need("python3", "gcc")
    write(directory, {
        "setup.py": "from setuptools import Extension, setup\n"
                    "setup(name='fast', version='1.0', ext_modules=[Extension('fast', ['fast.c'])])\n",
        "fast.c": "#include <Python.h>\n"
                  "static PyObject *add(PyObject *self, PyObject *args) {\n"
                  "  long a, b;\n  (void)self;\n"
                  "  return PyArg_ParseTuple(args, \"ll\", &a, &b) ? PyLong_FromLong(a + b) : NULL;\n}\n"
                  "static PyMethodDef methods[] = {{\"add\", add, METH_VARARGS, \"\"}, {0}};\n"
                  "static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, \"fast\", 0, -1, methods};\n"
                  "PyMODINIT_FUNC PyInit_fast(void) { return PyModule_Create(&module); }\n",
        "test_fast.py": "import unittest\nimport fast\n\n\nclass Add(unittest.TestCase):\n"
                        "    def test_adds(self):\n        self.assertEqual(fast.add(2, 3), 5)\n",
    })

    def check(sandbox):
        sandbox.run("/usr/bin/python3 -m venv .venv")
        sandbox.run(".venv/bin/pip install --no-index --no-build-isolation .")
        sandbox.run("cd /tmp && cp /workspace/test_fast.py . && /workspace/.venv/bin/python -m unittest test_fast")

    return [], check


def rust_workspace(directory, home):
    need("cargo")
    need_path("/usr/share/cargo/registry", "librust-itoa-dev")
    write(directory, {
        "Cargo.toml": "[workspace]\nmembers = ['app', 'text']\nresolver = '2'\n",
        ".cargo/config.toml": "[source.crates-io]\nreplace-with = 'system'\n[source.system]\n"
                              "directory = '/usr/share/cargo/registry'\n",
        "text/Cargo.toml": "[package]\nname = 'text'\nversion = '0.1.0'\nedition = '2021'\n"
                           "[dependencies]\nitoa = '1'\nmemchr = '2'\n",
        "text/src/lib.rs": "pub fn show(n: u64) -> String { itoa::Buffer::new().format(n).to_owned() }\n"
                           "pub fn find(text: &str) -> Option<usize> { memchr::memchr(b'x', text.as_bytes()) }\n"
                           "#[test]\nfn shows() { assert_eq!((show(42).as_str(), find(\"axb\")), (\"42\", Some(1))); }\n",
        "app/Cargo.toml": "[package]\nname = 'app'\nversion = '0.1.0'\nedition = '2021'\n"
                          "[dependencies]\ntext = { path = '../text' }\n",
        "app/src/main.rs": "fn main() { println!(\"{}\", text::show(7)); }\n",
    })

    def check(sandbox):
        assert "1 passed" in sandbox.run("cargo test --offline 2>&1")
        assert sandbox.run("cargo run --offline --quiet -p app") == "7\n"

    return [], check


def go_module(directory, home):
    need("go")
    source = pathlib.Path("/usr/share/gocode/src/github.com/pkg/errors")
    need_path(source, "golang-github-pkg-errors-dev")
    vendored = directory / "vendor/github.com/pkg/errors"
    vendored.mkdir(parents=True)
    for path in source.glob("*.go"):
        if not path.name.endswith("_test.go"):
            shutil.copy(path, vendored)
    write(directory, {
        "go.mod": "module example.org/app\n\ngo 1.18\n\nrequire github.com/pkg/errors v0.9.1\n",
        "vendor/modules.txt": "# github.com/pkg/errors v0.9.1\n## explicit\ngithub.com/pkg/errors\n",
        "main.go": "package main\n\nimport (\n\t\"fmt\"\n\n\t\"github.com/pkg/errors\"\n)\n\n"
                   "func wrap() error { return errors.Wrap(errors.New(\"inner\"), \"outer\") }\n\n"
                   "func main() { fmt.Println(wrap()) }\n",
        "main_test.go": "package main\n\nimport \"testing\"\n\nfunc TestWrap(t *testing.T) {\n"
                        "\tif wrap().Error() != \"outer: inner\" {\n\t\tt.Fatal(wrap())\n\t}\n}\n",
    })

    def check(sandbox):
        assert "ok" in sandbox.run("go test ./...")
        assert sandbox.run("go run .") == "outer: inner\n"

    return [], check


def cmake_project(directory, home):
    need("cmake", "g++", "make")
    write(directory, {
        "CMakeLists.txt": "cmake_minimum_required(VERSION 3.16)\nproject(demo CXX)\nenable_testing()\n"
                          "add_library(sum sum.cc)\nadd_executable(check check.cc)\ntarget_link_libraries(check sum)\n"
                          "add_test(NAME check COMMAND check)\n",
        "sum.cc": "int sum(int a, int b) { return a + b; }\n",
        "check.cc": "int sum(int, int);\nint main() { return sum(2, 3) == 5 ? 0 : 1; }\n",
    })

    def check(sandbox):
        sandbox.run("cmake -S . -B build && cmake --build build -j")
        assert "100% tests passed" in sandbox.run("ctest --test-dir build")

    return [], check


def maven_project(directory, home):
    need("mvn", "java")
    need_path("/usr/share/maven-repo/org/apache/maven/plugins/maven-compiler-plugin", "libmaven-compiler-plugin-java")

    def version(plugin, group="org/apache/maven/plugins"):
        base = pathlib.Path("/usr/share/maven-repo") / group / plugin
        found = sorted(path.name for path in base.iterdir() if re.match(r"\d", path.name)) if base.exists() else []
        if not found:
            raise Skipped(f"not installed: {plugin}")
        return found[-1]

    plugins = "".join(f"<plugin><artifactId>{name}</artifactId><version>{version(name)}</version></plugin>"
                      for name in ("maven-resources-plugin", "maven-compiler-plugin", "maven-surefire-plugin",
                                   "maven-jar-plugin"))
    write(directory, {
        "pom.xml": "<project><modelVersion>4.0.0</modelVersion><groupId>org.example</groupId>"
                   "<artifactId>demo</artifactId><version>1</version><properties>"
                   "<maven.compiler.source>11</maven.compiler.source><maven.compiler.target>11</maven.compiler.target>"
                   "<project.build.sourceEncoding>UTF-8</project.build.sourceEncoding></properties>"
                   f"<dependencies><dependency><groupId>junit</groupId><artifactId>junit</artifactId>"
                   f"<version>{version('junit', 'junit')}</version><scope>test</scope></dependency></dependencies>"
                   f"<build><plugins>{plugins}</plugins></build></project>\n",
        "src/main/java/org/example/Sum.java": "package org.example;\npublic class Sum {\n"
                                              "  public static int of(int a, int b) { return a + b; }\n}\n",
        "src/test/java/org/example/SumTest.java": "package org.example;\nimport static org.junit.Assert.*;\n"
                                                  "import org.junit.Test;\npublic class SumTest {\n"
                                                  "  @Test public void adds() { assertEquals(5, Sum.of(2, 3)); }\n}\n",
    })

    def check(sandbox):
        # A local repository of links to the system's repository.
        sandbox.run("mkdir -p ~/.m2 && cp -rs /usr/share/maven-repo ~/.m2/repository")
        printed = sandbox.run("mvn -o -B -q package && ls target")
        assert "demo-1.jar" in printed

    return [], check


PROJECTS = {"vite": vite, "next": next_app, "python": python_extension, "rust": rust_workspace, "go": go_module,
            "cmake": cmake_project, "maven": maven_project}


def attempt(name, caisson):
    """Returns 'passed', 'failed' or 'skipped', and the reason."""
    with tempfile.TemporaryDirectory(prefix=f"caisson-{name}-") as base:
        directory, home = pathlib.Path(base) / "project", pathlib.Path(base) / "home"
        directory.mkdir()
        home.mkdir()
        sandbox = None
        try:
            flags, check = PROJECTS[name](directory, home)
            sandbox = Sandbox(caisson, directory, home, flags)
            check(sandbox)
            return "passed", ""
        except Skipped as reason:
            return "skipped", str(reason)
        except (Failed, AssertionError, subprocess.TimeoutExpired) as reason:
            return "failed", str(reason) or "the output is not as expected"
        finally:
            if sandbox:
                sandbox.close()


def main(caisson, names):
    count = {"passed": 0, "failed": 0, "skipped": 0}
    for name in names or PROJECTS:
        begin = time.monotonic()
        state, why = attempt(name, os.path.abspath(caisson))
        count[state] += 1
        print(f"{state:8} {name:7} {time.monotonic() - begin:6.1f} s  {why}", flush=True)
    print(", ".join(f"{number} {state}" for state, number in count.items()))
    return 1 if count["failed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
