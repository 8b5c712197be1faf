#include "egress/dns_message.h"

#include <gtest/gtest.h>

namespace caisson::egress::dns {
namespace {

using Message = std::vector<std::uint8_t>;

void put16(Message& out, std::size_t value) {
  out.push_back(static_cast<std::uint8_t>(value >> 8));
  out.push_back(static_cast<std::uint8_t>(value));
}

/// A server's response: the query's question, then these records (in wire format).
Message respond(Message query, std::size_t records, const Message& wire, std::uint8_t flags = 0x84,
                std::uint8_t code = 0) {
  query[2] = flags;
  query[3] = static_cast<std::uint8_t>(0x80 | code);
  query[7] = static_cast<std::uint8_t>(records);
  query.insert(query.end(), wire.begin(), wire.end());
  return query;
}

Message record(std::size_t name_pointer, std::uint16_t type, const Message& data, std::uint32_t ttl = 60) {
  Message out;
  put16(out, 0xc000 | name_pointer);
  put16(out, type);
  put16(out, kClassIn);
  put16(out, ttl >> 16);
  put16(out, ttl & 0xffff);
  put16(out, data.size());
  out.insert(out.end(), data.begin(), data.end());
  return out;
}

TEST(DnsQuery, IsReadAndAnswered) {
  const Message query = buildQuery(0x1234, "example.org", kTypeA);
  const auto question = parseQuery(query);
  ASSERT_TRUE(question);
  EXPECT_EQ(question->name, "example.org");
  EXPECT_EQ(question->type, kTypeA);
  Answer answer;
  answer.addresses = {*Address::parse("198.18.0.1")};
  answer.ttl = 30;
  const auto response = parseResponse(buildAnswer(*question, answer), 0x1234, "example.org", kTypeA);
  ASSERT_TRUE(response);
  ASSERT_EQ(response->addresses.size(), 1U);
  EXPECT_EQ(response->addresses[0].text(), "198.18.0.1");
  EXPECT_EQ(response->ttl, 30U);
}

TEST(DnsQuery, RefusalContainsAReasonForClientsWithEdns) {
  Message query = buildQuery(1, "evil.example", kTypeA);
  query[11] = 1;
  query.insert(query.end(), {0, 0, 41, 0x04, 0xd0, 0, 0, 0, 0, 0, 0});
  const auto question = parseQuery(query);
  ASSERT_TRUE(question);
  EXPECT_TRUE(question->edns);
  EXPECT_EQ(question->payload_bytes, 1232);
  Answer answer;
  answer.code = Rcode::no_such_name;
  answer.why = "not on the list";
  const Message wire = buildAnswer(*question, answer);
  EXPECT_NE(std::string(wire.begin(), wire.end()).find("not on the list"), std::string::npos);
}

TEST(DnsQuery, LabelWithADotOrNulIsRejected) {
  for (const std::uint8_t byte : {std::uint8_t{'.'}, std::uint8_t{0}}) {
    Message query = buildQuery(1, "exampleXorg", kTypeA);
    query[12 + 1 + 7] = byte;
    EXPECT_FALSE(parseQuery(query));
  }
}

TEST(DnsQuery, RefusesWhatAResolverNeverSends) {
  const Message good = buildQuery(1, "example.org", kTypeA);
  Message response = good;
  response[2] |= 0x80;
  EXPECT_FALSE(parseQuery(response));
  Message update = good;
  update[2] |= 0x28;
  ASSERT_FALSE(parseQuery(update));
  EXPECT_EQ(parseQuery(update).error(), Rcode::not_implemented);
  Message two = good;
  two[5] = 2;
  EXPECT_FALSE(parseQuery(two));
  Message pointer = good;
  pointer[12] = 0xc0;
  EXPECT_FALSE(parseQuery(pointer));
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(parseQuery(std::span(good).first(size))) << size;
  }
}

TEST(DnsResponse, FollowsAliasesToTheAddress) {
  const Message query = buildQuery(7, "www.example.org", kTypeA);
  Message wire = record(12, kTypeCname, {3, 'c', 'd', 'n', 0xc0, 16}, 20);
  const std::size_t target = query.size() + 12;
  const Message address = record(target, kTypeA, {93, 184, 215, 14}, 300);
  wire.insert(wire.end(), address.begin(), address.end());
  const auto response = parseResponse(respond(query, 2, wire), 7, "www.example.org", kTypeA);
  ASSERT_TRUE(response) << response.error();
  EXPECT_EQ(response->aliases, std::vector<std::string>{"cdn.example.org"});
  ASSERT_EQ(response->addresses.size(), 1U);
  EXPECT_EQ(response->ttl, 20U);
}

TEST(DnsResponse, NoAddressIsDropped) {
  const Message query = buildQuery(7, "example.org", kTypeA);
  const auto with = [&](std::uint8_t count) {
    Message wire;
    for (std::uint8_t i = 0; i < count; ++i) {
      const Message one = record(12, kTypeA, {93, 184, 0, i}, 60);
      wire.insert(wire.end(), one.begin(), one.end());
    }
    return parseResponse(respond(query, count, wire), 7, "example.org", kTypeA);
  };
  const auto many = with(64);
  ASSERT_TRUE(many);
  EXPECT_EQ(many->addresses.size(), 64U);
  EXPECT_FALSE(with(65));
}

TEST(DnsResponse, RecordsOfOtherNamesAreIgnored) {
  const Message query = buildQuery(7, "www.example.org", kTypeA);
  const Message wire = record(16, kTypeA, {6, 6, 6, 6});  // owned by example.org
  const auto response = parseResponse(respond(query, 1, wire), 7, "www.example.org", kTypeA);
  ASSERT_TRUE(response);
  EXPECT_TRUE(response->addresses.empty());
}

TEST(DnsResponse, ResponseToAnotherQueryIsRejected) {
  const Message query = buildQuery(7, "example.org", kTypeA);
  const Message good = respond(query, 1, record(12, kTypeA, {1, 2, 3, 4}));
  EXPECT_TRUE(parseResponse(good, 7, "example.org", kTypeA));
  EXPECT_FALSE(parseResponse(good, 8, "example.org", kTypeA));
  EXPECT_FALSE(parseResponse(good, 7, "example.net", kTypeA));
  EXPECT_FALSE(parseResponse(good, 7, "example.org", kTypeAaaa));
  EXPECT_FALSE(parseResponse(query, 7, "example.org", kTypeA));
}

TEST(DnsResponse, GarbageIsRefusedAndLoopsEnd) {
  const Message query = buildQuery(7, "example.org", kTypeA);
  const std::size_t self = query.size();
  EXPECT_FALSE(parseResponse(respond(query, 1, record(self, kTypeA, {1, 2, 3, 4})), 7, "example.org", kTypeA));
  EXPECT_FALSE(parseResponse(respond(query, 1, record(12, kTypeA, {1, 2, 3})), 7, "example.org", kTypeA));
  EXPECT_FALSE(parseResponse(respond(query, 9, record(12, kTypeA, {1, 2, 3, 4})), 7, "example.org", kTypeA));
  EXPECT_TRUE(parseResponse(respond(query, 0, {}, 0x86), 7, "example.org", kTypeA)->truncated);
  EXPECT_EQ(parseResponse(respond(query, 0, {}, 0x84, 3), 7, "example.org", kTypeA)->code, Rcode::no_such_name);
}

}  // namespace
}  // namespace caisson::egress::dns
