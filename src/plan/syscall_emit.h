// Compilation of a filter to classic BPF, usable at compile time.
#pragma once

#include <linux/audit.h>
#include <linux/seccomp.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>

#include "base/native_architecture.h"
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

/// The filter's return value for an action.
constexpr std::uint32_t returnValue(Action action) {
  switch (action.kind) {
    case ActionKind::allow: return SECCOMP_RET_ALLOW;
    case ActionKind::refuse: return action.error != 0 ? SECCOMP_RET_ERRNO | action.error : SECCOMP_RET_KILL_PROCESS;
    case ActionKind::notify: return SECCOMP_RET_USER_NOTIF | action.error;
    case ActionKind::pretend: return SECCOMP_RET_ERRNO;  // 0
  }
  return SECCOMP_RET_KILL_PROCESS;
}

constexpr sock_filter answer(Action action) { return statement(BPF_RET | BPF_K, returnValue(action)); }

constexpr std::uint32_t argumentOffset(const ArgumentTest& test) {
  const std::size_t half = test.half == ArgumentTest::Half::high ? 4 : 0;  // both our architectures are little-endian
  return static_cast<std::uint32_t>(offsetof(seccomp_data, args) + 8U * test.argument + half);
}

/// The outcome of `other`, if it follows from `test` being true or false (`holds`); nullopt: unknown.
constexpr std::optional<bool> implied(const ArgumentTest& other, const ArgumentTest& test, bool holds) {
  if (other == test) return holds;
  if (!holds || test.kind != ArgumentTest::Kind::equal) return std::nullopt;
  if (other.argument != test.argument || other.half != test.half || (other.mask & ~test.mask) != 0) return std::nullopt;
  const std::uint32_t known = test.want & other.mask;
  switch (other.kind) {
    case ArgumentTest::Kind::equal: return known == other.want;
    case ArgumentTest::Kind::any_bit: return known != 0;
    case ArgumentTest::Kind::no_bit: return known == 0;
    case ArgumentTest::Kind::unequal: return known != other.want;
    case ArgumentTest::Kind::at_least: return known >= other.want;
    case ArgumentTest::Kind::below: return known < other.want;
  }
  return std::nullopt;
}

/// The branches left once the outcome of `test` is known.
constexpr std::vector<Branch> assume(const std::vector<Branch>& branches, const ArgumentTest& test, bool holds) {
  std::vector<Branch> result;
  for (const Branch& branch : branches) {
    Branch left{{}, branch.action};
    bool possible = true;
    for (const ArgumentTest& other : branch.tests) {
      const std::optional<bool> outcome = implied(other, test, holds);
      if (!outcome) left.tests.push_back(other);
      possible = possible && outcome.value_or(true);
    }
    if (!possible) continue;
    result.push_back(std::move(left));
    if (result.back().tests.empty()) break;  // it decides
  }
  return result;
}

constexpr std::size_t kSmallTable = 8;  // fewer values are compared one by one

/// Whether a rule only compares one argument with many values: a tree is faster than a chain.
constexpr bool isValueTable(const SyscallRule& rule) {
  if (rule.branches.size() < kSmallTable) return false;
  const std::uint8_t argument = rule.branches.front().tests.empty() ? 0 : rule.branches.front().tests.front().argument;
  return std::ranges::all_of(rule.branches, [&](const Branch& branch) {
    return branch.tests.size() == 1 &&
           branch.tests.front() == ArgumentTest{.argument = argument, .want = branch.tests.front().want};
  });
}

class Assembler;
constexpr std::size_t emitValueTable(Assembler& code, const SyscallRule& rule);

/// Writes a program from its end to its beginning. Jumps only go forward, so every target exists before its jump and
/// the distance is known; common parts of rules are written once. The kernel copies, checks and compiles a filter for
/// every process that attaches it, so its cost grows with its length.
class Assembler {
 public:
  using Label = std::size_t;  ///< of an instruction: how many follow it

  /// Writes one instruction in front of all others.
  constexpr Label emit(sock_filter instruction) {
    backwards_.push_back(instruction);
    return backwards_.size() - 1;
  }

  /// Emits an instruction that continues at `next`.
  constexpr Label emitBefore(Label next, sock_filter instruction) {
    if (distance(next) != 0) emit(statement(BPF_JMP | BPF_JA, static_cast<std::uint32_t>(distance(next))));
    return emit(instruction);
  }

  /// Emits a comparison of the accumulator with `k`.
  constexpr Label emitJump(int comparison, std::uint32_t k, Label yes, Label no) {
    bringNear(no);
    bringNear(yes);
    return emit(jump(BPF_JMP | comparison | BPF_K, k, distance(yes), distance(no)));
  }

  /// The label of an instruction that returns `action`; emits one if none is near.
  constexpr Label answerWith(Action action) {
    const sock_filter wanted = answer(action);
    for (Answer& known : answers_) {
      if (known.value != wanted.k) continue;
      if (!isNear(known.at)) known.at = emit(wanted);  // another copy is as short as a jump to the first
      return known.at;
    }
    answers_.push_back({wanted.k, emit(wanted)});
    return answers_.back().at;
  }

  /// Emits the evaluation of a rule, or finds an equal one; returns its label. Makes no assumption about the
  /// accumulator.
  constexpr Label decide(const SyscallRule& rule) {
    if (rule.branches.empty()) return answerWith(rule.otherwise);
    for (const Decision& known : decisions_) {
      if (known.rule->otherwise == rule.otherwise && known.rule->branches == rule.branches) return known.at;
    }
    subtrees_.clear();
    const Label start =
        isValueTable(rule) ? emitValueTable(*this, rule) : decideBranches(rule.branches, rule.otherwise);
    decisions_.push_back({&rule, start});
    return start;
  }

  /// Emits a load of the low half of an argument into the accumulator, which continues at `next`.
  constexpr Label emitLoad(Label next, std::uint8_t argument) {
    return emitBefore(next, statement(BPF_LD | BPF_W | BPF_ABS, argumentOffset({.argument = argument})));
  }

  /// The finished program; call once.
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
  struct Subtree {
    std::vector<Branch> branches;
    Label at;
  };

  /// The first branch whose tests all hold decides. The outcome of a test simplifies later ones: each test is made at
  /// most once on every path.
  constexpr Label decideBranches(const std::vector<Branch>& branches, Action otherwise) {
    if (branches.empty()) return answerWith(otherwise);
    if (branches.front().tests.empty()) return answerWith(branches.front().action);
    for (const Subtree& known : subtrees_) {
      if (known.branches == branches) return known.at;
    }
    const ArgumentTest test = branches.front().tests.front();
    const Label no = decideBranches(assume(branches, test, false), otherwise);
    const Label yes = decideBranches(assume(branches, test, true), otherwise);
    const Label at = yes == no ? yes : emitTest(test, yes, no);
    subtrees_.push_back({branches, at});
    return at;
  }

  /// Instructions to skip from the next one to be written to `target`.
  [[nodiscard]] constexpr std::size_t distance(Label target) const { return backwards_.size() - target - 1; }
  [[nodiscard]] constexpr bool isNear(Label target) const { return distance(target) + 2 <= kMaxShortJump; }
  /// If `target` is too far for a conditional jump (255 instructions), emits a jump to it and sets `target` to that.
  /// Leaves room for two of these.
  constexpr void bringNear(Label& target) {
    if (isNear(target)) return;
    target = emit(statement(BPF_JMP | BPF_JA, static_cast<std::uint32_t>(distance(target))));
  }
  static constexpr bool isSame(const sock_filter& a, const sock_filter& b) { return a.code == b.code && a.k == b.k; }
  /// If `target` begins with this load (and mask), the label after it: the accumulator already holds the value.
  [[nodiscard]] constexpr Label behindLoad(Label target, const sock_filter& load, const sock_filter* mask) const {
    if (!isSame(backwards_[target], load)) return target;
    if (mask == nullptr) return target - 1;
    return target > 0 && isSame(backwards_[target - 1], *mask) ? target - 2 : target;
  }

  /// Emits a test of an argument, which loads (and masks) it first.
  constexpr Label emitTest(const ArgumentTest& test, Label yes, Label no) {
    const sock_filter load = statement(BPF_LD | BPF_W | BPF_ABS, argumentOffset(test));
    const sock_filter mask = statement(BPF_ALU | BPF_AND | BPF_K, test.mask);
    const bool masked = test.kind == ArgumentTest::Kind::equal && test.mask != 0xffffffff;
    yes = behindLoad(yes, load, masked ? &mask : nullptr);
    no = behindLoad(no, load, masked ? &mask : nullptr);
    switch (test.kind) {
      case ArgumentTest::Kind::equal: emitJump(BPF_JEQ, test.want, yes, no); break;
      case ArgumentTest::Kind::any_bit: emitJump(BPF_JSET, test.mask, yes, no); break;
      case ArgumentTest::Kind::no_bit: emitJump(BPF_JSET, test.mask, no, yes); break;
      case ArgumentTest::Kind::unequal: emitJump(BPF_JEQ, test.want, no, yes); break;
      case ArgumentTest::Kind::at_least: emitJump(BPF_JGE, test.want, yes, no); break;
      case ArgumentTest::Kind::below: emitJump(BPF_JGE, test.want, no, yes); break;
    }
    if (masked) emit(mask);
    return emit(load);
  }

  Code backwards_;
  std::vector<Answer> answers_;
  std::vector<Decision> decisions_;
  std::vector<Subtree> subtrees_;  ///< of the current rule
};

/// `rule` decides numbers from `first` up to the next segment.
struct Segment {
  std::uint32_t first;
  const SyscallRule* rule;
};

/// Whether both rules treat every call in the same way.
constexpr bool decideAlike(const SyscallRule& a, const SyscallRule& b) {
  return a.otherwise == b.otherwise && a.branches == b.branches;
}

/// `rules`, which are sorted and cover one number each, with `unlisted` in the gaps; equal neighbours are merged.
constexpr std::vector<Segment> fillGaps(const std::vector<Segment>& rules, const SyscallRule& unlisted) {
  std::vector<Segment> result;
  const auto add = [&](std::uint32_t first, const SyscallRule& rule) {
    if (result.empty() || !decideAlike(*result.back().rule, rule)) result.push_back({first, &rule});
  };
  std::uint32_t next = 0;
  for (const Segment& each : rules) {
    if (each.first > next) add(next, unlisted);
    add(each.first, *each.rule);
    next = each.first + 1;
  }
  if (next != 0) add(next, unlisted);  // 0: after the highest number
  if (rules.empty()) add(0, unlisted);
  return result;
}

/// The filter's rules as segments that cover every number.
constexpr std::vector<Segment> segments(const SyscallFilter& filter, const SyscallRule& unlisted) {
  std::vector<Segment> sorted;
  sorted.reserve(filter.rules.size());
  for (const SyscallRule& rule : filter.rules) sorted.push_back({static_cast<std::uint32_t>(rule.number), &rule});
  std::ranges::sort(sorted, {}, &Segment::first);
  return fillGaps(sorted, unlisted);
}

constexpr std::size_t kMaxExceptions = 3;  // with more, a deeper tree is faster

/// Adjacent segments with the same rule, except for a few single numbers.
struct Leaf {
  std::size_t begin, end;     ///< of its segments
  const SyscallRule* common;  ///< for all of them except the exceptions
};

/// Whether the segment covers one number only.
constexpr bool isSingle(const std::vector<Segment>& all, std::size_t at) {
  return at + 1 < all.size() && all[at + 1].first == all[at].first + 1;
}

/// The longest leaf from `begin` on with this common rule.
constexpr Leaf leafFrom(const std::vector<Segment>& all, std::size_t begin, const SyscallRule& common) {
  std::size_t end = begin;
  for (std::size_t exceptions = 0; end < all.size(); ++end) {
    if (decideAlike(*all[end].rule, common)) continue;
    if (!isSingle(all, end) || ++exceptions > kMaxExceptions) break;
  }
  return {begin, end, &common};
}

/// Splits all segments into leaves.
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

/// Emits the comparisons of a leaf. The accumulator holds the call's number.
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

/// Emits a tree over the values of a rule that isValueTable(); the first branch that names a value decides it.
constexpr std::size_t emitValueTable(Assembler& code, const SyscallRule& rule) {
  std::vector<SyscallRule> answers;  // one per value; segments point at them
  answers.reserve(rule.branches.size());
  std::vector<Segment> sorted;
  for (const Branch& branch : rule.branches) {
    const std::uint32_t value = branch.tests.front().want;
    if (std::ranges::find(sorted, value, &Segment::first) != sorted.end()) continue;
    answers.push_back({0, {}, branch.action});
    sorted.push_back({value, &answers.back()});
  }
  std::ranges::sort(sorted, {}, &Segment::first);
  const SyscallRule otherwise{0, {}, rule.otherwise};
  const std::vector<Segment> all = fillGaps(sorted, otherwise);
  const Assembler::Label tree = emitTree(code, all, leaves(all));
  return code.emitLoad(tree, rule.branches.front().tests.front().argument);
}

/// The whole program: checks the architecture (if check_architecture is set), then searches the call's number.
constexpr Code emitProgram(const SyscallFilter& filter) {
  Assembler code;
  const SyscallRule unlisted{-1, {}, filter.unlisted};
  code.answerWith(kForeign);  // the kernel requires a return at the very end
  const std::vector<Segment> all = segments(filter, unlisted);
  const std::vector<Leaf> parts = leaves(all);
  Assembler::Label start = emitTree(code, all, parts);
  if (filter.architecture == Architecture::x86_64) {
    // x32 shares the architecture and sets this bit; every number above it is foreign.
    start = code.emitJump(BPF_JGE, kX32Bit, code.answerWith(kForeign), start);
  }
  start = code.emitBefore(start, statement(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
  if (filter.check_architecture) {
    // First: a number is a different call on another architecture.
    start = code.emitJump(BPF_JEQ, static_cast<std::uint32_t>(filter.architecture), start, code.answerWith(kForeign));
    code.emitBefore(start, statement(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)));
  }
  return code.take();
}

}  // namespace caisson::plan::bpf
