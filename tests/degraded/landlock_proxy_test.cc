// `--net proxy` in the landlock tier: the supervisor makes every connection, and only to the egress.
#include <poll.h>

#include "degraded/degraded.h"
#include "support/loopback.h"

namespace caisson::test {
namespace {

/// Answers CONNECT, then one HTTP request; prints its port first. The egress uses it as its upstream proxy, so that no
/// host beyond loopback is contacted.
constexpr const char* kUpstream = R"(
import socket, sys, threading
server = socket.socket(); server.bind(('127.0.0.1', 0)); server.listen(64)
with open(sys.argv[1] + '.new', 'w') as f: f.write(str(server.getsockname()[1]))
import os; os.rename(sys.argv[1] + '.new', sys.argv[1])
def serve(client):
    def head():
        data = b''
        while b'\r\n\r\n' not in data:
            more = client.recv(4096)
            if not more: return data
            data += more
        return data
    head(); client.sendall(b'HTTP/1.1 200 OK\r\n\r\n')
    head(); client.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nhello\n'); client.close()
while True: threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
)";

constexpr const char* kProxyPrelude = R"(
import ctypes, errno, os, socket, sys, threading, urllib.request
libc = ctypes.CDLL(None, use_errno=True)
def attempt(what, call):
    try:
        call()
        print(what, 'done')
    except OSError as e:
        print(what, errno.errorcode[e.errno])
)";

class LandlockProxy : public DegradedTest {
 protected:
  void SetUp() override {
    DegradedTest::SetUp();
    if (IsSkipped()) return;
    requireOrSkip(exists("/usr/bin/python3"), "no python3 here");
  }

  [[nodiscard]] RunOutput python(const std::string& script, std::vector<std::string> options = {}) const {
    const std::string file = workspace.write("script.py", kProxyPrelude + script);
    std::vector<std::string> arguments{
        "run", "--json", "--tier", "landlock", "--workspace", workspace.path() + ":ro", "--timeout", "30s"};
    if (options.empty()) options = {"--net", "proxy", "--allow-host", "93.184.216.34"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    arguments.insert(arguments.end(), {"--", "/usr/bin/python3", file});
    return caissonWithout("namespaces", arguments, {.timeout = std::chrono::seconds(70)});
  }
};

/// A server of the host that no payload may reach.
class HostServer {
 public:
  HostServer() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_in address = loopbackAddress(0);
    socklen_t size = sizeof(address);
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(socket_.get(), 64), 0);
    EXPECT_EQ(::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
  }
  [[nodiscard]] std::string port() const { return std::to_string(port_); }
  [[nodiscard]] bool wasReached() const {
    pollfd wait{socket_.get(), POLLIN, 0};
    return ::poll(&wait, 1, 0) > 0;
  }

 private:
  Socket socket_;
  std::uint16_t port_ = 0;
};

TEST_F(LandlockProxy, ReachesOnlyAllowedHosts) {
  const std::string upstream = files.write("upstream.py", kUpstream);
  const BackgroundProgram proxy({"/usr/bin/python3", upstream, files / "port"});
  ASSERT_TRUE(eventually([&] { return exists(files / "port"); }));
  const std::string settings = policy(
      "extends = \"dev\"\n[network]\nmode = \"proxy\"\nallowed_hosts = [\"93.184.216.34\"]\nupstream_proxy = "
      "\"http://127.0.0.1:" +
      readFile(files / "port") + "\"\n");
  const RunOutput output = python(R"(
for host in ('93.184.216.34', '93.184.216.35', '127.0.0.1.nip.invalid'):
    try: print(urllib.request.urlopen('http://%s/' % host, timeout=10).read())
    except Exception as e: print(e)
s = socket.create_connection(('127.0.0.1', 3128)); print(s.getpeername()[0], s.getblocking(), os.get_inheritable(s.fileno()))
s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
n = socket.socket(); n.setblocking(False); print(n.connect_ex(('127.0.0.1', 3128)), n.getblocking())
)",
                                  {"--policy", settings});
  const nlohmann::json result = output.json();
  ASSERT_TRUE(result.is_object()) << output.describe();
  EXPECT_EQ(result["exit_code"], 0) << output.describe();
  const std::string out = result["stdout"];
  EXPECT_TRUE(out.starts_with("b'hello\\n'\nHTTP Error 403")) << output.describe();
  EXPECT_TRUE(contains(out, "127.0.0.1 True False\n0 False\n")) << output.describe();
  EXPECT_TRUE(contains(result["denials"].dump(), "93.184.216.35")) << output.describe();
  EXPECT_TRUE(contains(result["layers"]["network"], "HTTP_PROXY")) << output.describe();
  EXPECT_TRUE(contains(result["warnings"].dump(), "only connections to the proxy work")) << output.describe();
}

TEST_F(LandlockProxy, ReachesNothingElse) {
  const HostServer server;
  const RunOutput output = python("port = " + server.port() + R"(
host = ('127.0.0.1', port)
attempt('connect', lambda: socket.socket().connect(host))
attempt('six', lambda: socket.socket(socket.AF_INET6).connect(('::ffff:127.0.0.1', port)))
attempt('other', lambda: socket.socket().connect(('192.0.2.1', 3128)))
attempt('fast open', lambda: socket.socket().sendto(b'x', 0x20000000, host))
attempt('fast open message', lambda: socket.socket().sendmsg([b'x'], [], 0x20000000, host))
def deferred():
    s = socket.socket(); s.setsockopt(socket.IPPROTO_TCP, 30, 1); s.connect(host); s.send(b'x')
attempt('deferred', deferred)
attempt('unspecified', lambda: (lambda s: (s.connect(('127.0.0.1', 3128)), libc.connect(s.fileno(), bytes(16), 16) and (_ for _ in ()).throw(OSError(ctypes.get_errno(), ''))))(socket.socket()))
attempt('bind', lambda: socket.socket().bind(('127.0.0.1', 0)))
attempt('listen', lambda: socket.socket().listen(1))
attempt('udp', lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
attempt('local', lambda: socket.socket(socket.AF_UNIX))
attempt('mptcp', lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262))
attempt('sctp', lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132))
attempt('file', lambda: (_ for _ in ()).throw(OSError(ctypes.get_errno(), '')) if libc.connect(0, socket.inet_aton('0.0.0.0'), 4) < 0 else None)
a, b = socket.socketpair(); a.send(b'x'); print(b.recv(1))
)");
  const nlohmann::json result = output.json();
  ASSERT_TRUE(result.is_object()) << output.describe();
  EXPECT_FALSE(contains(result["stdout"], " done")) << output.describe();
  EXPECT_TRUE(contains(result["stdout"], "connect EACCES\nsix EACCES\nother EACCES\nfast open ENOTSUP\n"))
      << output.describe();
  EXPECT_TRUE(contains(result["stdout"], "b'x'\n")) << output.describe();
  EXPECT_FALSE(server.wasReached());
  EXPECT_TRUE(contains(result["denials"].dump(), "127.0.0.1:" + server.port())) << output.describe();
  EXPECT_TRUE(contains(result["denials"].dump(), "192.0.2.1:3128")) << output.describe();
}

/// A thread swaps the address in memory between the proxy and the host's server.
TEST_F(LandlockProxy, ReachesNothingElseUnderARace) {
  const HostServer server;
  const std::string rounds = std::to_string(600 * stress());
  const RunOutput output = python("port, rounds = " + server.port() + ", " + rounds + R"(
import struct
def address(p): return struct.pack('<H', socket.AF_INET) + struct.pack('>H', p) + socket.inet_aton('127.0.0.1') + bytes(8)
good, bad = address(3128), address(port)
room = ctypes.create_string_buffer(16)
stop = False
def swap():
    while not stop:
        ctypes.memmove(room, good, 16); ctypes.memmove(room, bad, 16)
threads = [threading.Thread(target=swap) for i in range(2)]
for t in threads: t.start()
def peer(s):
    try: return s.getpeername()[1]
    except OSError: return None  # the proxy has closed the connection already
done = refused = 0
try:
    for i in range(rounds):
        s = socket.socket()
        if libc.connect(s.fileno(), room, 16) == 0:
            done += 1
            if peer(s) == port: print('escaped')
        else: refused += 1
        s.close()
finally:
    stop = True
    for t in threads: t.join()
print('raced', done > 0, refused > 0)
)");
  EXPECT_EQ(output.json().value("stdout", ""), "raced True True\n") << output.describe();
  EXPECT_FALSE(server.wasReached());
}

TEST_F(LandlockProxy, IsDeniedWithoutAListener) {
  const std::string file =
      workspace.write("script.py", std::string(kProxyPrelude) +
                                       "attempt('proxy', lambda: socket.socket().connect(('127.0.0.1', 3128)))");
  const RunOutput output = caissonWithout(
      "namespaces,seccomp_listener", {"run", "--tier", "landlock", "--workspace", workspace.path() + ":ro", "--net",
                                      "proxy", "--allow-host", "x.invalid", "--", "/usr/bin/python3", file});
  EXPECT_EQ(output.out, "proxy EPERM\n") << output.describe();
}

TEST_F(LandlockProxy, RefusesWhatNeedsANamespace) {
  for (const std::vector<std::string>& options : {std::vector<std::string>{"--host-port", "5432"},
                                                  {"--publish", "8080"},
                                                  {"--net", "proxy", "--publish", "8080"}}) {
    const RunOutput output = python("print('ran')", options);
    EXPECT_EQ(output.exit_status, 125) << output.describe();
    EXPECT_FALSE(contains(output.out, "ran\\n")) << output.describe();
  }
}

}  // namespace
}  // namespace caisson::test
