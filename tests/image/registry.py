"""A real registry on loopback (docker-registry), with TLS and passwords, and a misbehaving proxy in front of it."""
import base64
import http.client
import http.server
import os
import pathlib
import shutil
import socket
import ssl
import subprocess
import threading
import time
import urllib.parse

USER, PASSWORD = "alice", "correct horse"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def make_certificates(folder):
    """Creates a CA, a certificate for 127.0.0.1 and localhost, and one of a client."""
    def openssl(*words):
        subprocess.run(["openssl", *words], cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "ca.key", "-out", "ca.crt", "-days", "2", "-subj", "/CN=test ca")
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=localhost")
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
    openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-out", "server.crt", "-days", "2", "-extfile", "names")
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "client.key", "-out", "client.csr", "-subj", "/CN=client")
    openssl("x509", "-req", "-in", "client.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-out", "client.crt", "-days", "2")


class Registry:
    """docker-registry below a directory. `secure`: TLS and a password."""

    def __init__(self, folder, secure):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir()
        self.port = free_port()
        self.host = f"127.0.0.1:{self.port}"
        lines = ["version: 0.1", "log:", "  level: error", "storage:", "  filesystem:", f"    rootdirectory: {self.folder}/data", "  delete:", "    enabled: true",
                 "http:", f"  addr: {self.host}"]
        if secure:
            make_certificates(self.folder)
            lines += ["  tls:", f"    certificate: {self.folder}/server.crt", f"    key: {self.folder}/server.key",
                      "auth:", "  htpasswd:", "    realm: test", f"    path: {self.folder}/htpasswd"]
            done = subprocess.run(["htpasswd", "-Bbn", USER, PASSWORD], check=True, stdout=subprocess.PIPE)
            (self.folder / "htpasswd").write_bytes(done.stdout)
        (self.folder / "config.yml").write_text("\n".join(lines) + "\n")
        self.log = open(self.folder / "log", "wb")
        self.process = subprocess.Popen(["docker-registry", "serve", str(self.folder / "config.yml")], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        deadline = time.monotonic() + 20
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError("docker-registry did not start: " + (self.folder / "log").read_text()[-500:]) from None
                time.sleep(0.05)

    def close(self):
        self.process.terminate()
        self.process.wait(10)
        self.log.close()


def auth_entry():
    return base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()


class Front:
    """An HTTP proxy of a registry. `answer(handler, front)` returns True if it sent the response itself.

    `certificates`: a directory of make_certificates(); the proxy then speaks TLS and asks for a client certificate.
    """

    def __init__(self, backend, answer, certificates=None):
        front = self
        self.requests = []
        self.client_names = set()  # of client certificates; None if there was none

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def serve(self):
                front.requests.append((self.command, self.path, dict(self.headers)))
                if certificates:
                    shown = self.connection.getpeercert()
                    front.client_names.add(shown["subject"][0][0][1] if shown else None)
                if not answer(self, front):
                    self.forward()

            def forward(self, cut=None):
                connection = http.client.HTTPConnection(backend, timeout=20)
                length = int(self.headers.get("Content-Length", 0))
                headers = {key: value for key, value in self.headers.items() if key.lower() not in ("host", "connection")}
                connection.request(self.command, self.path, self.rfile.read(length) if length else None, headers)
                response = connection.getresponse()
                data = response.read()
                self.send_response(response.status)
                for key, value in response.getheaders():
                    if key.lower() not in ("transfer-encoding", "connection", "content-length"):
                        self.send_header(key, value)
                size = len(data) if self.command != "HEAD" else int(response.getheader("Content-Length", 0))
                self.send_header("Content-Length", str(size))
                self.end_headers()
                if cut is not None and len(data) > cut:
                    self.wfile.write(data[:cut])
                    self.close_connection = True
                elif self.command != "HEAD":
                    self.wfile.write(data)

            def reply(self, status, headers=None, body=b""):
                self.send_response(status)
                for key, value in (headers or {}).items():
                    self.send_header(key, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)
                return True

            do_GET = do_HEAD = do_PUT = do_POST = do_PATCH = serve

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        if certificates:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificates / "server.crt", certificates / "server.key")
            context.load_verify_locations(certificates / "ca.crt")
            context.verify_mode = ssl.CERT_OPTIONAL
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.server.handle_error = lambda *_: None  # clients that are killed or do not read the rest
        self.port = self.server.server_address[1]
        self.host = f"127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
