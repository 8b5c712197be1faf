#!/usr/bin/env python3
"""Load tests: 10,000 idle connections, 1,000 streams, slow readers on every stream, growth over 1,000 sandboxes."""
import os
import resource
import socket
import time

import api
from api import ApiTest


# Each path has about 3.7 KB, in JSON six times as much.
MANY_LONG_PATHS = """
import os
for _ in range(14):
    os.mkdir(chr(1) * 250)
    os.chdir(chr(1) * 250)
for number in range({files}):
    open("%05d" % number + chr(1) * 245, "w").close()
"""


def memory_of(pid):
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


class Load(ApiTest):
    @classmethod
    def setUpClass(cls):
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        super().setUpClass()
        cls.box = cls.alice.create()

    def get(self, sock, path):
        sock.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self.alice.token}\r\n\r\n".encode())

    def test_ten_thousand_idle_connections(self):
        # The server reserves two descriptors for each connection, and some others.
        count = min(10_000, (resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 512) // 2 - 300)
        before = memory_of(self.server.process.pid)
        idle = []
        for _ in range(count):
            sock = self.server.raw()
            self.get(sock, "/healthz")
            idle.append(sock)
        for sock in idle:
            self.assertIn(b"200 OK", sock.recv(4096))
        print(f"{count} connections, {(memory_of(self.server.process.pid) - before) // count} bytes each")
        begin = time.monotonic()
        self.assertStatus(self.owner.run(self.box, "true"), 200)
        self.assertLess(time.monotonic() - begin, 5)
        for sock in idle:
            sock.close()

    def test_a_thousand_streams_stay_small(self):
        command = self.alice.run(self.box, "while :; do date; sleep 1; done", mode="background").json["id"]
        before = memory_of(self.server.process.pid)
        streams = []
        for _ in range(1000):
            sock = self.server.raw()
            self.get(sock, f"/v1/sandboxes/{self.box}/commands/{command}/output")
            streams.append(sock)
        for sock in streams:
            self.assertIn(b"200 OK", sock.recv(200))
        time.sleep(5)
        each = (memory_of(self.server.process.pid) - before) // len(streams)
        print(f"1000 streams, {each} bytes each")
        self.assertLess(each, 64 << 10)
        self.assertStatus(self.alice.run(self.box, "true"), 200)
        for sock in streams:
            sock.close()
        self.alice.call("DELETE", f"/v1/sandboxes/{self.box}/commands/{command}")

    def test_slow_readers_are_disconnected_on_every_stream(self):
        command = self.alice.run(self.box, "yes", mode="background", command_timeout=120).json["id"]
        self.alice.run(self.box, "head -c 50000000 /dev/zero > big")
        slow = []
        for path in (f"commands/{command}/output", "files/content?path=big", "files/archive?path=."):
            for _ in range(20):
                sock = socket.socket()
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                sock.connect(("127.0.0.1", self.server.port))
                self.get(sock, f"/v1/sandboxes/{self.box}/{path}")
                slow.append(sock)
        time.sleep(3)
        begin = time.monotonic()
        self.assertStatus(self.alice.run(self.box, "true"), 200)
        self.assertLess(time.monotonic() - begin, 10)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            text = self.owner.call("GET", "/metrics").body.decode()
            figure = next(line for line in text.splitlines() if line.startswith("caisson_http_connections "))
            if int(figure.split()[1]) <= 3:
                break
            time.sleep(1)
        else:
            self.fail("slow readers are still connected")
        for sock in slow:
            sock.close()

    def test_slow_but_steady_reader_of_changes_is_disconnected(self):
        # The server holds two lists of all files until the changes are read.
        box = self.alice.create()
        self.assertStatus(self.alice.run(box, ["python3", "-c", MANY_LONG_PATHS.format(files=2000)]), 200)
        sock = socket.socket(socket.AF_UNIX)  # its buffer is small
        sock.settimeout(30)
        sock.connect(self.server.socket)
        self.get(sock, f"/v1/sandboxes/{box}/files/watch")
        data = b""
        while b"event: ready" not in data:
            data += sock.recv(4096)
        self.assertEqual(self.alice.run(box, "rm -r */*").json["exit_code"], 0)

        def streams():
            text = self.owner.call("GET", "/metrics").body.decode()
            return int(next(line for line in text.splitlines() if line.startswith("caisson_http_streams ")).split()[1])

        begin, got = time.monotonic(), 0
        while streams() > 0 and time.monotonic() - begin < 90:
            got += len(sock.recv(4096))
            time.sleep(max(0, begin + got / (8 << 10) - time.monotonic()))  # 8 KiB a second
        self.assertEqual(streams(), 0, f"still connected after {got} bytes")
        self.assertIn(b"not read in time", api.receive_all(sock))
        sock.close()

    def figures(self):
        """Returns the values that must not grow with the number of destroyed sandboxes."""
        pid = self.server.process.pid
        files = 0
        for directory, _, names in os.walk(self.server.home):
            # The audit log grows with each request, up to its limit.
            files += 0 if directory.endswith("/audit") else len(names) + 1
        return {"memory": memory_of(pid), "descriptors": len(os.listdir(f"/proc/{pid}/fd")),
                "threads": len(os.listdir(f"/proc/{pid}/task")), "files": files,
                "processes": len(api.processes_of(self.server.home)),
                "cgroups": sum("caisson-" in name for _, names, _ in os.walk("/sys/fs/cgroup") for name in names)}

    def test_a_thousand_sandboxes_leave_nothing(self):
        # Counts all cgroups of the machine, so other uses of caisson may add some.
        margins = {"memory": 4 << 20, "descriptors": 4, "threads": 4, "files": 12, "processes": 4, "cgroups": 40}
        rounds = int(os.environ.get("ROUNDS", "1000"))
        for number in range(rounds):
            box = self.alice.create()
            if number % 10 == 0:
                self.assertStatus(self.alice.run(box, "echo x > file"), 200)
            self.assertStatus(self.alice.call("DELETE", f"/v1/sandboxes/{box}"), 204)
            if number == rounds // 5:
                before = self.figures()

        def grown():
            after = self.figures()
            return {name: (before[name], after[name]) for name, most in margins.items() if after[name] > before[name] + most}

        # Threads and processes that are exiting may still exist.
        api.wait_until(lambda: not grown(), 30)
        print(f"{rounds} sandboxes: {before}, then {self.figures()}")
        self.assertEqual(grown(), {})


if __name__ == "__main__":
    api.main()
