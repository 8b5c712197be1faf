// The filter compiler: for any rules, the emitted tree answers like a linear evaluation of the rules.
#include "plan/syscall_filter.h"

#include <linux/audit.h>

#include <random>

#include "plan/syscall_filter_testing.h"
#include "support/conforms.h"

namespace caisson::plan {
namespace {

using Random = std::mt19937_64;

constexpr int kNumbers = 600;

std::uint64_t upTo(Random& random, std::uint64_t limit) {
  return std::uniform_int_distribution<std::uint64_t>(0, limit)(random);
}

std::uint32_t valueOf(Action action) {
  switch (action.kind) {
    case ActionKind::allow: return SECCOMP_RET_ALLOW;
    case ActionKind::refuse: return SECCOMP_RET_ERRNO | action.error;
    case ActionKind::notify: return SECCOMP_RET_USER_NOTIF | action.error;
    case ActionKind::pretend: return SECCOMP_RET_ERRNO;
  }
  return SECCOMP_RET_KILL_PROCESS;
}

bool holds(const ArgumentTest& test, const std::uint64_t (&arguments)[6]) {
  const auto value =
      static_cast<std::uint32_t>(arguments[test.argument] >> (test.half == ArgumentTest::Half::high ? 32 : 0));
  switch (test.kind) {
    case ArgumentTest::Kind::equal: return (value & test.mask) == test.want;
    case ArgumentTest::Kind::any_bit: return (value & test.mask) != 0;
    case ArgumentTest::Kind::no_bit: return (value & test.mask) == 0;
    case ArgumentTest::Kind::unequal: return value != test.want;
    case ArgumentTest::Kind::at_least: return value >= test.want;
    case ArgumentTest::Kind::below: return value < test.want;
  }
  return false;
}

/// Linear evaluation of the rules.
std::uint32_t linear(const SyscallFilter& filter, int number, const std::uint64_t (&arguments)[6]) {
  for (const SyscallRule& rule : filter.rules) {
    if (rule.number != number) continue;
    for (const Branch& branch : rule.branches) {
      bool all = true;
      for (const ArgumentTest& test : branch.tests) all = all && holds(test, arguments);
      if (all) return valueOf(branch.action);
    }
    return valueOf(rule.otherwise);
  }
  return valueOf(filter.unlisted);
}

Action randomAction(Random& random) {
  const Action some[] = {kAllow, notify(1), refuse(1), refuse(38), refuse(13), kAllow};
  return some[upTo(random, 5)];
}

ArgumentTest randomTest(Random& random) {
  ArgumentTest test;
  test.argument = static_cast<std::uint8_t>(upTo(random, 5));
  test.half = upTo(random, 1) == 0 ? ArgumentTest::Half::low : ArgumentTest::Half::high;
  test.kind = static_cast<ArgumentTest::Kind>(upTo(random, 5));
  // Few different bits, so that random arguments often match.
  const bool whole =
      test.kind >= ArgumentTest::Kind::unequal || (test.kind == ArgumentTest::Kind::equal && upTo(random, 1) == 0);
  test.mask = whole ? 0xffffffff : static_cast<std::uint32_t>(upTo(random, 15));
  test.want = static_cast<std::uint32_t>(upTo(random, 15)) & test.mask;
  return test;
}

SyscallRule randomRule(Random& random, int number) {
  SyscallRule rule{number, {}, randomAction(random)};
  if (upTo(random, 3) != 0) return rule;
  for (std::uint64_t branches = upTo(random, 3); branches > 0; --branches) {
    Branch branch{{}, randomAction(random)};
    for (std::uint64_t tests = upTo(random, 3); tests > 0; --tests) branch.tests.push_back(randomTest(random));
    rule.branches.push_back(std::move(branch));
  }
  return rule;
}

SyscallFilter randomFilter(Random& random) {
  SyscallFilter filter;
  filter.unlisted = randomAction(random);
  const std::uint64_t density = upTo(random, 100);
  for (int number = 0; number < kNumbers - 50; ++number) {
    if (upTo(random, 99) < density) filter.rules.push_back(randomRule(random, number));
  }
  std::shuffle(filter.rules.begin(), filter.rules.end(), random);
  return filter;
}

void fill(std::uint64_t (&arguments)[6], Random& random) {
  for (std::uint64_t& argument : arguments) {
    argument = upTo(random, 1) == 0 ? random() : upTo(random, 15) | (upTo(random, 15) << 32);
  }
}

class FilterCompiler : public OnEachArchitecture {
 protected:
  static SyscallFilter emptyFilter() {
    SyscallFilter filter;
    filter.architecture = architecture();
    return filter;
  }
};
INSTANTIATE_TEST_SUITE_P(, FilterCompiler, ::testing::ValuesIn(kArchitectures), nameOfArchitecture);

TEST_P(FilterCompiler, TreeGivesTheSameResultAsALinearSearch) {
  Random random(20240607);  // fixed seed: failures are reproducible
  for (int round = 0; round < 60; ++round) {
    SyscallFilter filter = randomFilter(random);
    filter.architecture = architecture();
    const auto program = compile(filter);
    ASSERT_TRUE(program) << program.error().message();
    for (int number = 0; number <= kNumbers; ++number) {
      for (int time = 0; time < 3; ++time) {
        std::uint64_t arguments[6];
        fill(arguments, random);
        ASSERT_EQ(evaluateNumber(*program, number, arguments), linear(filter, number, arguments))
            << "round " << round << ", call " << number;
      }
    }
  }
}

TEST_P(FilterCompiler, EveryJumpIsInsideTheProgramAndEveryPathReturns) {
  Random random(7);
  for (int round = 0; round < 20; ++round) {
    SyscallFilter filter = randomFilter(random);
    filter.architecture = architecture();
    const auto program = compile(filter);
    ASSERT_TRUE(program);
    for (std::size_t at = 0; at < program->size(); ++at) {
      const sock_filter& instruction = (*program)[at];
      if (BPF_CLASS(instruction.code) == BPF_RET) continue;
      std::size_t farthest = at + 1;
      if (BPF_CLASS(instruction.code) == BPF_JMP) {
        farthest += BPF_OP(instruction.code) == BPF_JA ? instruction.k : std::max(instruction.jt, instruction.jf);
      }
      ASSERT_LT(farthest, program->size()) << "instruction " << at;
    }
  }
}

TEST_P(FilterCompiler, AnEmptyFilterRefusesEveryCall) {
  CONFORMS("R-SYSCALL-1");
  const auto program = compile(emptyFilter());
  ASSERT_TRUE(program);
  const std::uint64_t none[6] = {};
  for (int number = 0; number <= kNumbers; ++number) {
    EXPECT_EQ(evaluateNumber(*program, number, none), SECCOMP_RET_ERRNO | 38U);
  }
  EXPECT_NE(evaluateNumber(*program, -1, none) & SECCOMP_RET_ACTION_FULL, SECCOMP_RET_ALLOW);
}

TEST_P(FilterCompiler, EveryCallOfAForeignArchitectureIsReported) {
  SyscallFilter filter = emptyFilter();
  filter.unlisted = kAllow;
  const auto program = compile(filter);
  ASSERT_TRUE(program);
  const std::uint64_t none[6] = {};
  for (const std::uint32_t one : std::initializer_list<std::uint32_t>{AUDIT_ARCH_I386, AUDIT_ARCH_ARM,
                                                                      AUDIT_ARCH_X86_64, AUDIT_ARCH_AARCH64, 0}) {
    const std::uint32_t wanted = one == architectureNumber() ? SECCOMP_RET_ALLOW : SECCOMP_RET_USER_NOTIF;
    for (const int number : {0, 1, 59, 221, 450}) EXPECT_EQ(evaluate(*program, one, number, none), wanted);
  }
}

TEST_P(FilterCompiler, X32NumbersAreKilled) {
  if (architecture() != Architecture::x86_64) return;
  SyscallFilter filter = emptyFilter();
  filter.unlisted = kAllow;
  const auto program = compile(filter);
  ASSERT_TRUE(program);
  const std::uint64_t none[6] = {};
  for (const int number : {0, 59, 512, 547}) {
    EXPECT_EQ(evaluateNumber(*program, number | 0x40000000, none), SECCOMP_RET_USER_NOTIF);
  }
  EXPECT_EQ(evaluateNumber(*program, -1, none), SECCOMP_RET_USER_NOTIF);
}

TEST_P(FilterCompiler, ProgramLongerThanTheKernelLimitIsAnError) {
  SyscallFilter filter = emptyFilter();
  for (int number = 0; number < kNumbers; ++number) {
    SyscallRule rule{number, {}, kAllow};
    for (std::uint32_t want = 0; want < 8; ++want) {
      rule.branches.push_back({{{0, ArgumentTest::Half::low, ArgumentTest::Kind::equal, 0xffffffff,
                                 static_cast<std::uint32_t>(number) + 3 * want}},
                               refuse(1)});
    }
    filter.rules.push_back(std::move(rule));
  }
  const auto program = compile(filter);
  ASSERT_FALSE(program);
  EXPECT_NE(program.error().message().find("4096"), std::string::npos) << program.error().message();
}

TEST_P(FilterCompiler, LongJumpsAreTakenWhereShortOnesDoNotReach) {
  SyscallFilter filter = emptyFilter();  // every rule different, so that segments cannot be merged
  for (int number = 0; number < 400; ++number) {
    filter.rules.push_back(
        {number,
         {{{{1, ArgumentTest::Half::low, ArgumentTest::Kind::equal, 0xffffffff, static_cast<std::uint32_t>(number)}},
           refuse(number % 100 + 1)}},
         kAllow});
  }
  const auto program = compile(filter);
  ASSERT_TRUE(program);
  ASSERT_GT(program->size(), 1000U);
  for (int number = 0; number <= kNumbers; ++number) {
    const std::uint64_t same[6] = {0, static_cast<std::uint64_t>(number), 0, 0, 0, 0};
    const std::uint64_t other[6] = {0, 999, 0, 0, 0, 0};
    EXPECT_EQ(evaluateNumber(*program, number, same), linear(filter, number, same)) << number;
    EXPECT_EQ(evaluateNumber(*program, number, other), linear(filter, number, other)) << number;
  }
}

/// The kernel compiles the program for every process that attaches it.
TEST_P(FilterCompiler, CommonPartsOfRulesAreEmittedOnce) {
  SyscallFilter filter = emptyFilter();
  filter.unlisted = refuse(38);
  for (int number = 0; number < 100; ++number) {
    if (number % 10 == 3) continue;  // a hole
    SyscallRule rule{number, {}, kAllow};
    if (number % 10 == 7) {
      rule.branches.push_back({{{1, ArgumentTest::Half::low, ArgumentTest::Kind::equal, 0xffffffff, 5}}, notify(1)});
      rule.branches.push_back({{{1, ArgumentTest::Half::low, ArgumentTest::Kind::equal, 0xffffffff, 6}}, notify(1)});
    }
    filter.rules.push_back(std::move(rule));
  }
  const auto program = compile(filter);
  ASSERT_TRUE(program);
  // Ten gaps and ten numbers with a shared rule: an argument is loaded and compared twice.
  EXPECT_LT(program->size(), 50U);
  // x86_64 has 56 more calls, many of them between others that are denied.
  EXPECT_LT(builtin().size(), architecture() == Architecture::x86_64 ? 300U : 280U);
}

TEST_P(FilterCompiler, ManyValuesOfOneArgumentUseABinarySearch) {
  SyscallFilter filter = emptyFilter();
  SyscallRule rule{16, {}, refuse(25)};
  Random random(3);
  for (int count = 0; count < 300; ++count) {
    const auto value = static_cast<std::uint32_t>(count == 0 ? 0xffffffff : count == 1 ? 0 : random());
    rule.branches.push_back({{{.argument = 1, .want = value}}, count % 3 == 0 ? notify(1) : kAllow});
  }
  rule.branches.push_back({{{.argument = 1, .want = rule.branches[7].tests[0].want}}, notify(1)});  // never reached
  filter.rules.push_back(rule);
  const auto program = compile(filter);
  ASSERT_TRUE(program);
  for (const Branch& branch : rule.branches) {
    for (const std::uint64_t near : {0, 1, -1}) {
      const std::uint64_t arguments[6] = {0, (branch.tests[0].want + near) & 0xffffffff};
      ASSERT_EQ(evaluateNumber(*program, 16, arguments), linear(filter, 16, arguments));
    }
  }
}

}  // namespace
}  // namespace caisson::plan
