#include "egress/shown_host.h"

#include <gtest/gtest.h>

namespace caisson::egress {
namespace {

TEST(ShownHost, RegistrableDomainIsTheEndOfTheName) {
  EXPECT_EQ(registrableDomain("example.org"), "example.org");
  EXPECT_EQ(registrableDomain("api.bank.example.evil.test"), "evil.test");
  EXPECT_EQ(registrableDomain("www.example.co.uk"), "example.co.uk");
  EXPECT_EQ(registrableDomain("co.uk"), "co.uk");
  EXPECT_EQ(registrableDomain("www.example.de"), "example.de");
  EXPECT_EQ(registrableDomain("localhost"), "localhost");
  EXPECT_EQ(registrableDomain("192.0.2.1"), "192.0.2.1");
  EXPECT_EQ(registrableDomain("2001:db8::1"), "2001:db8::1");
}

TEST(ShownHost, QuestionFitsOnOneLineWhateverTheName) {
  EXPECT_EQ(shownQuestion("www.example.org:443"), "host:www.example.org:443");
  EXPECT_EQ(shownQuestion("[2001:db8::1]:443"), "host:[2001:db8::1]:443");
  const std::string bank =
      "login.bank.example.is-really-safe.for-you." + std::string(60, 'a') + "." + std::string(60, 'b');
  const std::string shown = shownQuestion(bank + ".evil.test:443");
  EXPECT_TRUE(shown.starts_with("evil.test, host:login.ba...")) << shown;
  EXPECT_LE(shown.size(), 52U);
  for (std::size_t size = 1; size < 190; ++size) {
    std::string name;
    for (std::size_t i = 0; i < size; ++i) name += i % 60 == 59 ? '.' : 'x';
    EXPECT_LE(shownQuestion(name + ".evil.test:65535").size(), 52U) << size;
    EXPECT_LE(shownQuestion(std::string(63, 'y') + "." + std::string(63, 'z') + ":65535").size(), 52U);
  }
}

}  // namespace
}  // namespace caisson::egress
