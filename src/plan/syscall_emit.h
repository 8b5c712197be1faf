// Compilation of a filter to classic BPF, usable at compile time.
#pragma once

#include <linux/audit.h>
#include <linux/seccomp.h>

#include <algorithm>
#include <cstddef>
#include <span>

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

/// Writes a program from its end to its beginning. Jumps only go forward, so every target is there before the jump and
/// its distance is known; and what several rules have in common, an answer or a whole rule, is written once. The kernel
/// copies, checks and compiles a filter for every process that it is attached to: half the length is half the price.
class Assembler {
 public:
  using Label = std::size_t;  ///< of an instruction: how many come after it

  constexpr Label emit(sock_filter instruction) {
    backwards_.push_back(instruction);
    return backwards_.size() - 1;
  }

  /// An instruction that the program goes on from at `next`.
  constexpr Label emitBefore(Label next, sock_filter instruction) {
    if (distance(next) != 0) emit(statement(BPF_JMP | BPF_JA, static_cast<std::uint32_t>(distance(next))));
    return emit(instruction);
  }

  /// A comparison of the accumulator.
  constexpr Label emitJump(int comparison, std::uint32_t k, Label yes, Label no) {
    bringNear(no);
    bringNear(yes);
    return emit(jump(BPF_JMP | comparison | BPF_K, k, distance(yes), distance(no)));
  }

  constexpr Label answerWith(Action action) {
    const sock_filter wanted = answer(action);
    for (Answer& known : answers_) {
      if (known.value != wanted.k) continue;
      if (!isNear(known.at)) known.at = emit(wanted);  // one more is as short as a jump to the other
      return known.at;
    }
    answers_.push_back({wanted.k, emit(wanted)});
    return answers_.back().at;
  }

  /// Where a rule is decided. It finds any accumulator.
  constexpr Label decide(const SyscallRule& rule) {
    if (rule.branches.empty()) return answerWith(rule.otherwise);
    for (const Decision& known : decisions_) {
      if (known.rule->otherwise == rule.otherwise && known.rule->branches == rule.branches) return known.at;
    }
    Label next = answerWith(rule.otherwise);
    for (auto branch = rule.branches.rbegin(); branch != rule.branches.rend(); ++branch) {
      Label holds = answerWith(branch->action);
      for (auto test = branch->tests.rbegin(); test != branch->tests.rend(); ++test) {
        holds = emitTest(*test, holds, next);
      }
      next = holds;
    }
    decisions_.push_back({&rule, next});
    return next;
  }

  constexpr Code take() {
    std::reverse(backwards_.begin(), backwards_.end());
    return std::move(backwards_);
  }

 private:
  struct Answer {
    std::uint32_t value;
    Label at;
  };
  struct Decision {
    const SyscallRule* rule;
    Label at;
  };

  /// From the instruction that is written next.
  [[nodiscard]] constexpr std::size_t distance(Label target) const { return backwards_.size() - target - 1; }
  [[nodiscard]] constexpr bool isNear(Label target) const { return distance(target) + 2 <= kMaxShortJump; }
  /// Conditional jumps reach 255 instructions only; room is left for two of these.
  constexpr void bringNear(Label& target) {
    if (isNear(target)) return;
    target = emit(statement(BPF_JMP | BPF_JA, static_cast<std::uint32_t>(distance(target))));
  }
  /// A test that leaves its argument in the accumulator need not have it loaded again.
  [[nodiscard]] constexpr Label behindLoad(Label target, const sock_filter& load) const {
    const sock_filter& there = backwards_[target];
    return there.code == load.code && there.k == load.k ? target - 1 : target;
  }

  constexpr Label emitTest(const ArgumentTest& test, Label yes, Label no) {
    const sock_filter load = statement(BPF_LD | BPF_W | BPF_ABS, argumentOffset(test));
    const bool masked = test.kind == ArgumentTest::Kind::equal && test.mask != 0xffffffff;
    if (!masked) {
      yes = behindLoad(yes, load);
      no = behindLoad(no, load);
    }
    switch (test.kind) {
      case ArgumentTest::Kind::equal: emitJump(BPF_JEQ, test.want, yes, no); break;
      case ArgumentTest::Kind::any_bit: emitJump(BPF_JSET, test.mask, yes, no); break;
      case ArgumentTest::Kind::no_bit: emitJump(BPF_JSET, test.mask, no, yes); break;
    }
    if (masked) emit(statement(BPF_ALU | BPF_AND | BPF_K, test.mask));
    return emit(load);
  }

  Code backwards_;
  std::vector<Answer> answers_;
  std::vector<Decision> decisions_;
};

/// Numbers from `first` on, up to the next segment, are decided by `rule`.
struct Segment {
  std::uint32_t first;
  const SyscallRule* rule;
};

constexpr bool decideAlike(const SyscallRule& a, const SyscallRule& b) {
  return a.otherwise == b.otherwise && a.branches == b.branches;
}

constexpr std::vector<Segment> segments(const SyscallFilter& filter, const SyscallRule& unlisted) {
  std::vector<const SyscallRule*> sorted;
  sorted.reserve(filter.rules.size());
  for (const SyscallRule& rule : filter.rules) sorted.push_back(&rule);
  std::sort(sorted.begin(), sorted.end(), [](auto* a, auto* b) { return a->number < b->number; });

  std::vector<Segment> result;
  const auto add = [&](std::uint32_t first, const SyscallRule& rule) {
    if (result.empty() || !decideAlike(*result.back().rule, rule)) result.push_back({first, &rule});
  };
  std::uint32_t next = 0;
  for (const SyscallRule* rule : sorted) {
    const auto number = static_cast<std::uint32_t>(rule->number);
    if (number > next) add(next, unlisted);
    add(number, *rule);
    next = number + 1;
  }
  add(next, unlisted);
  return result;
}

constexpr std::size_t kMaxExceptions = 3;  // more would make the way to the last one longer than a deeper tree

/// Segments that follow each other and are decided alike, but for a few single numbers.
struct Leaf {
  std::size_t begin, end;     ///< of its segments
  const SyscallRule* common;  ///< for all of them but the exceptions
};

constexpr bool isSingle(const std::vector<Segment>& all, std::size_t at) {
  return at + 1 < all.size() && all[at + 1].first == all[at].first + 1;
}

constexpr Leaf leafFrom(const std::vector<Segment>& all, std::size_t begin, const SyscallRule& common) {
  std::size_t end = begin;
  for (std::size_t exceptions = 0; end < all.size(); ++end) {
    if (decideAlike(*all[end].rule, common)) continue;
    if (!isSingle(all, end) || ++exceptions > kMaxExceptions) break;
  }
  return {begin, end, &common};
}

constexpr std::vector<Leaf> leaves(const std::vector<Segment>& all) {
  std::vector<Leaf> result;
  for (std::size_t at = 0; at < all.size(); at = result.back().end) {
    Leaf leaf = leafFrom(all, at, *all[at].rule);
    if (at + 1 < all.size() && isSingle(all, at)) {
      const Leaf other = leafFrom(all, at, *all[at + 1].rule);
      if (other.end > leaf.end) leaf = other;
    }
    result.push_back(leaf);
  }
  return result;
}

/// The accumulator holds the call's number.
constexpr Assembler::Label emitLeaf(Assembler& code, const std::vector<Segment>& all, const Leaf& leaf) {
  Assembler::Label next = code.decide(*leaf.common);
  for (std::size_t at = leaf.end; at-- > leaf.begin;) {
    if (decideAlike(*all[at].rule, *leaf.common)) continue;
    next = code.emitJump(BPF_JEQ, all[at].first, code.decide(*all[at].rule), next);
  }
  return next;
}

/// Binary search over the leaves.
constexpr Assembler::Label emitTree(Assembler& code, const std::vector<Segment>& all, std::span<const Leaf> part) {
  if (part.size() == 1) return emitLeaf(code, all, part.front());
  const std::size_t middle = part.size() / 2;
  const Assembler::Label right = emitTree(code, all, part.subspan(middle));
  const Assembler::Label left = emitTree(code, all, part.first(middle));
  return code.emitJump(BPF_JGE, all[part[middle].begin].first, right, left);
}

constexpr std::uint32_t kNativeArchitecture =
#if defined(__x86_64__)
    AUDIT_ARCH_X86_64;
#else
    AUDIT_ARCH_AARCH64;
#endif

constexpr Code emitProgram(const SyscallFilter& filter) {
  Assembler code;
  const SyscallRule unlisted{-1, {}, filter.unlisted};
  code.answerWith(kForeign);  // the kernel wants an answer at the very end
  const std::vector<Segment> all = segments(filter, unlisted);
  const std::vector<Leaf> parts = leaves(all);
  Assembler::Label start = emitTree(code, all, parts);
#if defined(__x86_64__)
  // x32 shares the architecture and sets this bit; every number above it is foreign.
  start = code.emitJump(BPF_JGE, kX32Bit, code.answerWith(kForeign), start);
#endif
  start = code.emitBefore(start, statement(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
  if (filter.check_architecture) {
    // First of all: the same number means another call under another architecture.
    start = code.emitJump(BPF_JEQ, kNativeArchitecture, start, code.answerWith(kForeign));
    code.emitBefore(start, statement(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)));
  }
  return code.take();
}

}  // namespace caisson::plan::bpf
