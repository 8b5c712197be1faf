#include "policy/decode/widening.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "policy/decode/syntax.h"
#include "policy/limits.h"
#include "policy/rules/severity.h"
#include "policy/units.h"

namespace caisson::policy {

namespace {

/// A limit as a number; unset is the widest.
double limitOf(const Field& field, const Policy& policy) {
  // Unset, threads count as processes; set, they come on top.
  if (field.key == "resources.threads")
    return static_cast<double>(policy.process.max_processes + policy.resources.threads.value_or(0));
  if (field.ceiling == Ceiling::wall) return effectiveWallSeconds(policy);
  if (field.ceiling == Ceiling::output) return static_cast<double>(effectiveOutput(policy));
  const Value value = field.get(policy);
  // A share counts as more than every size: only a host can compare the two.
  if (const auto* count = std::get_if<std::uint64_t>(&value))
    return isShare(*count) ? static_cast<double>(kMaxQuantity) * static_cast<double>(1 + percentOf(*count))
                           : static_cast<double>(*count);
  if (const auto* number = std::get_if<double>(&value)) return *number;
  return HUGE_VAL;
}

/// Whether `values` has an element that `base` lacks.
bool hasMore(const std::vector<std::string>& base, const std::vector<std::string>& values) {
  const std::set<std::string> known(base.begin(), base.end());
  return std::ranges::any_of(values, [&](const std::string& value) { return !known.contains(value); });
}

bool hasMore(const std::vector<Tmpfs>& base, const std::vector<Tmpfs>& mounts) {
  return std::ranges::any_of(mounts, [&](const Tmpfs& mount) {
    const auto before = std::ranges::find_if(
        base, [&](const Tmpfs& other) { return normalPath(other.path) == normalPath(mount.path); });
    return before == base.end() || mount.size > before->size || mount.inodes > before->inodes ||
           (mount.exec && !before->exec) || (mount.access != before->access && before->access != TmpfsAccess::rw) ||
           (mount.cache != before->cache && !mount.cache.empty()) ||
           (mount.store != before->store && before->store == DirectoryStore::memory);
  });
}

bool hasMore(const std::vector<Credential>& base, const std::vector<Credential>& credentials) {
  return std::ranges::any_of(credentials,
                             [&](const Credential& one) { return std::ranges::find(base, one) == base.end(); });
}

/// Whether the list `after` has an element that `before` lacks. An unset list means "any".
bool addsTo(const Value& before, const Value& after) {
  if (std::holds_alternative<std::monostate>(before)) return false;
  if (std::holds_alternative<std::monostate>(after)) return true;
  if (const auto* texts = std::get_if<std::vector<std::string>>(&after)) {
    return hasMore(std::get<std::vector<std::string>>(before), *texts);
  }
  if (const auto* mounts = std::get_if<std::vector<Tmpfs>>(&after)) {
    return hasMore(std::get<std::vector<Tmpfs>>(before), *mounts);
  }
  if (const auto* credentials = std::get_if<std::vector<Credential>>(&after)) {
    return hasMore(std::get<std::vector<Credential>>(before), *credentials);
  }
  if (const auto* cpus = std::get_if<std::vector<std::uint64_t>>(&after)) {
    const auto& base = std::get<std::vector<std::uint64_t>>(before);  // empty: any CPU
    if (base.empty() || cpus->empty()) return cpus->empty() && !base.empty();
    return std::ranges::any_of(*cpus, [&](std::uint64_t cpu) { return std::ranges::find(base, cpu) == base.end(); });
  }
  return before != after;
}

int rankOf(const Field& field, const Value& value) {
  const auto* name = std::get_if<std::string>(&value);
  for (std::size_t index = 0; name != nullptr && index < field.choices.size(); ++index) {
    if (field.choices[index] == *name) return field.ranks[index];
  }
  return 0;
}

/// Whether the list of calls allows more. It has opposite meanings in the two modes; compared with the built-in list,
/// or in another mode, any change counts as wider.
bool widensSyscalls(const Policy& base, const Policy& policy) {
  const auto& before = base.syscalls.names;
  const auto& after = policy.syscalls.names;
  if (before == after && base.syscalls.mode == policy.syscalls.mode) return false;
  if (!before || !after || base.syscalls.mode != policy.syscalls.mode) return true;
  return policy.syscalls.mode == SyscallMode::allowlist ? hasMore(*before, *after) : hasMore(*after, *before);
}

}  // namespace

bool isWider(const Field& field, const Policy& base, const Policy& policy) {
  const Value before = field.get(base);
  const Value after = field.get(policy);
  switch (field.widens) {
    case Widens::never: return false;
    case Widens::more: return limitOf(field, policy) > limitOf(field, base);
    case Widens::less: return limitOf(field, policy) < limitOf(field, base);
    case Widens::on: return before != after && after == Value(true);
    case Widens::off: return before != after && after == Value(false);
    case Widens::added: return addsTo(before, after);
    case Widens::removed:
      if (field.key == "syscalls.critical") return loosens(base.syscalls, policy.syscalls, Severity::critical);
      if (field.key == "syscalls.high") return loosens(base.syscalls, policy.syscalls, Severity::high);
      return addsTo(after, before);
    case Widens::rank: return rankOf(field, after) > rankOf(field, before);
    case Widens::changed: return field.key == "syscalls.names" ? widensSyscalls(base, policy) : before != after;
  }
  return true;
}

std::vector<Widening> wideningsOver(const Policy& base, const Policy& policy) {
  std::vector<Widening> widenings;
  for (const Field& field : fields()) {
    if (!isWider(field, base, policy)) continue;
    widenings.push_back({std::string(field.key), display(field, field.get(base)), display(field, field.get(policy))});
  }
  return widenings;
}

void recordWidenings(const Policy& base, Policy& policy) {
  for (Widening& widening : wideningsOver(base, policy)) {
    const auto known = std::ranges::find(policy.widenings, widening.key, &Widening::key);
    if (known == policy.widenings.end()) {
      policy.widenings.push_back(std::move(widening));
    } else {
      known->to = std::move(widening.to);
    }
  }
}

}  // namespace caisson::policy
