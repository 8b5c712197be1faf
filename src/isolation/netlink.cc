#include "isolation/netlink.h"

#include <arpa/inet.h>
#include <linux/fib_rules.h>
#include <linux/if_addr.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>

#include <cstring>
#include <string_view>

namespace caisson::isolation {
namespace {

constexpr int kLoopback = 1;                 // the interface index of lo in a new network namespace
constexpr std::uint32_t kOutputHook = 3;     // NF_INET_LOCAL_OUT
constexpr std::int32_t kNatPriority = -100;  // destination NAT, before filters
constexpr std::uint32_t kLoggedBytes = 64;   // headers of a blocked packet
constexpr std::string_view kTable = "caisson";

/// Builds messages with nested attributes; fills in lengths when a scope ends.
class Writer {
 public:
  template <class T>
  void begin(int type, int flags, const T& fixed) {
    message_ = batch_.bytes.size();
    nlmsghdr header{};
    header.nlmsg_type = static_cast<std::uint16_t>(type);
    header.nlmsg_flags = static_cast<std::uint16_t>(flags | NLM_F_REQUEST);
    header.nlmsg_seq = ++sequence_;
    if ((flags & NLM_F_ACK) != 0) ++batch_.acknowledged;
    append(&header, sizeof(header));
    append(&fixed, sizeof(fixed));
  }
  void end() { patch<std::uint32_t>(message_, batch_.bytes.size() - message_); }

  void bytes(int type, const void* data, std::size_t size) {
    const nlattr attribute{static_cast<std::uint16_t>(sizeof(nlattr) + size), static_cast<std::uint16_t>(type)};
    append(&attribute, sizeof(attribute));
    append(data, size);
    while (batch_.bytes.size() % 4 != 0) batch_.bytes.push_back(0);
  }
  template <class T>
  void number(int type, T value) {
    bytes(type, &value, sizeof(value));
  }
  void big32(int type, std::uint32_t value) { number(type, htonl(value)); }
  void text(int type, std::string_view value) {
    char room[32] = {};
    value.copy(room, sizeof(room) - 1);
    bytes(type, room, value.size() + 1);
  }
  template <class Body>
  void nest(int type, Body body) {
    const std::size_t at = batch_.bytes.size();
    const nlattr attribute{0, static_cast<std::uint16_t>(type | NLA_F_NESTED)};
    append(&attribute, sizeof(attribute));
    body();
    patch<std::uint16_t>(at, batch_.bytes.size() - at);
  }
  NetlinkBatch take() { return std::move(batch_); }

 private:
  void append(const void* data, std::size_t size) {
    const auto* begin = static_cast<const std::uint8_t*>(data);
    batch_.bytes.insert(batch_.bytes.end(), begin, begin + size);
  }
  template <class T>
  void patch(std::size_t at, std::size_t value) {
    const auto number = static_cast<T>(value);
    std::memcpy(batch_.bytes.data() + at, &number, sizeof(number));
  }

  NetlinkBatch batch_;
  std::size_t message_ = 0;
  std::uint32_t sequence_ = 0;
};

/// One rule of a chain, built from expressions, in the terms of `nft`.
class Rule {
 public:
  explicit Rule(Writer& writer) : w_(writer) {}

  void meta(std::uint32_t key, std::uint8_t want) {
    expression("meta", [&] {
      w_.big32(NFTA_META_DREG, NFT_REG_1);
      w_.big32(NFTA_META_KEY, key);
    });
    compare(&want, sizeof(want));
  }
  void payload(std::uint32_t base, std::uint32_t offset, const void* want, std::uint32_t size) {
    expression("payload", [&] {
      w_.big32(NFTA_PAYLOAD_DREG, NFT_REG_1);
      w_.big32(NFTA_PAYLOAD_BASE, base);
      w_.big32(NFTA_PAYLOAD_OFFSET, offset);
      w_.big32(NFTA_PAYLOAD_LEN, size);
    });
    compare(want, size);
  }
  void port(std::uint32_t offset, std::uint16_t port) {
    const std::uint16_t wire = htons(port);
    payload(NFT_PAYLOAD_TRANSPORT_HEADER, offset, &wire, sizeof(wire));
  }
  void verdict(int code) {
    expression("immediate", [&] {
      w_.big32(NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
      w_.nest(NFTA_IMMEDIATE_DATA, [&] {
        w_.nest(NFTA_DATA_VERDICT, [&] { w_.big32(NFTA_VERDICT_CODE, static_cast<std::uint32_t>(code)); });
      });
    });
  }
  void redirectTo(std::uint16_t port) {
    const std::uint16_t wire = htons(port);
    expression("immediate", [&] {
      w_.big32(NFTA_IMMEDIATE_DREG, NFT_REG_1);
      w_.nest(NFTA_IMMEDIATE_DATA, [&] { w_.bytes(NFTA_DATA_VALUE, &wire, sizeof(wire)); });
    });
    expression("redir", [&] { w_.big32(NFTA_REDIR_REG_PROTO_MIN, NFT_REG_1); });
  }
  void log() {
    expression("log", [&] {
      w_.number(NFTA_LOG_GROUP, htons(kLogGroup));
      w_.big32(NFTA_LOG_SNAPLEN, kLoggedBytes);
    });
  }

 private:
  template <class Body>
  void expression(std::string_view name, Body body) {
    w_.nest(NFTA_LIST_ELEM, [&] {
      w_.text(NFTA_EXPR_NAME, name);
      w_.nest(NFTA_EXPR_DATA, body);
    });
  }
  void compare(const void* want, std::size_t size) {
    expression("cmp", [&] {
      w_.big32(NFTA_CMP_SREG, NFT_REG_1);
      w_.big32(NFTA_CMP_OP, NFT_CMP_EQ);
      w_.nest(NFTA_CMP_DATA, [&] { w_.bytes(NFTA_DATA_VALUE, want, size); });
    });
  }

  Writer& w_;
};

constexpr int nftMessage(int type) { return NFNL_SUBSYS_NFTABLES << 8 | type; }

void chain(Writer& w, std::string_view name, std::string_view type, std::int32_t priority) {
  w.begin(nftMessage(NFT_MSG_NEWCHAIN), NLM_F_CREATE | NLM_F_ACK, nfgenmsg{NFPROTO_INET, NFNETLINK_V0, 0});
  w.text(NFTA_CHAIN_TABLE, kTable);
  w.text(NFTA_CHAIN_NAME, name);
  w.nest(NFTA_CHAIN_HOOK, [&] {
    w.big32(NFTA_HOOK_HOOKNUM, kOutputHook);
    w.big32(NFTA_HOOK_PRIORITY, static_cast<std::uint32_t>(priority));
  });
  w.text(NFTA_CHAIN_TYPE, type);
  w.end();
}

template <class Body>
void rule(Writer& w, std::string_view chain_name, Body body) {
  w.begin(nftMessage(NFT_MSG_NEWRULE), NLM_F_CREATE | NLM_F_APPEND | NLM_F_ACK,
          nfgenmsg{NFPROTO_INET, NFNETLINK_V0, 0});
  w.text(NFTA_RULE_TABLE, kTable);
  w.text(NFTA_RULE_CHAIN, chain_name);
  w.nest(NFTA_RULE_EXPRESSIONS, [&] {
    Rule expressions(w);
    body(expressions);
  });
  w.end();
}

/// Accepts traffic to the sandbox's own loopback.
void leaveLoopbackAlone(Writer& w, std::string_view chain_name) {
  rule(w, chain_name, [](Rule& r) {
    const std::uint8_t first_byte = 127;
    r.meta(NFT_META_NFPROTO, NFPROTO_IPV4);
    r.payload(NFT_PAYLOAD_NETWORK_HEADER, 16, &first_byte, 1);
    r.verdict(NF_ACCEPT);
  });
  rule(w, chain_name, [](Rule& r) {
    r.meta(NFT_META_NFPROTO, NFPROTO_IPV6);
    r.payload(NFT_PAYLOAD_NETWORK_HEADER, 24, &in6addr_loopback, 16);
    r.verdict(NF_ACCEPT);
  });
}

}  // namespace

NetlinkBatch localRoute(bool v6) {
  Writer w;
  rtmsg route{};
  route.rtm_family = v6 ? AF_INET6 : AF_INET;
  route.rtm_table = RT_TABLE_LOCAL;  // the table in which the kernel looks up its own addresses
  route.rtm_protocol = RTPROT_BOOT;
  route.rtm_scope = v6 ? RT_SCOPE_UNIVERSE : RT_SCOPE_HOST;
  route.rtm_type = RTN_LOCAL;
  w.begin(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_ACK, route);
  w.number(RTA_OIF, kLoopback);
  w.end();
  ifaddrmsg address{};
  address.ifa_family = route.rtm_family;
  address.ifa_prefixlen = v6 ? 128 : 32;
  address.ifa_index = kLoopback;
  const std::uint8_t six[16] = {0xfd, 0xca, 0x15, 0x50, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1};
  const std::uint8_t four[4] = {198, 19, 255, 254};
  w.begin(RTM_NEWADDR, NLM_F_CREATE | NLM_F_ACK, address);
  w.bytes(IFA_LOCAL, v6 ? six : four, v6 ? sizeof(six) : sizeof(four));
  w.bytes(IFA_ADDRESS, v6 ? six : four, v6 ? sizeof(six) : sizeof(four));
  w.end();
  return w.take();
}

NetlinkBatch packetFilter() {
  Writer w;
  w.begin(NFNL_MSG_BATCH_BEGIN, 0, nfgenmsg{AF_UNSPEC, NFNETLINK_V0, htons(NFNL_SUBSYS_NFTABLES)});
  w.end();
  w.begin(nftMessage(NFT_MSG_NEWTABLE), NLM_F_CREATE | NLM_F_ACK, nfgenmsg{NFPROTO_INET, NFNETLINK_V0, 0});
  w.text(NFTA_TABLE_NAME, kTable);
  w.end();

  chain(w, "capture", "nat", kNatPriority);
  leaveLoopbackAlone(w, "capture");
  rule(w, "capture", [](Rule& r) {
    r.meta(NFT_META_L4PROTO, IPPROTO_TCP);
    r.port(2, kDnsPort);
    r.verdict(NF_ACCEPT);
  });
  rule(w, "capture", [](Rule& r) {
    r.meta(NFT_META_L4PROTO, IPPROTO_TCP);
    r.redirectTo(kCapturePort);
  });

  chain(w, "refuse", "filter", 0);
  leaveLoopbackAlone(w, "refuse");
  rule(w, "refuse", [](Rule& r) {
    r.meta(NFT_META_L4PROTO, IPPROTO_TCP);
    r.verdict(NF_ACCEPT);
  });
  for (const std::uint32_t offset : {0U, 2U}) {  // queries, and our responses from any queried address
    rule(w, "refuse", [&](Rule& r) {
      r.meta(NFT_META_L4PROTO, IPPROTO_UDP);
      r.port(offset, kDnsPort);
      r.verdict(NF_ACCEPT);
    });
  }
  rule(w, "refuse", [](Rule& r) {
    r.log();
    r.verdict(NF_DROP);  // in the output hook: the sender gets EPERM at once
  });
  w.begin(NFNL_MSG_BATCH_END, 0, nfgenmsg{AF_UNSPEC, NFNETLINK_V0, htons(NFNL_SUBSYS_NFTABLES)});
  w.end();
  return w.take();
}

NetlinkBatch packetLog() {
  Writer w;
  constexpr int kConfig = NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_CONFIG;
  const nfgenmsg group{AF_UNSPEC, NFNETLINK_V0, htons(kLogGroup)};
  w.begin(kConfig, NLM_F_ACK, group);
  w.number(NFULA_CFG_CMD, nfulnl_msg_config_cmd{NFULNL_CFG_CMD_BIND});
  w.end();
  w.begin(kConfig, NLM_F_ACK, group);
  nfulnl_msg_config_mode mode{};
  mode.copy_range = htonl(kLoggedBytes);
  mode.copy_mode = NFULNL_COPY_PACKET;
  w.number(NFULA_CFG_MODE, mode);
  w.big32(NFULA_CFG_QTHRESH, 1);                       // deliver each one at once
  w.number(NFULA_CFG_FLAGS, htons(NFULNL_CFG_F_SEQ));  // lets the reader count lost messages
  w.end();
  return w.take();
}

NetlinkBatch refusingRules(bool v6) {
  Writer w;
  std::uint32_t priority = 100;
  const auto begin = [&](int type, std::uint8_t action, std::uint8_t destination_bits) {
    fib_rule_hdr header{};
    header.family = v6 ? AF_INET6 : AF_INET;
    header.action = action;
    header.table = action == FR_ACT_TO_TBL ? RT_TABLE_LOCAL : RT_TABLE_UNSPEC;
    header.dst_len = destination_bits;
    w.begin(type, NLM_F_ACK | (type == RTM_NEWRULE ? NLM_F_CREATE : 0), header);
    w.number(FRA_PRIORITY, type == RTM_NEWRULE ? priority++ : 0U);
  };
  const auto protocol = [&](std::uint8_t action, std::uint8_t number, int port_attribute) {
    begin(RTM_NEWRULE, action, 0);
    w.number(FRA_IP_PROTO, number);
    if (port_attribute != 0) w.number(port_attribute, fib_rule_port_range{kDnsPort, kDnsPort});
    w.end();
  };
  const std::uint8_t four[4] = {127, 0, 0, 0};
  begin(RTM_NEWRULE, FR_ACT_TO_TBL, v6 ? 128 : 8);
  w.bytes(FRA_DST, v6 ? in6addr_loopback.s6_addr : four, v6 ? 16 : sizeof(four));
  w.end();
  protocol(FR_ACT_TO_TBL, IPPROTO_UDP, FRA_DPORT_RANGE);
  protocol(FR_ACT_TO_TBL, IPPROTO_UDP, FRA_SPORT_RANGE);
  protocol(FR_ACT_PROHIBIT, IPPROTO_UDP, 0);
  protocol(FR_ACT_PROHIBIT, v6 ? static_cast<std::uint8_t>(IPPROTO_ICMPV6) : static_cast<std::uint8_t>(IPPROTO_ICMP),
           0);
  // The local table is looked up first by default, and it matches everything here: move it behind these rules.
  begin(RTM_NEWRULE, FR_ACT_TO_TBL, 0);
  w.end();
  begin(RTM_DELRULE, FR_ACT_TO_TBL, 0);
  w.end();
  return w.take();
}

}  // namespace caisson::isolation
