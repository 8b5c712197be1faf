"""internet.py STATE: the servers of world.sh. STATE/queries lists every query that reached the DNS server."""
import http.server
import io
import json
import os
import socket
import socketserver
import ssl
import struct
import subprocess
import sys
import threading
import time
import zipfile

STATE = sys.argv[1]
V4, OTHER, BARE, V6 = "93.184.0.2", "93.184.0.3", "93.184.0.4", "2606:4700:aa::2"
EARLY = "93.184.0.5"
ZONE = {
    "example.org": [V4],
    "www.example.org": [V4],
    "six.example.org": [V6],
    "dual.example.org": [V4, V6],
    "other.example.org": [OTHER],
    "bare.example.org": [BARE],
    "dead.example.org": ["93.184.9.9"],
    "late.example.org": [V4],
    "early.example.org": [EARLY],
    "evil.test": [OTHER],
    "proxy.inside": [OTHER],
    "rebind.example.org": ["127.0.0.1"],
    "mixed.example.org": [V4, "10.0.0.1"],
    "metadata.example.org": ["169.254.169.254"],
    "seventeen.example.org": [V4] * 16 + ["10.0.0.1"],
    "mapped.example.org": ["::ffff:10.0.0.1"],
    "nat64.example.org": ["64:ff9b::a00:1"],
    "own.example.org": ["93.184.0.1"],
    "large.example.org": [V4],
    "alias.example.org": ["alias:www.example.org"],
    "front.example.org": ["alias:evil.test"],
    "chain.example.org": ["alias:front.example.org"],
    "loop.example.org": ["alias:loop.example.org"],
    "registry.local": [V4],
    "db.internal": [V4],
    "any.npmjs.org": [V4],
    "any.yarnpkg.com": [V4],
    "any.evil-npmjs.org": [OTHER],
    "any.pypi.org": [V4],
    "any.pypi.python.org": [V4],
    "any.crates.io": [V4],
    "other.crates.io": [V4],
}
FLIP = {"count": 0}


def wheel():
    """Returns a package for pip, without code."""
    data, about = io.BytesIO(), "leaf-1.2.3.dist-info/"
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("leaf.py", "print('from the index')\n")
        archive.writestr(about + "METADATA", "Metadata-Version: 2.1\nName: leaf\nVersion: 1.2.3\n")
        archive.writestr(about + "WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(about + "RECORD", f"leaf.py,,\n{about}METADATA,,\n{about}WHEEL,,\n{about}RECORD,,\n")
    return data.getvalue()


FILES = {  # requested by package managers
    "/npm/leaf": json.dumps({"name": "leaf", "dist-tags": {"latest": "1.2.3"}, "versions": {"1.2.3": {
        "name": "leaf", "version": "1.2.3", "dist": {"tarball": "http://example.org/npm/leaf.tgz"}}}}).encode(),
    "/simple/leaf/": b'<!DOCTYPE html><a href="/simple/leaf-1.2.3-py3-none-any.whl">leaf-1.2.3-py3-none-any.whl</a>',
    "/simple/leaf-1.2.3-py3-none-any.whl": wheel(),
    "/apt/./Packages": b"Package: leaf\nVersion: 1.2.3\nArchitecture: all\nFilename: ./leaf.deb\nSize: 1\n"
                       b"MD5sum: d41d8cd98f00b204e9800998ecf8427e\nDescription: a leaf\n\n",
}


def record(name, kind):
    with open(STATE + "/queries", "a") as file:
        file.write(f"{name} {kind}\n")


def wire_name(name):
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"


def answer(query, stream):
    at, labels = 12, []
    while query[at]:
        labels.append(query[at + 1:at + 1 + query[at]].decode("latin-1"))
        at += query[at] + 1
    name, kind = ".".join(labels).lower(), struct.unpack(">H", query[at + 1:at + 3])[0]
    question = query[12:at + 5]
    record(name, kind)
    if name == "garbage.example.org":
        return os.urandom(len(query) + 7)
    if name == "lie.example.org":  # responds to another query
        return query[:2] + struct.pack(">HHHHH", 0x8180, 1, 0, 0, 0) + wire_name("evil.test") + question[-4:]
    if name == "silent.example.org":
        return None
    addresses = ZONE.get(name)
    if name == "flip.example.org":  # first a public address, then a private one: DNS rebinding
        FLIP["count"] += 1
        addresses = [V4] if FLIP["count"] <= 2 else ["127.0.0.1"]
    if name.endswith(".wild.example.org"):
        addresses = [V4]
    code = 0 if addresses is not None else 3
    records, count = b"", 0
    flags = 0x8180 | code
    if name == "large.example.org" and not stream:
        flags |= 0x0200
        addresses = []
    owner = b"\xc0\x0c"
    while count < 9 and addresses and addresses[0].startswith("alias:"):
        alias = addresses[0][6:]
        target = wire_name(alias)
        records += owner + struct.pack(">HHIH", 5, 1, 60, len(target)) + target
        count += 1
        owner, addresses = target, ZONE[alias]
    for address in addresses or []:
        if address.startswith("alias:"):
            break
        six = ":" in address
        if kind != (28 if six else 1):
            continue
        data = socket.inet_pton(socket.AF_INET6 if six else socket.AF_INET, address)
        lifetime = 0 if name == "flip.example.org" else 60
        records += owner + struct.pack(">HHIH", kind, 1, lifetime, len(data)) + data
        count += 1
    return query[:2] + struct.pack(">HHHHH", flags, 1, count, 0, 0) + question + records


def serve_dns():
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((V4, 53))
    while True:
        query, asker = server.recvfrom(4096)
        try:
            reply = answer(query, False)
        except Exception:  # ignore malformed queries
            continue
        if reply is not None:
            delay = 1 if query[12:].startswith(b"\4late") else 0
            threading.Timer(delay, server.sendto, (reply, asker)).start() if delay else server.sendto(reply, asker)


class DnsStream(socketserver.BaseRequestHandler):
    def handle(self):
        size = struct.unpack(">H", self.request.recv(2))[0]
        reply = answer(self.request.recv(size), True)
        self.request.sendall(struct.pack(">H", len(reply)) + reply)


def note_credentials(request):
    """Writes to STATE/seen all parts of a request that could be a credential, for any host."""
    with open(STATE + "/seen", "a") as file:
        file.write(f"{request.server.server_address[1]} {request.headers['Host']} {request.path} "
                   f"{request.headers.get_all('Authorization')} {request.headers.get_all('X-Api-Key')}\n")


class Web(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def handle(self):
        if not self.connection.getsockname()[0].endswith(EARLY):
            return super().handle()
        # A host that speaks and closes its side first; STATE/early has what it receives.
        raw = socket.socket(fileno=self.connection.detach())
        try:
            raw.sendall(b"early\n")
            raw.shutdown(socket.SHUT_WR)
            while data := raw.recv(4096):
                with open(STATE + "/early", "ab") as file:
                    file.write(data)
        except OSError:
            pass
        raw.close()

    def finish(self):
        try:
            super().finish()
        except (OSError, ValueError):
            pass

    def reply(self, code, body, fields=()):
        self.send_response(code)
        for name, value in fields:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self):
        note_credentials(self)
        if self.path.startswith("/redirect?"):
            return self.reply(302, b"", [("Location", self.path.split("?", 1)[1])])
        if self.path in FILES:
            kind = "text/html" if self.path.endswith("/") else "application/json"
            return self.reply(200, FILES[self.path], [("Content-Type", kind)])
        if self.path.startswith("/repo.git/"):
            return self.repository(self.path.split("?")[0][1:])
        if self.path.startswith("/apt/"):
            return self.reply(404, b"")
        if self.path == "/fields":
            return self.reply(200, str(self.headers).encode())
        if self.path == "/cookie":  # a host that echoes the request
            return self.reply(200, b"", [("Set-Cookie", "t=" + str(self.headers["Authorization"]))])
        if self.path == "/chunked":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for piece in (b"one ", b"two ", b"three\n"):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            return self.wfile.write(b"0\r\n\r\n")
        if self.path.startswith("/bytes/"):
            return self.reply(200, b"x" * int(self.path.split("/")[2]))
        if self.path == "/slow":
            time.sleep(30)
        body = f"{self.headers['Host']} {self.path} from {self.server.server_address[1]}\n"
        self.reply(200, body.encode())

    def repository(self, name):
        try:
            with open(os.path.join(STATE, name), "rb") as file:
                self.reply(200, file.read())
        except OSError:
            self.reply(404, b"")

    do_HEAD = do_GET

    def do_POST(self):
        note_credentials(self)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.reply(200, b"got %d bytes\n" % len(body))


class Proxy(socketserver.StreamRequestHandler):
    """A proxy that supports only CONNECT by address; STATE/proxied lists the requested addresses."""

    def handle(self):
        words = self.rfile.readline().decode().split()
        while self.rfile.readline() not in (b"\r\n", b""):
            pass
        with open(STATE + "/proxied", "a") as file:
            file.write(" ".join(words[:2]) + "\n")
        host, port = words[1].rsplit(":", 1)
        if port == "8085":
            return self.wfile.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
        if port == "8080":
            return time.sleep(30)
        with socket.create_connection((host.strip("[]"), int(port))) as server:
            self.wfile.write(b"HTTP/1.1 200 Connection established\r\nVia: test\r\n\r\n")
            threading.Thread(target=self.pass_on, args=(server, self.connection), daemon=True).start()
            self.pass_on(self.connection, server)

    @staticmethod
    def pass_on(source, sink):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass


class Echo(socketserver.BaseRequestHandler):
    """Sends data first, as databases and ssh do, then echoes its input."""

    def handle(self):
        self.request.sendall(b"welcome\n")
        while True:
            data = self.request.recv(65536)
            if not data:
                return
            self.request.sendall(data)


class Endless(socketserver.StreamRequestHandler):
    """Sends an endless response, as fast as it is read: /interim with interim responses, otherwise with tiny chunks."""

    def handle(self):
        path = self.rfile.readline().split()[1]
        while self.rfile.readline() not in (b"\r\n", b""):
            pass
        threading.Thread(target=self.drain, daemon=True).start()
        try:
            if path == b"/interim":
                piece = b"HTTP/1.1 100 \r\n\r\n" * 16384
            else:
                self.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                piece = b"1\r\nx\r\n" * 65536
            while True:
                self.wfile.write(piece)
        except OSError:
            pass

    def drain(self):
        try:
            while self.connection.recv(1 << 20, socket.MSG_TRUNC):
                pass
        except OSError:
            pass


class Torrent(socketserver.BaseRequestHandler):
    """Sends 64 MiB without reading."""

    def handle(self):
        try:
            for _ in range(1024):
                self.request.sendall(bytes(65536))
        except OSError:
            pass


class Hangup(socketserver.BaseRequestHandler):
    """Reads a request and closes without a response."""

    def handle(self):
        self.request.settimeout(0.2)
        try:
            self.request.recv(65536)
        except OSError:
            pass


class Threads(socketserver.ThreadingMixIn, socketserver.TCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 1024

    def process_request(self, request, client_address):
        """STATE/accepted has the port of each accepted connection."""
        with open(STATE + "/accepted", "a") as file:
            file.write(f"{self.server_address[1]}\n")
        super().process_request(request, client_address)


class ThreadsV6(Threads):
    address_family = socket.AF_INET6


def start(server):
    threading.Thread(target=server.serve_forever, daemon=True).start()


def make_repository():
    """Creates STATE/repo.git with one commit, for git's plain HTTP protocol."""
    tree = STATE + "/tree"
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-C", tree]
    try:
        os.mkdir(tree)
        with open(tree + "/file", "w") as file:
            file.write("from git\n")
        for words in (["init", "-q", "-b", "main"], ["add", "file"], ["commit", "-q", "-m", "one"],
                      ["clone", "-q", "--bare", tree, STATE + "/repo.git"]):
            subprocess.run(git + words, check=True, capture_output=True)
        subprocess.run(["git", "-C", STATE + "/repo.git", "update-server-info"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pass  # the test of git reports it


def main():
    make_repository()
    threading.Thread(target=serve_dns, daemon=True).start()
    start(Threads((V4, 53), DnsStream))
    for port in (80, 8080):
        start(ThreadsV6(("::", port), Web))
    start(Threads((OTHER, 3128), Proxy))
    start(ThreadsV6(("::", 8086), Endless))
    start(ThreadsV6(("::", 8087), Hangup))
    start(ThreadsV6(("::", 8088), Torrent))
    for port in (22, 5432, 8085):
        start(ThreadsV6(("::", port), Echo))
    for port, name in ((443, "server"), (8443, "server"), (8444, "expired"), (8445, "wrong")):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f"{STATE}/{name}.pem", f"{STATE}/{name}-key.pem")
        secure = ThreadsV6(("::", port), Web)
        secure.socket = context.wrap_socket(secure.socket, server_side=True, do_handshake_on_connect=False)
        start(secure)
    open(STATE + "/queries", "w").close()
    open(STATE + "/seen", "w").close()
    open(STATE + "/accepted", "w").close()
    open(STATE + "/ready", "w").close()
    threading.Event().wait()


main()
