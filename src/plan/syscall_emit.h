// Compilation of a filter to classic BPF, usable at compile time.
#pragma once

#include <linux/audit.h>
#include <linux/seccomp.h>

#include <algorithm>
#include <cstddef>

#include "plan/syscall_filter.h"

namespace caisson::plan::bpf {

using Code = std::vector<sock_filter>;

constexpr std::uint32_t kX32Bit = 0x40000000;
constexpr std::size_t kMaxShortJump = 255;
constexpr std::size_t kMaxProgram = 4096;  // BPF_MAXINSNS

constexpr sock_filter statement(int code, std::uint32_t k) { return {static_cast<std::uint16_t>(code), 0, 0, k}; }
constexpr sock_filter jump(int code, std::uint32_t k, std::size_t yes, std::size_t no) {
  return {static_cast<std::uint16_t>(code), static_cast<std::uint8_t>(yes), static_cast<std::uint8_t>(no), k};
}

constexpr std::uint32_t returnValue(Action action) {
  switch (action.kind) {
    case ActionKind::allow: return SECCOMP_RET_ALLOW;
    case ActionKind::refuse: return action.error != 0 ? SECCOMP_RET_ERRNO | action.error : SECCOMP_RET_KILL_PROCESS;
    case ActionKind::notify: return SECCOMP_RET_USER_NOTIF | action.error;
  }
  return SECCOMP_RET_KILL_PROCESS;
}

constexpr sock_filter answer(Action action) { return statement(BPF_RET | BPF_K, returnValue(action)); }

constexpr std::uint32_t argumentOffset(const ArgumentTest& test) {
  const std::size_t half = test.half == ArgumentTest::Half::high ? 4 : 0;  // both our architectures are little-endian
  return static_cast<std::uint32_t>(offsetof(seccomp_data, args) + 8U * test.argument + half);
}

/// Falls through when the test holds, else jumps `skip` instructions further.
constexpr void emitTest(Code& code, const ArgumentTest& test, std::size_t skip) {
  code.push_back(statement(BPF_LD | BPF_W | BPF_ABS, argumentOffset(test)));
  switch (test.kind) {
    case ArgumentTest::Kind::equal:
      if (test.mask != 0xffffffff) code.push_back(statement(BPF_ALU | BPF_AND | BPF_K, test.mask));
      code.push_back(jump(BPF_JMP | BPF_JEQ | BPF_K, test.want, 0, skip));
      return;
    case ArgumentTest::Kind::any_bit: code.push_back(jump(BPF_JMP | BPF_JSET | BPF_K, test.mask, 0, skip)); return;
    case ArgumentTest::Kind::no_bit: code.push_back(jump(BPF_JMP | BPF_JSET | BPF_K, test.mask, skip, 0)); return;
  }
}

constexpr std::size_t testLength(const ArgumentTest& test) {
  return test.kind == ArgumentTest::Kind::equal && test.mask != 0xffffffff ? 3 : 2;
}

constexpr Code emitRule(const SyscallRule& rule) {
  Code code;
  for (const Branch& branch : rule.branches) {
    std::size_t rest = 1;  // the branch's own answer
    for (const ArgumentTest& test : branch.tests) rest += testLength(test);
    for (const ArgumentTest& test : branch.tests) {
      rest -= testLength(test);
      emitTest(code, test, rest);
    }
    code.push_back(answer(branch.action));
  }
  code.push_back(answer(rule.otherwise));
  return code;
}

/// Numbers from `first` on, up to the next segment, share `code`.
struct Segment {
  std::uint32_t first;
  Code code;
};

constexpr bool same(const Code& a, const Code& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const sock_filter& x, const sock_filter& y) {
    return x.code == y.code && x.jt == y.jt && x.jf == y.jf && x.k == y.k;
  });
}

constexpr std::vector<Segment> segments(const SyscallFilter& filter) {
  std::vector<const SyscallRule*> sorted;
  sorted.reserve(filter.rules.size());
  for (const SyscallRule& rule : filter.rules) sorted.push_back(&rule);
  std::sort(sorted.begin(), sorted.end(), [](auto* a, auto* b) { return a->number < b->number; });

  std::vector<Segment> result;
  const Code unlisted{answer(filter.unlisted)};
  const auto add = [&](std::uint32_t first, Code code) {
    if (result.empty() || !same(result.back().code, code)) result.push_back({first, std::move(code)});
  };
  std::uint32_t next = 0;
  for (const SyscallRule* rule : sorted) {
    const auto number = static_cast<std::uint32_t>(rule->number);
    if (number > next || result.empty()) {
      if (number > next) add(next, unlisted);
    }
    add(number, emitRule(*rule));
    next = number + 1;
  }
  add(next, unlisted);
  return result;
}

/// Binary search over the segments; the accumulator holds the call's number.
constexpr Code emitTree(std::vector<Segment>& all, std::size_t begin, std::size_t end) {
  if (end - begin == 1) return std::move(all[begin].code);
  const std::size_t middle = begin + (end - begin) / 2;
  const std::uint32_t pivot = all[middle].first;
  Code left = emitTree(all, begin, middle);
  Code right = emitTree(all, middle, end);
  Code code;
  code.reserve(left.size() + right.size() + 2);
  if (left.size() <= kMaxShortJump) {
    code.push_back(jump(BPF_JMP | BPF_JGE | BPF_K, pivot, left.size(), 0));
  } else {  // conditional jumps reach 255 instructions only
    code.push_back(jump(BPF_JMP | BPF_JGE | BPF_K, pivot, 0, 1));
    code.push_back(statement(BPF_JMP | BPF_JA, static_cast<std::uint32_t>(left.size())));
  }
  code.insert(code.end(), left.begin(), left.end());
  code.insert(code.end(), right.begin(), right.end());
  return code;
}

constexpr std::uint32_t kNativeArchitecture =
#if defined(__x86_64__)
    AUDIT_ARCH_X86_64;
#else
    AUDIT_ARCH_AARCH64;
#endif

constexpr Code emitProgram(const SyscallFilter& filter) {
  Code code;
  if (filter.check_architecture) {
    // First of all: the same number means another call under another architecture.
    code.push_back(statement(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)));
    code.push_back(jump(BPF_JMP | BPF_JEQ | BPF_K, kNativeArchitecture, 1, 0));
    code.push_back(answer(kForeign));
  }
  code.push_back(statement(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
#if defined(__x86_64__)
  // x32 shares the architecture and sets this bit; every number above it is foreign.
  code.push_back(jump(BPF_JMP | BPF_JGE | BPF_K, kX32Bit, 0, 1));
  code.push_back(answer(kForeign));
#endif
  std::vector<Segment> all = segments(filter);
  const Code tree = emitTree(all, 0, all.size());
  code.insert(code.end(), tree.begin(), tree.end());
  return code;
}

}  // namespace caisson::plan::bpf
