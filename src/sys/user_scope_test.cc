#include "sys/user_scope.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "support/temp_dir.h"
#include "sys/dbus.h"
#include "sys/fd.h"

namespace caisson::sys {
namespace {

TEST(Dbus, CallsAreMarshalledAsTheBusExpects) {
  const std::string bytes = encodeCall({.destination = "org.freedesktop.DBus",
                                        .path = "/org/freedesktop/DBus",
                                        .interface = "org.freedesktop.DBus",
                                        .member = "Hello"});
  // In the format of dbus-send: 16 bytes, then the fields path, interface, member and destination, padded to 8.
  const unsigned char head[] = {'l', 1, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0x6d, 0, 0, 0, 1, 1, 'o', 0, 21, 0, 0, 0};
  ASSERT_GE(bytes.size(), sizeof(head));
  EXPECT_EQ(std::memcmp(bytes.data(), head, sizeof(head)), 0);
  EXPECT_EQ(bytes.size(), 128U);
  bool broken = true;
  const auto message = decodeMessage(bytes, broken);
  ASSERT_TRUE(message);
  EXPECT_FALSE(broken);
  EXPECT_EQ(message->type, DbusMessage::Type::call);
  EXPECT_EQ(message->size, bytes.size());
}

TEST(Dbus, TruncatedMessagesWaitForMoreAndInvalidOnesFail) {
  const std::string bytes = encodeCall({.destination = "a.b", .path = "/", .interface = "a.b", .member = "C"});
  bool broken = true;
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(decodeMessage(std::string_view(bytes).substr(0, length), broken));
    EXPECT_FALSE(broken) << length;
  }
  std::string other = bytes;
  other[0] = 'B';
  EXPECT_FALSE(decodeMessage(other, broken));
  EXPECT_TRUE(broken);
  std::string lies = bytes;
  lies[20] = '\xff';  // the length of the first string
  EXPECT_FALSE(decodeMessage(lies, broken));
  EXPECT_TRUE(broken);
}

TEST(Dbus, ScopeRequestNamesThisProcessAndRequestsDelegation) {
  const std::string body = scopeRequest("x.scope", 0x01020304);
  for (const std::string_view part : {"x.scope", "fail", "Delegate", "PIDs", "au"})
    EXPECT_NE(body.find(part), std::string::npos) << part;
  EXPECT_NE(body.find(std::string("\x04\x03\x02\x01", 4)), std::string::npos);
  EXPECT_EQ(body.size() % 4, 0U);
}

/// A bus that replies to one scripted client, and records what it received.
class FakeBus {
 public:
  FakeBus(const std::string& path, std::string last_answer) : last_answer_(std::move(last_answer)) {
    listener_ = Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
    if (::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
        ::listen(listener_.get(), 1) != 0)
      std::abort();
    thread_ = std::thread([this] { serve(); });
  }
  ~FakeBus() { stop(); }
  void stop() {
    if (thread_.joinable()) thread_.join();
  }
  std::string auth, calls;

 private:
  void serve() {
    const Fd client(::accept(listener_.get(), nullptr, nullptr));
    const auto read = [&](std::string& to) {
      char buffer[4096];
      const ssize_t got = ::recv(client.get(), buffer, sizeof(buffer), 0);
      if (got > 0) to.append(buffer, static_cast<std::size_t>(got));
      return got > 0;
    };
    while (auth.find("\r\n") == std::string::npos && read(auth)) {
    }
    (void)::send(client.get(), "OK 1234\r\n", 9, MSG_NOSIGNAL);
    while (calls.find("Hello") == std::string::npos && read(calls)) {
    }
    const std::string hello = answer(1, DbusMessage::Type::answer, "");
    (void)::send(client.get(), hello.data(), hello.size(), MSG_NOSIGNAL);
    while (calls.find("PIDs") == std::string::npos && read(calls)) {
    }
    (void)::send(client.get(), last_answer_.data(), last_answer_.size(), MSG_NOSIGNAL);
    (void)::shutdown(client.get(), SHUT_WR);
    while (read(calls)) {
    }
  }

 public:
  static std::string answer(std::uint32_t serial, DbusMessage::Type type, std::string_view error) {
    DbusWriter body;
    if (!error.empty()) body.string("no such luck");
    DbusWriter to;
    to.byte('l');
    to.byte(static_cast<std::uint8_t>(type));
    to.byte(0);
    to.byte(1);
    to.uint32(static_cast<std::uint32_t>(body.text().size()));
    to.uint32(77);
    const std::size_t fields = to.beginArray(8);
    to.byte(5);
    to.signature("u");
    to.uint32(serial);
    if (!error.empty()) {
      to.align(8);
      to.byte(4);
      to.signature("s");
      to.string(error);
      to.align(8);
      to.byte(8);
      to.signature("g");
      to.signature("s");
    }
    to.endArray(fields);
    to.align(8);
    return to.text() + body.text();
  }

 private:
  std::string last_answer_;
  Fd listener_;
  std::thread thread_;
};

TEST(UserScope, IsRequestedAsThisUser) {
  const test::TempDir directory;
  FakeBus bus(directory / "bus", FakeBus::answer(2, DbusMessage::Type::answer, ""));
  const auto done = requestScope(directory / "bus", "caisson-1.scope");
  EXPECT_TRUE(done) << done.error().message();
  bus.stop();
  EXPECT_TRUE(bus.auth.starts_with(std::string(1, '\0') + "AUTH EXTERNAL 3")) << "digits in hexadecimal";
  EXPECT_NE(bus.calls.find("BEGIN\r\n"), std::string::npos);
  EXPECT_NE(bus.calls.find("StartTransientUnit"), std::string::npos);
  EXPECT_NE(bus.calls.find("caisson-1.scope"), std::string::npos);
}

TEST(UserScope, RefusalIsReported) {
  const test::TempDir directory;
  FakeBus bus(directory / "bus", FakeBus::answer(2, DbusMessage::Type::error, "org.example.No"));
  const auto done = requestScope(directory / "bus", "caisson-1.scope");
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().reason, "org.example.No: no such luck");
}

TEST(UserScope, InvalidReplyIsAnErrorAndDoesNotHang) {
  for (const std::string& nonsense :
       {std::string("HTTP/1.1 400 Bad Request\r\n\r\n"), std::string(5000, 'l'), std::string()}) {
    const test::TempDir directory;
    FakeBus bus(directory / "bus", nonsense);
    EXPECT_FALSE(requestScope(directory / "bus", "caisson-1.scope"));
  }
  EXPECT_FALSE(requestScope("/nonexistent/bus", "x.scope"));
}

}  // namespace
}  // namespace caisson::sys
