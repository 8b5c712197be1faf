#include "plan/oci_profile.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/syscall_table.h"
#include "base/text.h"
#include "plan/syscall_rules.h"
#include "policy/document/document.h"

namespace caisson::plan {
namespace {

using policy::Node;

constexpr std::string_view kKey = "syscalls.oci_profile";
constexpr std::size_t kMaxAlternatives = 64;  // of one call
constexpr std::int64_t kMaxErrno = 4095;

/// Tests that must all hold.
using Tests = std::vector<ArgumentTest>;

/// What the profile says about one call.
struct OciCall {
  struct Denial {
    Tests tests;
    Action action;
  };
  std::vector<Denial> denied;
  std::vector<Tests> allowed;
};

struct OciProfile {
  Action unlisted = kAllow;
  std::map<std::string, OciCall, std::less<>> calls;
};

constexpr std::string_view goName(Architecture architecture) {
  return architecture == Architecture::x86_64 ? "amd64" : "arm64";
}

std::uint32_t lowHalf(std::uint64_t value) { return static_cast<std::uint32_t>(value); }
std::uint32_t highHalf(std::uint64_t value) { return static_cast<std::uint32_t>(value >> 32); }

class OciReader {
 public:
  OciReader(std::string_view name, const OciTarget& target, Architecture architecture)
      : name_(name), target_(target), go_name_(goName(architecture)) {}

  Result<OciProfile> read(const Node& root) {
    OciProfile profile;
    for (const auto& [key, node] : root.members) {
      static constexpr std::array<std::string_view, 8> kKnown{"defaultAction",    "defaultErrnoRet", "architectures",
                                                              "archMap",          "flags",           "listenerPath",
                                                              "listenerMetadata", "syscalls"};
      if (std::ranges::find(kKnown, key) == kKnown.end()) return refuse(node, "unknown key \"" + printable(key) + "\"");
    }
    const Node* action = root.find("defaultAction");
    if (action == nullptr) return refuse(root, "it has no defaultAction");
    auto unlisted = readAction(*action, root.find("defaultErrnoRet"));
    if (!unlisted) return fail(unlisted.error());
    profile.unlisted = *unlisted;
    const Node* entries = root.find("syscalls");
    if (entries == nullptr || entries->type == Node::Type::null) return profile;
    if (entries->type != Node::Type::list) return refuse(*entries, "syscalls is not a list");
    for (const Node& entry : entries->items) {
      if (auto added = addEntry(entry, profile); !added) return fail(added.error());
    }
    return profile;
  }

 private:
  std::unexpected<Error> refuse(const Node& node, const std::string& why) const {
    return fail(plainError(Stage::policy, "plan", policy::place(name_, node.line, kKey), why,
                           "caisson refuses a profile that it cannot enforce completely"));
  }

  Result<Action> readAction(const Node& action, const Node* number) const {
    std::int64_t error = EPERM;
    if (number != nullptr && number->type != Node::Type::null) {
      if (number->type != Node::Type::integer || number->integer < 0 || number->integer > kMaxErrno) {
        return refuse(*number, "an errno is a number from 0 to 4095");
      }
      error = number->integer;
    }
    const std::string& text = action.text;
    if (text == "SCMP_ACT_ALLOW" || text == "SCMP_ACT_LOG") return kAllow;
    if (text == "SCMP_ACT_ERRNO") {
      if (error == 0) return refuse(action, "errno 0 would report success for a denied call");
      return notify(static_cast<int>(error));
    }
    if (text == "SCMP_ACT_KILL" || text == "SCMP_ACT_KILL_THREAD" || text == "SCMP_ACT_KILL_PROCESS" ||
        text == "SCMP_ACT_TRAP") {
      return plan::refuse(0);  // kills the process
    }
    return refuse(action, "the action \"" + printable(text) + "\" is not supported");
  }

  [[nodiscard]] bool kernelIsAtLeast(const std::string& version) const {
    int major = 0, minor = 0;
    const char* const end = version.data() + version.size();
    const auto first = std::from_chars(version.data(), end, major);
    if (first.ptr != end && *first.ptr == '.') std::from_chars(first.ptr + 1, end, minor);
    return target_.kernel_major > major || (target_.kernel_major == major && target_.kernel_minor >= minor);
  }

  static bool lists(const Node* list, std::string_view text) {
    return list != nullptr && std::ranges::any_of(list->items, [&](const Node& one) { return one.text == text; });
  }
  static bool isEmpty(const Node* list) { return list == nullptr || list->items.empty(); }

  /// Whether an entry is meant for this host and a program without capabilities.
  [[nodiscard]] bool applies(const Node& entry) const {
    if (const Node* only = entry.find("includes")) {
      const Node* arches = only->find("arches");
      const Node* kernel = only->find("minKernel");
      if (!isEmpty(only->find("caps"))) return false;
      if (!isEmpty(arches) && !lists(arches, go_name_)) return false;
      if (kernel != nullptr && !kernel->text.empty() && !kernelIsAtLeast(kernel->text)) return false;
    }
    if (const Node* without = entry.find("excludes")) {
      const Node* kernel = without->find("minKernel");
      if (lists(without->find("arches"), go_name_)) return false;
      if (kernel != nullptr && !kernel->text.empty() && kernelIsAtLeast(kernel->text)) return false;
    }
    return true;
  }

  /// A comparison of a 64-bit argument as alternatives of tests of its halves. The kernel ignores the high half of
  /// `int` arguments: where the value has none, only the low half decides a denial, and a permission by inequality.
  Result<std::vector<Tests>> readComparison(const Node& argument, bool allows) const {
    const Node *index = argument.find("index"), *value = argument.find("value"), *second = argument.find("valueTwo"),
               *op = argument.find("op");
    if (index == nullptr || index->type != Node::Type::integer || index->integer < 0 || index->integer > 5) {
      return refuse(argument, "an argument needs an index from 0 to 5");
    }
    for (const Node* number : {value, second}) {
      if (number != nullptr && (number->type != Node::Type::integer || number->integer < 0)) {
        return refuse(*number, "expected a number, not negative");
      }
    }
    if (op == nullptr || op->type != Node::Type::text) return refuse(argument, "an argument needs an op");
    const auto at = static_cast<std::uint8_t>(index->integer);
    const std::uint64_t v = value != nullptr ? static_cast<std::uint64_t>(value->integer) : 0;
    const std::uint64_t w = second != nullptr ? static_cast<std::uint64_t>(second->integer) : 0;
    using Half = ArgumentTest::Half;
    using Kind = ArgumentTest::Kind;
    const auto low = [&](Kind kind, std::uint32_t want, std::uint32_t mask = 0xffffffff) {
      return ArgumentTest{at, Half::low, kind, mask, want};
    };
    const auto high = [&](Kind kind, std::uint32_t want, std::uint32_t mask = 0xffffffff) {
      return ArgumentTest{at, Half::high, kind, mask, want};
    };
    const auto atLeast = [&](std::uint64_t least) -> std::vector<Tests> {
      return {{high(Kind::at_least, highHalf(least) + 1)},
              {high(Kind::equal, highHalf(least)), low(Kind::at_least, lowHalf(least))}};
    };
    const auto below = [&](std::uint64_t bound) -> std::vector<Tests> {
      return {{high(Kind::below, highHalf(bound))},
              {high(Kind::equal, highHalf(bound)), low(Kind::below, lowHalf(bound))}};
    };
    if (op->text == "SCMP_CMP_EQ") {
      if (!allows && highHalf(v) == 0) return std::vector<Tests>{{low(Kind::equal, lowHalf(v))}};
      return std::vector<Tests>{{high(Kind::equal, highHalf(v)), low(Kind::equal, lowHalf(v))}};
    }
    if (op->text == "SCMP_CMP_NE") {
      if (allows && highHalf(v) == 0) return std::vector<Tests>{{low(Kind::unequal, lowHalf(v))}};
      return std::vector<Tests>{{high(Kind::unequal, highHalf(v))}, {low(Kind::unequal, lowHalf(v))}};
    }
    if (op->text == "SCMP_CMP_MASKED_EQ") {
      Tests tests;
      if (highHalf(v) != 0 || highHalf(w) != 0) tests.push_back(high(Kind::equal, highHalf(w), highHalf(v)));
      tests.push_back(low(Kind::equal, lowHalf(w), lowHalf(v)));
      return std::vector<Tests>{std::move(tests)};
    }
    // Values are below 2^63, so v + 1 cannot overflow.
    if (op->text == "SCMP_CMP_GE") return atLeast(v);
    if (op->text == "SCMP_CMP_GT") return atLeast(v + 1);
    if (op->text == "SCMP_CMP_LT") return below(v);
    if (op->text == "SCMP_CMP_LE") return below(v + 1);
    return refuse(*op, "the comparison \"" + printable(op->text) + "\" is not known");
  }

  /// The alternatives under which an entry applies; one without tests: always.
  Result<std::vector<Tests>> readArguments(const Node& entry, bool allows) const {
    const Node* arguments = entry.find("args");
    std::vector<Tests> all{{}};
    if (isEmpty(arguments)) return all;
    std::vector<std::vector<Tests>> comparisons;
    std::array<int, 6> uses{};
    for (const Node& argument : arguments->items) {
      auto comparison = readComparison(argument, allows);
      if (!comparison) return fail(comparison.error());
      ++uses[static_cast<std::size_t>(argument.find("index")->integer)];
      comparisons.push_back(std::move(*comparison));
    }
    // As in runc: several comparisons of one argument are alternatives, else all must hold.
    if (std::ranges::any_of(uses, [](int count) { return count > 1; })) {
      all.clear();
      for (const auto& comparison : comparisons) all.insert(all.end(), comparison.begin(), comparison.end());
      return all;
    }
    for (const auto& comparison : comparisons) {
      std::vector<Tests> next;
      for (const Tests& before : all) {
        for (const Tests& more : comparison) {
          Tests tests = before;
          tests.insert(tests.end(), more.begin(), more.end());
          next.push_back(std::move(tests));
        }
      }
      if (next.size() > kMaxAlternatives) return refuse(entry, "it compares too many arguments");
      all = std::move(next);
    }
    return all;
  }

  Result<void> addEntry(const Node& entry, OciProfile& profile) const {
    for (const auto& [key, node] : entry.members) {
      static constexpr std::array<std::string_view, 8> kKnown{"names", "name",    "action",   "errnoRet",
                                                              "args",  "comment", "includes", "excludes"};
      if (std::ranges::find(kKnown, key) == kKnown.end()) return refuse(node, "unknown key \"" + printable(key) + "\"");
    }
    const Node* action = entry.find("action");
    if (action == nullptr) return refuse(entry, "an entry of syscalls has no action");
    const auto judged = readAction(*action, entry.find("errnoRet"));
    if (!judged) return fail(judged.error());
    const auto alternatives = readArguments(entry, *judged == kAllow);
    if (!alternatives) return fail(alternatives.error());
    std::vector<std::string> names;
    if (const Node* one = entry.find("name"); one != nullptr && !one->text.empty()) names.push_back(one->text);
    if (const Node* list = entry.find("names")) {
      for (const Node& one : list->items) names.push_back(one.text);
    }
    if (names.empty()) return refuse(entry, "an entry of syscalls names no call");
    if (!applies(entry)) return {};
    for (const std::string& name : names) {
      OciCall& call = profile.calls[name];
      for (const Tests& tests : *alternatives) {
        if (*judged == kAllow) {
          call.allowed.push_back(tests);
        } else {
          call.denied.push_back({tests, *judged});
        }
      }
      if (call.allowed.size() + call.denied.size() > kMaxAlternatives) {
        return refuse(entry, "it has too many rules for \"" + printable(name) + "\"");
      }
    }
    return {};
  }

  std::string_view name_;
  const OciTarget& target_;
  std::string_view go_name_;
};

bool allows(Action action) { return action.kind == ActionKind::allow || action == kAnswer || action == kObserve; }

Tests together(const Tests& ours, const Tests& theirs) {
  Tests tests = ours;
  tests.insert(tests.end(), theirs.begin(), theirs.end());
  return tests;
}

/// Replaces "`action` if `tests` hold" by what the profile leaves of it.
void narrow(const OciCall* call, Action unlisted, const Tests& tests, Action action, std::vector<Branch>& out) {
  if (call == nullptr) {
    out.push_back({tests, allows(unlisted) ? action : unlisted});
    return;
  }
  for (const OciCall::Denial& denial : call->denied) out.push_back({together(tests, denial.tests), denial.action});
  for (const Tests& allowed : call->allowed) out.push_back({together(tests, allowed), action});
  out.push_back({tests, allows(unlisted) ? action : unlisted});
}

void narrowRule(const OciCall* call, Action unlisted, SyscallRule& rule) {
  std::vector<Branch> branches;
  for (const Branch& branch : rule.branches) {
    if (allows(branch.action)) {
      narrow(call, unlisted, branch.tests, branch.action, branches);
    } else {
      branches.push_back(branch);
    }
  }
  if (allows(rule.otherwise)) {
    narrow(call, unlisted, {}, rule.otherwise, branches);
    rule.otherwise = branches.back().action;
    branches.pop_back();
  }
  // A branch without tests decides: those after it are never reached.
  const auto last = std::ranges::find_if(branches, [](const Branch& one) { return one.tests.empty(); });
  if (last != branches.end()) {
    rule.otherwise = last->action;
    branches.erase(last, branches.end());
  }
  rule.branches = std::move(branches);
}

bool isUnconditional(const SyscallRule& rule) {
  return allows(rule.otherwise) &&
         std::ranges::all_of(rule.branches, [](const Branch& branch) { return allows(branch.action); });
}

}  // namespace

Result<void> applyOciProfile(std::string_view text, std::string_view name, const OciTarget& target,
                             SyscallFilter& filter) {
  const auto document = policy::readText(text, policy::Format::json, std::string(name));
  if (!document) return fail(document.error());
  const auto profile = OciReader(name, target, filter.architecture).read(document->root);
  if (!profile) return fail(profile.error());
  const std::string_view starts[] = {target.single_exec ? "execveat" : "execve", "exit_group", "write"};
  const auto narrowCall = [&](const syscall_table::Entry& entry) -> Result<void> {
    auto rule = std::ranges::find(filter.rules, entry.number, &SyscallRule::number);
    if (rule == filter.rules.end()) {
      if (!allows(filter.unlisted)) return {};
      rule = filter.rules.insert(rule, {entry.number, {}, filter.unlisted});
    }
    const auto found = profile->calls.find(entry.name);
    const OciCall* call = found != profile->calls.end() ? &found->second : nullptr;
    if (std::ranges::find(starts, entry.name) != std::end(starts)) {
      SyscallRule own{entry.number, {}, kAllow};
      narrowRule(call, profile->unlisted, own);
      if (isUnconditional(own)) return {};
      return fail(plainError(Stage::policy, "plan", policy::place(name, 0, kKey),
                             "it denies " + std::string(entry.name) + ", which starting the program needs",
                             "allow it in the profile; process.allow_exec = false denies further execs"));
    }
    narrowRule(call, profile->unlisted, *rule);
    return {};
  };
  for (const syscall_table::Entry& entry : syscall_table::byName(filter.architecture)) {
    if (auto done = narrowCall(entry); !done) return done;
  }
  if (allows(filter.unlisted) && !allows(profile->unlisted)) filter.unlisted = rules::kUnlisted;
  return {};
}

}  // namespace caisson::plan
