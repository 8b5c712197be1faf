#!/usr/bin/env python3
"""http_api.py [CAISSON] [EXEC-RATE-PROGRAM]: measures the HTTP server: create to first output, commands per second,
downloads.

Creates sandboxes through a plain connection and through both clients; build the TypeScript client first
(`make test-clients`). Compares commands with the library's exec() in the same run (bench/exec_rate.cc), and downloads
with nginx if it is installed. Run it on an idle machine."""
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../tests/api"))
if len(sys.argv) > 1:
    os.environ["CAISSON_BIN"] = os.path.abspath(sys.argv[1])
import api  # noqa: E402

sys.path.insert(0, os.path.join(HERE, "../clients/python/src"))
import caisson_client  # noqa: E402

ROUNDS = int(os.environ.get("ROUNDS", "100"))
PAUSE = 0.03  # seconds; the pool refills
TYPESCRIPT = os.path.join(os.path.dirname(os.path.realpath(api.CAISSON)), "clients/clients/typescript/dist/index.js")
# Prints the milliseconds of each round.
TYPESCRIPT_ROUNDS = """
const { Client, Sandbox } = await import(process.env.CLIENT);
const client = new Client({ url: process.env.SERVER });
const options = JSON.parse(process.env.FIELDS);
for (let round = 0; round < Number(process.env.ROUNDS); round++) {
  const begin = performance.now();
  const sandbox = await Sandbox.create({ ...options, client });
  const result = await sandbox.run(["echo", "x"]);
  console.log(performance.now() - begin);
  if (result.stdout !== "x\\n") throw new Error(result.stdout);
  await sandbox.destroy();
  await new Promise((done) => setTimeout(done, Number(process.env.PAUSE) * 1000));
}
"""
SIZE = 256 << 20


class Kept:
    """A client with a persistent connection."""

    def __init__(self, server):
        self.connection = api.UnixConnection(server.socket)
        self.connection.connect()

    def call(self, method, path, body=None):
        headers = {"Content-Type": "application/json"} if body is not None else {}
        self.connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = self.connection.getresponse()
        data = response.read()
        if response.status >= 300:
            raise SystemExit(f"{method} {path}: {response.status} {data}")
        return json.loads(data) if data else None


def row(name, value, unit, note=""):
    print(f"| {name} | {value:.2f} {unit} | {note} |", flush=True)


def first_output(client, fields):
    times = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        box = client.call("POST", "/v1/sandboxes", fields)["id"]
        result = client.call("POST", f"/v1/sandboxes/{box}/commands", {"args": ["echo", "x"]})
        times.append((time.perf_counter() - begin) * 1000)
        assert result["stdout"] == "x\n"
        client.call("DELETE", f"/v1/sandboxes/{box}")
        time.sleep(PAUSE)
    return statistics.median(times)


def through_python(server, fields):
    client = caisson_client.Client("unix:" + server.socket)
    times = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        sandbox = caisson_client.Sandbox.create(client=client, **fields)
        result = sandbox.run(["echo", "x"])
        times.append((time.perf_counter() - begin) * 1000)
        assert result.stdout == "x\n"
        sandbox.destroy()
        time.sleep(PAUSE)
    return statistics.median(times)


def through_typescript(server, fields):
    """Returns None if the client was not built."""
    if not os.path.exists(TYPESCRIPT):
        return None
    environment = {**os.environ, "CLIENT": TYPESCRIPT, "SERVER": "unix:" + server.socket, "FIELDS": json.dumps(fields),
                   "ROUNDS": str(ROUNDS), "PAUSE": str(PAUSE)}
    done = subprocess.run(["node", "--input-type=module", "-e", TYPESCRIPT_ROUNDS], env=environment, capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    return statistics.median(map(float, done.stdout.split()))


def rate(server, box, threads, seconds=5.0):
    counts = [0] * threads
    end = time.monotonic() + seconds

    def work(number):
        client = Kept(server)
        while time.monotonic() < end:
            client.call("POST", f"/v1/sandboxes/{box}/commands", {"args": ["true"]})
            counts[number] += 1

    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(counts) / seconds


def download(address, path, headers):
    sock = socket.create_connection(address)
    sock.sendall((f"GET {path} HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n").encode())
    buffer = bytearray(1 << 20)
    got = 0
    begin = time.perf_counter()
    while got < SIZE:
        size = sock.recv_into(buffer)
        if size == 0:
            raise SystemExit("the download ended early")
        got += size
    sock.close()
    return got / (time.perf_counter() - begin) / (1 << 20)


def stored(home):
    """Returns the path of the downloaded file in the layers of the sandbox."""
    for place, _, names in os.walk(home):
        if "f" in names and os.path.getsize(os.path.join(place, "f")) == SIZE:
            return place
    raise SystemExit("the file of the sandbox was not found below CAISSON_HOME")


def nginx(directory, root):
    """Serves the same file with nginx, because the speed depends mostly on how the page cache holds the file."""
    if shutil.which("nginx") is None:
        return None
    with open(os.path.join(directory, "nginx.conf"), "w") as file:
        file.write(("user root; " if os.getuid() == 0 else "") + f"daemon off; pid {directory}/pid; error_log {directory}/error; events {{}}\nhttp {{ "
                   + "".join(f"{name}_temp_path {directory}/{name}; " for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
                   + f"access_log off; sendfile on; "
                   f"server {{ listen 127.0.0.1:7999; root {root}; }} }}\n")
    process = subprocess.Popen(["nginx", "-c", os.path.join(directory, "nginx.conf"), "-p", directory])
    try:
        for _ in range(100):
            try:
                socket.create_connection(("127.0.0.1", 7999)).close()
                break
            except OSError:
                time.sleep(0.05)
        return max(download(("127.0.0.1", 7999), "/f", "") for _ in range(5))
    finally:
        process.terminate()
        process.wait()


def main():
    server = api.Server(config='[templates.t]\nprofile = "dev"\npool = 8\n')
    scratch = tempfile.mkdtemp(prefix="ca-b-", dir="/tmp")
    try:
        client = Kept(server)
        print("| what | result | |\n|---|---|---|")
        for name, fields, target in (("cold", {}, 12), ("pool", {"template": "t"}, 4)):
            row(f"create to first output, {name}, p50", first_output(client, fields), "ms", f"target {target}")
            row("the same through the Python client", through_python(server, fields), "ms", f"target {target}")
            measured = through_typescript(server, fields)
            if measured is None:
                print("| the same through the TypeScript client | not built | make test-clients builds it |")
            else:
                row("the same through the TypeScript client", measured, "ms", f"target {target}")
        box = client.call("POST", "/v1/sandboxes", {})["id"]
        for threads in (1, 4):
            library = None
            if len(sys.argv) > 2:
                done = subprocess.run([os.path.abspath(sys.argv[2]), str(threads)], env={**server.environment, "CAISSON_BIN": api.CAISSON}, capture_output=True, text=True, check=True)
                library = float(done.stdout)
            measured = rate(server, box, threads)
            note = f"library {library:.0f}, {measured / library:.2f}x, target 0.7x" if library else ""
            row(f"commands, {threads} client(s)", measured, "/s", note)
        token = server.token("bench")
        other = api.Client(server, token)
        mine = other.create()
        other.run(mine, f"head -c {SIZE} /dev/zero | tr '\\0' x > f")
        speed = max(download(("127.0.0.1", server.port), f"/v1/sandboxes/{mine}/files/content?path=f", f"Authorization: Bearer {token}\r\n") for _ in range(5))
        theirs = nginx(scratch, stored(server.home))
        row("download, 256 MiB", speed, "MiB/s", f"nginx {theirs:.0f}, {speed / theirs:.2f}x, target 0.8x" if theirs else "nginx is not installed")
    finally:
        server.close()
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    main()
