#include "session/plan_codec.h"

#include <concepts>
#include <cstring>
#include <type_traits>

namespace caisson::session {
namespace {

template <class T>
concept Plain = std::is_arithmetic_v<T> || std::is_enum_v<T>;

class Writer {
 public:
  template <class... T>
  void operator()(const T&... values) {
    (value(values), ...);
  }
  std::string take() { return std::move(bytes_); }

 private:
  template <Plain T>
  void value(const T& plain) {
    bytes_.append(reinterpret_cast<const char*>(&plain), sizeof(plain));
  }
  void value(std::string_view text) {
    value(std::uint64_t{text.size()});
    bytes_ += text;
  }
  void value(const std::string& text) { value(std::string_view(text)); }
  template <class T>
  void value(const std::vector<T>& list) {
    value(std::uint64_t{list.size()});
    for (const T& one : list) value(one);
  }
  template <class T>
  void value(const std::map<std::string, T>& map) {
    value(std::uint64_t{map.size()});
    for (const auto& [name, one] : map) (*this)(name, one);
  }
  template <class T>
  void value(const std::optional<T>& maybe) {
    value(maybe.has_value());
    if (maybe) value(*maybe);
  }
  template <class T>
    requires(std::is_class_v<T>)
  void value(const T& whole) {
    fields(*this, whole);
  }

  std::string bytes_;
};

/// Reads what Writer wrote. Whatever the bytes are: nothing is read behind their end, and no more is allocated than
/// they are long.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  template <class... T>
  void operator()(T&... values) {
    (value(values), ...);
  }
  /// Whether everything was there, and nothing more.
  [[nodiscard]] bool complete() const { return good_ && rest_.empty(); }

 private:
  template <Plain T>
  void value(T& plain) {
    const std::string_view bytes = piece(sizeof(T));
    if (bytes.empty()) return;
    if constexpr (std::is_same_v<T, bool>) {
      plain = bytes[0] != 0;
    } else {
      std::memcpy(&plain, bytes.data(), sizeof(T));
    }
  }
  void value(std::string& text) { text = this->text(); }
  template <class T>
  void value(std::vector<T>& list) {
    for (std::uint64_t left = count(); left > 0 && good_; --left) value(list.emplace_back());
  }
  template <class T>
  void value(std::map<std::string, T>& map) {
    for (std::uint64_t left = count(); left > 0 && good_; --left) {
      std::string name;
      value(name);
      value(map[name]);
    }
  }
  template <class T>
  void value(std::optional<T>& maybe) {
    bool there = false;
    value(there);
    if (there) value(maybe.emplace());
  }
  template <class T>
    requires(std::is_class_v<T>)
  void value(T& whole) {
    fields(*this, whole);
  }

  std::string_view piece(std::uint64_t bytes) {
    good_ = good_ && bytes <= rest_.size();
    const std::string_view found = rest_.substr(0, good_ ? bytes : 0);
    rest_.remove_prefix(found.size());
    return found;
  }
  std::uint64_t count() {
    std::uint64_t count = 0;
    value(count);
    good_ = good_ && count <= rest_.size();  // each takes a byte at least
    return good_ ? count : 0;
  }
  std::string_view text() { return piece(count()); }

  std::string_view rest_;
  bool good_ = true;
};

// Each names every member of its type: one that is added later does not go unnoticed, it does not compile.

template <class A, class T>
  requires std::is_same_v<std::remove_const_t<T>, plan::Namespaces>
void fields(A& archive, T& namespaces) {
  auto& [user, pid, mount, network, ipc, uts, cgroup, time] = namespaces;
  archive(user, pid, mount, network, ipc, uts, cgroup, time);
}

template <class A, class T>
  requires std::is_same_v<std::remove_const_t<T>, plan::Identity>
void fields(A& archive, T& identity) {
  auto& [inside_uid, outside_uid, inside_gid, outside_gid, parent_writes_maps, change_user] = identity;
  archive(inside_uid, outside_uid, inside_gid, outside_gid, parent_writes_maps, change_user);
}

template <class A, class T>
  requires std::is_same_v<std::remove_const_t<T>, plan::Hardening>
void fields(A& archive, T& hardening) {
  auto& [hide_init, close_descriptors, new_session, new_keyring, hide_processes, guard_links, report] = hardening;
  archive(hide_init, close_descriptors, new_session, new_keyring, hide_processes, guard_links, report);
}

template <class A, class T>
  requires std::is_same_v<std::remove_const_t<T>, plan::Landlock>
void fields(A& archive, T& landlock) {
  auto& [abi, handled_fs, handled_net, scoped, rules] = landlock;
  (void)rules;  // pid 1 is in the domain already
  archive(abi, handled_fs, handled_net, scoped);
}

template <class A, class T>
  requires std::is_same_v<std::remove_const_t<T>, plan::ResourceLimit>
void fields(A& archive, T& limit) {
  auto& [name, resource, value] = limit;
  archive(name, resource, value);
}

template <class A, class T>
  requires std::is_same_v<std::remove_const_t<T>, plan::DiskQuota>
void fields(A& archive, T& quota) {
  auto& [trees, upper, bytes, inodes] = quota;
  archive(trees, upper, bytes, inodes);
}

template <class A, class T>
  requires std::is_same_v<std::remove_const_t<T>, policy::Syscalls>
void fields(A& archive, T& calls) {
  auto& [mode, names, allow, oci_profile, critical, high, high_limit, high_window_seconds] = calls;
  archive(mode, names, allow, oci_profile, critical, high, high_limit, high_window_seconds);
}

template <class A, class T>
  requires std::is_same_v<std::remove_const_t<T>, policy::Environment>
void fields(A& archive, T& environment) {
  auto& [mode, pass, set] = environment;
  archive(mode, pass, set);
}

template <class A, class T>
  requires std::is_same_v<std::remove_const_t<T>, plan::Plan>
void fields(A& archive, T& plan) {
  auto& [level, tier, namespaces, identity, hardening, hostname, own_root, host_view, loopback, egress,
         require_time_namespace, steps, landlock, syscalls, builtin_syscalls, severities, rlimits, cgroup, memory_bytes,
         max_processes, disk, max_file_size, cpu_affinity, cpu_count, affinity_required, drop_capabilities,
         no_new_privileges, self_test, single_exec, no_fork, command, environment, working_directory, apparmor_profile,
         wall_seconds, cpu_seconds, output_bytes, time_quantum_seconds, workspace_shown, workspace_overlay,
         masked_secrets, layers, warnings, notices] = plan;
  archive(level, tier, namespaces, identity, hardening, hostname, own_root, host_view, loopback);
  (void)egress, (void)syscalls;  // a plan with these is not kept
  (void)steps, (void)cgroup;     // the sandbox stands, in its cgroup
  (void)command, (void)environment;
  archive(require_time_namespace, landlock, builtin_syscalls, severities, rlimits, memory_bytes, max_processes, disk);
  archive(max_file_size, cpu_affinity, cpu_count, affinity_required, drop_capabilities, no_new_privileges, self_test);
  archive(single_exec, no_fork, working_directory, apparmor_profile, wall_seconds, cpu_seconds, output_bytes);
  archive(time_quantum_seconds, workspace_shown, workspace_overlay, masked_secrets, layers, warnings, notices);
}

}  // namespace

std::string encodePlan(const CommonPlan& common) {
  Writer writer;
  writer(common.name, common.policy.environment, common.policy.commands.max_length, common.policy.audit.enabled);
  writer(common.plan);
  return writer.take();
}

std::optional<CommonPlan> decodePlan(std::string_view bytes) {
  Reader reader(bytes);
  CommonPlan common;
  reader(common.name, common.policy.environment, common.policy.commands.max_length, common.policy.audit.enabled);
  reader(common.plan);
  if (!reader.complete()) return std::nullopt;
  return common;
}

}  // namespace caisson::session
