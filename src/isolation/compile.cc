#include "isolation/compile.h"

#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <new>
#include <utility>

#include "isolation/netlink.h"
#include "plan/syscalls.h"
#include "sys/raw_syscall.h"

namespace caisson::isolation {
namespace {

constexpr std::size_t kStack = 64 * 1024;
constexpr std::size_t kSlotBytes = 64ULL << 20;
constexpr std::size_t kPage = 4096;
constexpr std::uint64_t kFewProcesses = 64;
static_assert(sizeof(FlatStep) % alignof(FlatStep) == 0);

/// Hands out pieces of one mapping. Sized once, generously, from the plan; the pages that are not used cost nothing.
class Arena {
 public:
  Arena(char* begin, char* end) : at_(begin), end_(end) {}

  template <class T>
  T* array(std::size_t count) {
    const auto misfit = reinterpret_cast<std::uintptr_t>(at_) % alignof(T);
    if (misfit != 0) at_ += alignof(T) - misfit;
    if (at_ + sizeof(T) * count > end_) std::abort();  // the sizing below is wrong
    T* result = new (at_) T[count]();
    at_ += sizeof(T) * count;
    return result;
  }
  const char* text(std::string_view value) {
    char* copy = array<char>(value.size() + 1);
    std::copy(value.begin(), value.end(), copy);
    return copy;
  }
  const char* const* texts(const std::vector<std::string>& values) {
    const char** list = array<const char*>(values.size() + 1);
    for (std::size_t i = 0; i < values.size(); ++i) list[i] = text(values[i]);
    return list;
  }
  /// Of what was given out.
  [[nodiscard]] char* end() const { return at_; }

 private:
  char* at_;
  char* end_;
};

std::size_t textBytes(const std::vector<std::string>& values) {
  std::size_t bytes = 16;
  for (const std::string& value : values) bytes += value.size() + 1 + sizeof(char*);
  return bytes;
}

constexpr std::size_t kMarkedBytes = 64;  // what a value in place of its mark adds at most

std::size_t stepBytes(const plan::Step& step) {
  std::size_t bytes = sizeof(FlatStep) + 128;
  if (const auto* file = std::get_if<plan::MakeFile>(&step)) bytes += file->content.size();
  if (const auto* file = std::get_if<plan::CoverFile>(&step)) bytes += file->content.size() + kMarkedBytes;
  if (const auto* proc = std::get_if<plan::MountProc>(&step)) bytes += textBytes(proc->shown);
  if (const auto* overlay = std::get_if<plan::MountOverlay>(&step)) {
    for (const plan::ReplacedFile& file : overlay->replaced) {
      bytes += file.path.size() + file.content.size() + 2 * sizeof(char*) + 2;
    }
    bytes += textBytes(overlay->whiteouts) + 2 * textBytes(overlay->frozen) + 8 * overlay->upper.size();
  }
  std::visit(
      [&](const auto& s) {
        if constexpr (requires { s.target; }) bytes += s.target.size();
        if constexpr (requires { s.source; }) bytes += s.source.size();
        if constexpr (requires { s.lower; }) bytes += s.lower.size();
        if constexpr (requires { s.to; }) bytes += s.to.size();
      },
      step);
  return bytes;
}

/// Programs named without a slash are looked for in these directories, as a shell does with PATH.
std::vector<std::string> candidates(const plan::Plan& plan) {
  if (plan.command.empty()) return {};  // a session's sandbox: its commands come later, each with a block
  const std::string& program = plan.command.front();
  if (program.find('/') != std::string::npos) return {program};
  std::string path = "/usr/bin:/bin";
  for (const std::string& variable : plan.environment) {
    if (variable.starts_with("PATH=")) path = variable.substr(5);
  }
  std::vector<std::string> result;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    if (end > begin) result.push_back(path.substr(begin, end - begin) + "/" + program);
    begin = end + 1;
  }
  return result;
}

const char* relative(Arena& arena, const std::string& path) {
  std::size_t begin = 0;
  while (begin < path.size() && path[begin] == '/') ++begin;
  return arena.text(std::string_view(path).substr(begin));
}

}  // namespace

std::string lowerNames(const plan::MountOverlay& step) {
  std::string names;
  for (const std::string& name : step.frozen) names += name + ":";
  // A session may have to hide more while it lives.
  const bool mask = !step.whiteouts.empty() || !step.replaced.empty() || !step.upper.empty() || step.read_only;
  return names + (mask ? "mask:lower" : "lower");
}

namespace {

/// Random, in the form of a UUID of version 4.
std::string randomId() {
  std::uint8_t bytes[16] = {};
  if (::getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes)) return "00000000-0000-4000-8000-000000000000";
  bytes[6] = static_cast<std::uint8_t>((bytes[6] & 0x0fU) | 0x40U);
  bytes[8] = static_cast<std::uint8_t>((bytes[8] & 0x3fU) | 0x80U);
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (std::size_t at = 0; at < sizeof(bytes); ++at) {
    if (at == 4 || at == 6 || at == 8 || at == 10) text += '-';
    text += kDigits[bytes[at] >> 4U];
    text += kDigits[bytes[at] & 0xfU];
  }
  return text;
}

std::string withLaunchValues(std::string content, bool own_time) {
  const auto fill = [&](std::string_view mark, auto value) {
    const std::size_t at = content.find(mark);
    if (at != std::string::npos) content.replace(at, mark.size(), value());
  };
  // A sandbox with clocks that begin with it was booted a minute ago: `ps` subtracts start times from the uptime.
  timespec now{}, since_boot{.tv_sec = 60, .tv_nsec = 0};
  ::clock_gettime(CLOCK_REALTIME, &now);
  if (!own_time) ::clock_gettime(CLOCK_BOOTTIME, &since_boot);
  fill(plan::kBootTimeMark, [&] { return std::to_string(now.tv_sec - since_boot.tv_sec); });
  fill(plan::kUptimeMark, [&] { return std::to_string(since_boot.tv_sec); });
  fill(plan::kRandomIdMark, randomId);
  return content;
}

struct Flatten {
  Arena& arena;
  FlatStep& out;
  bool ours;  // every directory up to the first path a person named is one that we made
  bool own_time;

  void operator()(const plan::MakeDirectory& step) {
    out.kind = StepKind::make_directory;
    out.target = relative(arena, step.target);
    out.mode = step.mode;
  }
  void operator()(const plan::MakeSymlink& step) {
    out.kind = StepKind::make_symlink;
    out.target = relative(arena, step.target);
    out.source = arena.text(step.to);
  }
  void operator()(const plan::MakeFile& step) {
    out.kind = StepKind::make_file;
    out.target = relative(arena, step.target);
    out.source = arena.text(step.content);
    out.length = static_cast<std::uint32_t>(step.content.size());
    out.mode = step.mode;
  }
  void operator()(const plan::Bind& step) {
    out.kind = StepKind::bind;
    out.source = arena.text(step.source);
    out.target = relative(arena, step.target);
    out.flags = (step.writable ? kWritable : 0U) | (step.executable ? kExecutable : 0U) |
                (step.devices ? kDevices : 0U) | (step.optional ? kOptional : 0U) | (step.inside ? kInside : 0U) |
                (step.canonical ? kCanonical : 0U) | (step.type == plan::SourceType::directory ? kDirectory : 0U) |
                (step.type == plan::SourceType::file ? kFile : 0U) | (step.canonical || !ours ? 0U : kOurs);
  }
  void operator()(const plan::MountTmpfs& step) {
    out.kind = StepKind::tmpfs;
    out.target = relative(arena, step.target);
    out.size_text = arena.text(std::to_string(step.bytes));
    out.inode_text = arena.text(std::to_string(step.inodes));
    out.mode = step.mode;
    out.flags = (step.executable ? kExecutable : 0U) | (ours ? kOurs : 0U) | (step.optional ? kOptional : 0U);
  }
  void operator()(const plan::MountProc& step) {
    out.flags = (ours ? kOurs : 0U) | (step.mask ? kMaskOthers : 0U);
    out.kind = StepKind::proc;
    out.target = relative(arena, step.target);
    out.names = arena.texts(step.shown);
  }
  void operator()(const plan::CoverFile& step) {
    const std::string content = withLaunchValues(step.content, own_time);
    out.kind = StepKind::cover_file;
    out.flags = ours ? kOurs : 0U;
    out.target = relative(arena, step.target);
    out.source = arena.text(content);
    out.length = static_cast<std::uint32_t>(content.size());
  }
  void operator()(const plan::MountDevpts& step) {
    out.flags = ours ? kOurs : 0U;
    out.kind = StepKind::devpts;
    out.target = relative(arena, step.target);
    if (step.most > 0) out.size_text = arena.text(std::to_string(step.most));
  }
  void operator()(const plan::MountOverlay& step) {
    out.kind = StepKind::overlay;
    out.source = arena.text(step.lower);
    out.target = relative(arena, step.target);
    out.names = arena.texts(step.whiteouts);
    std::vector<std::string> replaced;
    for (const plan::ReplacedFile& file : step.replaced) {
      replaced.push_back(file.path);
      replaced.push_back(file.content);
    }
    out.replaced = arena.texts(replaced);
    out.size_text = arena.text(std::to_string(step.bytes));
    out.inode_text = arena.text(std::to_string(step.inodes));
    const bool kept = !step.upper.empty();
    out.flags = (step.executable ? kExecutable : 0U) | (step.on_disk ? kOnDisk : 0U) | (kept ? kKept : 0U) |
                (step.read_only ? kReadOnlyOverlay : 0U);
    out.upper_name = arena.text(kept ? step.upper : "upper");
    out.work_name = arena.text(kept ? step.upper + ".work" : "work");
    out.lower_names = arena.text(lowerNames(step));
  }
  void operator()(const plan::MaskPath& step) {
    out.kind = StepKind::mask;
    out.target = relative(arena, step.target);
    if (step.absent == plan::MaskPath::Absent::refuse) out.flags = kAbsentRefuse;
    if (step.absent == plan::MaskPath::Absent::create) out.flags = kAbsentCreate;
    if (step.refuse_links) out.flags |= kRefuseLinks;
  }
  void operator()(const plan::SetKernelQuota& step) {
    out.kind = StepKind::kernel_quota;
    out.source = arena.text(step.name);
    out.target = "";
    out.size_text = arena.text(std::to_string(step.value));
  }
  void operator()(const plan::ReadOnlyRoot&) { out.kind = StepKind::read_only_root; }
};

/// Every permitted port, for a kernel that has no packet filter to capture all of them.
std::vector<std::uint16_t> permittedPorts(const plan::EgressPlan& egress) {
  std::vector<std::uint16_t> ports;
  for (const auto& [first, last] : egress.ports) {
    for (std::uint32_t port = first; port <= last && ports.size() <= kMaxEgressPorts; ++port) {
      const bool taken = port == kProxyPort || port == kDnsPort;
      const auto found = std::find(ports.begin(), ports.end(), port);
      if (!taken && found == ports.end()) ports.push_back(static_cast<std::uint16_t>(port));
    }
  }
  return ports;
}

constexpr std::size_t kEgressBytes = 16 * 1024;

void flattenEgress(const plan::Plan& plan, Arena& arena, Block& block) {
  block.egress.link = -1;
  if (!plan.egress) return;
  FlatEgress& out = block.egress;
  const auto keep = [&](const NetlinkBatch& batch) {
    std::uint8_t* copy = arena.array<std::uint8_t>(batch.bytes.size());
    std::copy(batch.bytes.begin(), batch.bytes.end(), copy);
    return FlatBatch{copy, static_cast<std::uint32_t>(batch.bytes.size()), batch.acknowledged};
  };
  out.on = true;
  out.use_filter = plan.egress->use_packet_filter;
  out.route4 = keep(localRoute(false));
  out.route6 = keep(localRoute(true));
  out.filter = keep(packetFilter());
  out.log = keep(packetLog());
  out.rules4 = keep(refusingRules(false));
  out.rules6 = keep(refusingRules(true));
  const std::vector<std::uint16_t> ports = permittedPorts(*plan.egress);
  out.too_many_ports = ports.size() > kMaxEgressPorts;
  out.port_count = static_cast<std::uint32_t>(std::min(ports.size(), kMaxEgressPorts));
  std::uint16_t* copy = arena.array<std::uint16_t>(out.port_count);
  std::copy_n(ports.begin(), out.port_count, copy);
  out.ports = copy;
  out.proxy_port = kProxyPort;
  out.capture_port = kCapturePort;
  out.dns_port = kDnsPort;
}

/// Puts a fresh secret into the rule that recognises the payload's one permitted exec.
Result<void> drawExecToken(plan::SyscallFilter& filter, Block& block) {
  std::uint32_t token[2];
  if (::getrandom(token, sizeof(token), 0) != sizeof(token))
    return fail(sysError(Stage::seccomp, "getrandom", "", errno));
  block.exec_token_first = token[0];
  block.exec_token_second = token[1];
  for (plan::SyscallRule& rule : filter.rules) {
    if (rule.number != SYS_execveat) continue;
    for (plan::Branch& branch : rule.branches) {
      for (plan::ArgumentTest& test : branch.tests) {
        if (test.half == plan::ArgumentTest::Half::high) test.want = test.argument == 0 ? token[0] : token[1];
      }
    }
  }
  return {};
}

/// Private memory where another process has room as well: far from where programs, heaps and mappings usually lie.
/// Several places, since sanitizers and small address spaces take some of them.
void* reserveShared(std::size_t bytes) {
  constexpr std::uintptr_t kPlaces[] = {0x3000000000, 0x200000000000, 0x480000000000, 0x600000000000};
  constexpr int kFixedNoReplace = 0x100000;
  if (bytes > kSlotBytes) return MAP_FAILED;
  for (const std::uintptr_t place : kPlaces) {
    for (std::uintptr_t slot = 0; slot < 8; ++slot) {
      auto* wanted = reinterpret_cast<void*>(place + slot * kSlotBytes);
      constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | kFixedNoReplace;
      void* got = ::mmap(wanted, bytes, PROT_READ | PROT_WRITE, kFlags, -1, 0);
      if (got == wanted) return got;
      if (got != MAP_FAILED) ::munmap(got, bytes);
    }
  }
  return MAP_FAILED;
}

/// What is known of a block before there is memory for it.
struct Prepared {
  std::vector<sock_filter> adapted;
  std::span<const sock_filter> program;
  Block facts{};
  std::vector<std::string> programs;
  std::size_t bytes = 0;  ///< without stacks
};

Result<Prepared> prepare(const plan::Plan& plan) {
  Prepared prepared;
  if (plan.builtin_syscalls) {
    prepared.program = plan::builtinProgram();
  } else if (plan.syscalls) {
    plan::SyscallFilter filter = *plan.syscalls;
    if (plan.single_exec) {
      if (auto drawn = drawExecToken(filter, prepared.facts); !drawn) return fail(drawn.error());
    }
    auto compiled = plan::compile(filter);
    if (!compiled) return fail(compiled.error());
    prepared.adapted = std::move(*compiled);
    prepared.program = prepared.adapted;
  }
  prepared.programs = candidates(plan);
  std::size_t bytes = sizeof(Block) + 4 * kPage + prepared.program.size() * sizeof(sock_filter) +
                      textBytes(plan.command) + textBytes(plan.environment) + textBytes(prepared.programs) +
                      plan.rlimits.size() * sizeof(FlatLimit);
  for (const plan::Step& step : plan.steps) bytes += stepBytes(step);
  if (plan.egress) bytes += kEgressBytes;
  for (const plan::LandlockRule& rule : plan.landlock.rules) bytes += sizeof(FlatRule) + rule.path.size() + 8;
  prepared.bytes = bytes;
  return prepared;
}

/// Fills `block` and the memory behind it, which ends before `end`. Returns the end of what was used.
char* fill(Block* block, char* end, const plan::Plan& plan, const Prepared& prepared) {
  Arena arena(reinterpret_cast<char*>(block) + sizeof(Block), end);
  block->own_user_namespace = plan.namespaces.user;
  block->own_mounts = plan.namespaces.mount;
  block->own_root = plan.own_root;
  block->own_network = plan.namespaces.network;
  block->own_uts = plan.namespaces.uts;
  block->own_cgroup_namespace = plan.namespaces.cgroup;
  block->own_time = plan.namespaces.time;
  block->require_time = plan.require_time_namespace;
  block->loopback = plan.loopback;
  block->subreaper = !plan.namespaces.pid;
  block->parent_writes_maps = plan.namespaces.user && (plan.identity.parent_writes_maps || plan.identity.subordinate());
  block->change_user = plan.identity.change_user || plan.identity.subordinate();
  block->inside_uid = plan.namespaces.user ? plan.identity.inside_uid : plan.identity.outside_uid;
  block->inside_gid = plan.namespaces.user ? plan.identity.inside_gid : plan.identity.outside_gid;
  block->uid_map =
      arena.text(std::to_string(plan.identity.inside_uid) + " " + std::to_string(plan.identity.outside_uid) + " 1");
  block->gid_map =
      arena.text(std::to_string(plan.identity.inside_gid) + " " + std::to_string(plan.identity.outside_gid) + " 1");
  block->hostname = arena.text(plan.hostname);
  block->children_path = arena.text("/proc/thread-self/children");

  block->hide_init = plan.hardening.hide_init;
  block->close_descriptors = plan.hardening.close_descriptors;
  block->new_session = plan.hardening.new_session;
  block->new_keyring = plan.hardening.new_keyring;
  block->hide_processes = plan.hardening.hide_processes;
  block->guard_links = plan.hardening.guard_links;

  FlatStep* steps = arena.array<FlatStep>(plan.steps.size());
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    steps[i].mount_fd = -1;
    std::visit(Flatten{arena, steps[i], plan.own_root && !plan.host_view, plan.namespaces.time}, plan.steps[i]);
  }
  block->steps = steps;
  block->step_count = static_cast<std::uint32_t>(plan.steps.size());

  block->landlock_abi = plan.landlock.abi;
  block->handled_fs = plan.landlock.handled_fs;
  block->handled_net = plan.landlock.handled_net;
  block->scoped = plan.landlock.scoped;
  FlatRule* rules = arena.array<FlatRule>(plan.landlock.rules.size());
  for (std::size_t i = 0; i < plan.landlock.rules.size(); ++i) {
    const plan::LandlockRule& rule = plan.landlock.rules[i];
    rules[i] = {arena.text(rule.path), rule.access, rule.optional};
  }
  block->rules = rules;
  block->rule_count = static_cast<std::uint32_t>(plan.landlock.rules.size());

  FlatLimit* limits = arena.array<FlatLimit>(plan.rlimits.size());
  for (std::size_t i = 0; i < plan.rlimits.size(); ++i) limits[i] = {plan.rlimits[i].resource, plan.rlimits[i].value};
  block->limits = limits;
  block->limit_count = static_cast<std::uint32_t>(plan.rlimits.size());
  block->raise_descriptor_limit =
      std::ranges::any_of(plan.rlimits, [](const plan::ResourceLimit& one) { return one.resource == RLIMIT_NOFILE; });
  block->few_processes = plan.max_processes > 0 && plan.max_processes < kFewProcesses;
  if (!plan.cpu_affinity.empty()) {
    std::uint8_t* mask = arena.array<std::uint8_t>(kAffinityBytes);
    for (const std::uint32_t cpu : plan.cpu_affinity) {
      if (cpu < kAffinityBytes * 8) mask[cpu / 8] = static_cast<std::uint8_t>(mask[cpu / 8] | (1U << (cpu % 8)));
    }
    block->affinity = mask;
    block->affinity_bytes = kAffinityBytes;
    block->affinity_required = plan.affinity_required;
    block->affinity_count = plan.cpu_count;
  }

  block->no_new_privileges = plan.no_new_privileges;
  block->drop_capabilities = plan.drop_capabilities;
  block->self_test = plan.self_test;
  block->network_none = plan.namespaces.network && !plan.egress;
  block->landlock_is_the_wall = plan.landlock.abi > 0 && (plan.host_view || !plan.own_root);
  block->single_exec = plan.single_exec && plan.syscalls.has_value();
  if (const auto program = prepared.program; !program.empty()) {
    sock_filter* code = arena.array<sock_filter>(program.size());
    std::memcpy(code, program.data(), program.size() * sizeof(sock_filter));
    block->filter = {static_cast<unsigned short>(program.size()), code};
    block->has_filter = true;
    block->listen = plan.hardening.report_violations;
  }
  block->exec.argv = arena.texts(plan.command);
  block->exec.envp = arena.texts(plan.environment);
  block->exec.candidates = arena.texts(prepared.programs);
  block->exec.working_directory = arena.text(plan.working_directory);
  block->exec.apparmor_profile = plan.apparmor_profile.empty() ? nullptr : arena.text("exec " + plan.apparmor_profile);
  flattenEgress(plan, arena, *block);
  block->control = -1;
  block->store_mount = -1;
  block->init_program.program = -1;
  return arena.end();
}

std::size_t roundedToPages(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

}  // namespace

BlockMapping::BlockMapping(BlockMapping&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}

BlockMapping::~BlockMapping() {
  if (block_ != nullptr) ::munmap(block_, block_->mapping_bytes);
}

Result<BlockMapping> BlockMapping::compile(const plan::Plan& plan) {
  auto prepared = prepare(plan);
  if (!prepared) return fail(prepared.error());
  const std::size_t bytes = roundedToPages(prepared->bytes + 2 * kStack);
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return fail(sysError(Stage::launch, "mmap", "launch block", errno));
  auto* block = new (memory) Block(prepared->facts);
  BlockMapping mapping(block);
  block->mapping_bytes = bytes;
  char* end = static_cast<char*>(memory) + bytes;
  block->init_stack_top = end;
  block->payload_stack_top = end - kStack;
  fill(block, end - 2 * kStack, plan, *prepared);
  return mapping;
}

BlockSpace::~BlockSpace() {
  for (const Area& area : areas_) {
    if (area.memory != nullptr) ::munmap(area.memory, area.bytes);
  }
}

Result<BlockFile> BlockSpace::compile(const plan::Plan& plan, const std::function<void(Block&)>& adjust) {
  auto prepared = prepare(plan);
  if (!prepared) return fail(prepared.error());
  const std::size_t bytes = roundedToPages(prepared->bytes);
  Area& area = areas_[next_++ % std::size(areas_)];
  if (area.bytes < bytes) {
    if (area.memory != nullptr) ::munmap(std::exchange(area.memory, nullptr), std::exchange(area.bytes, 0));
    void* memory = reserveShared(bytes);
    if (memory == MAP_FAILED) return fail(sysError(Stage::launch, "mmap", "block of a command", errno));
    area = {memory, bytes};
  }
  auto* block = new (area.memory) Block(prepared->facts);
  block->mapping_bytes = bytes;
  const char* begin = static_cast<const char*>(area.memory);
  const char* end = fill(block, static_cast<char*>(area.memory) + bytes, plan, *prepared);
  if (adjust) adjust(*block);
  // Written and not mapped: to unmap memory costs more than to copy these few pages.
  BlockFile made{sys::Fd(::memfd_create("caisson-block", MFD_CLOEXEC)), reinterpret_cast<std::uint64_t>(block), bytes};
  const auto used = static_cast<std::size_t>(end - begin);
  if (!made.file || ::write(made.file.get(), begin, used) != static_cast<ssize_t>(used) ||
      ::ftruncate(made.file.get(), static_cast<off_t>(bytes)) != 0) {
    return fail(sysError(Stage::launch, "memfd", "block of a command", errno));
  }
  return made;
}

}  // namespace caisson::isolation
