// Steps of the sandbox's tree as flat data.
#include <sys/random.h>
#include <sys/stat.h>

#include <algorithm>
#include <ctime>

#include "isolation/compile_parts.h"

namespace caisson::isolation {
namespace {

static_assert(sizeof(FlatStep) % alignof(FlatStep) == 0);

constexpr std::size_t kLowerNames = 256;
constexpr std::size_t kMasksOnDisk = 100;  // more take longer than a file system in memory
constexpr std::size_t kMarkedBytes = 64;   // what a value in place of its mark adds at most

const char* relative(Arena& arena, const std::string& path) {
  std::size_t begin = 0;
  while (begin < path.size() && path[begin] == '/') ++begin;
  return arena.text(std::string_view(path).substr(begin));
}

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
  // With a time namespace, claim that the sandbox was booted a minute ago: `ps` subtracts start times from the uptime.
  timespec now{}, since_boot{.tv_sec = 60, .tv_nsec = 0};
  ::clock_gettime(CLOCK_REALTIME, &now);
  if (!own_time) ::clock_gettime(CLOCK_BOOTTIME, &since_boot);
  fill(plan::kBootTimeMark, [&] { return std::to_string(now.tv_sec - since_boot.tv_sec); });
  fill(plan::kUptimeMark, [&] { return std::to_string(since_boot.tv_sec); });
  fill(plan::kRandomIdMark, randomId);
  return content;
}

/// The name of a layer's mount point. Short: the kernel reads all names from one text of 256 bytes.
std::string layerName(std::size_t number) { return std::to_string(number); }

struct Flatten {
  Arena& arena;
  FlatStep& out;
  bool ours;  // see kOurs
  bool own_time;
  bool layered;       // the root will be replaced by an overlay
  std::size_t layer;  // of root layers so far
  std::size_t above;  // of those, how many are over our files

  void operator()(const plan::MakeDirectory& step) {
    out.kind = StepKind::make_directory;
    out.flags = ours ? kOurs : 0U;
    out.target = relative(arena, step.target);
    out.mode = step.mode;
  }
  void operator()(const plan::MakeSymlink& step) {
    out.kind = StepKind::make_symlink;
    out.flags = (step.optional ? kOptional : 0U) | (ours ? kOurs : 0U);
    out.target = relative(arena, step.target);
    out.source = arena.text(step.to);
  }
  void operator()(const plan::MakeFile& step) {
    out.kind = StepKind::make_file;
    out.flags = ours ? kOurs : 0U;
    out.target = relative(arena, step.target);
    const std::string content = step.marked ? withLaunchValues(step.content, own_time) : step.content;
    out.source = arena.text(content);
    out.length = static_cast<std::uint32_t>(content.size());
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
    out.expected = expectedFile(step.opened);
  }
  void operator()(const plan::MountTmpfs& step) {
    out.kind = StepKind::tmpfs;
    out.target = relative(arena, step.target);
    out.size_text = arena.text(std::to_string(step.bytes));
    out.inode_text = arena.text(std::to_string(step.inodes));
    out.mode = step.mode;
    out.flags = (step.executable ? kExecutable : 0U) | (ours ? kOurs : 0U) | (step.optional ? kOptional : 0U) |
                (step.on_disk ? kOnDisk : 0U) | (layered && step.target == "/" ? kLayeredRoot : 0U) |
                (step.target == plan::kRootChanges ? kRootChanges : 0U);
  }
  void operator()(const plan::RootLayer& step) {
    out.kind = StepKind::root_layer;
    out.flags = kCanonical;
    out.source = arena.text(step.source);
    out.target = arena.text(layerName(layer));
  }
  void operator()(const plan::MountRoot& step) {
    out.kind = StepKind::mount_root;
    out.flags = (step.writable ? kWritable : 0U) | (step.kept ? kKept : 0U) | (step.executable ? kExecutable : 0U);
    out.target = "";
    out.names = arena.texts(step.hidden);
    std::string lower;
    for (std::size_t i = 0; i < layer; ++i) {
      if (i == above) lower += "files:hidden:";
      lower += layerName(i) + ":";
    }
    lower.pop_back();
    out.lower_names = arena.text(lower);
  }
  void operator()(const plan::MountProc& step) {
    out.flags = (ours ? kOurs : 0U) | (step.mask ? kMaskOthers : 0U) | (step.may_be_subset ? kMayBeSubset : 0U) |
                (step.may_be_bound ? kMayBeBound : 0U) | (step.protect_bound ? 0U : kWritable);
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
    out.expected = expectedFile(step.opened);
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
                (step.read_only ? kReadOnlyOverlay : 0U) |
                (step.on_disk && !kept && step.whiteouts.size() > kMasksOnDisk ? kMaskInMemory : 0U);
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
  void operator()(const plan::MoveRoot& step) {
    out.kind = StepKind::move_root;
    out.target = relative(arena, step.target);
  }
  void operator()(const plan::ReadOnlyRoot&) { out.kind = StepKind::read_only_root; }
};

/// Whether the step's target is in one of these directories. A session's directories on disk hold what its payload left
/// there in an earlier sandbox, so a path in them may contain links.
bool isBelow(const plan::Step& step, const std::vector<std::string>& directories) {
  return std::visit(
      [&](const auto& one) {
        if constexpr (requires { one.target; }) {
          return std::ranges::any_of(directories, [&](const std::string& top) { return one.target.starts_with(top); });
        } else {
          return false;
        }
      },
      step);
}

}  // namespace

ExpectedFile expectedFile(const sys::SharedFd& opened) {
  struct stat status{};
  if (!opened || ::fstat(opened->get(), &status) != 0) return {};
  return {status.st_dev, status.st_ino};
}

std::size_t stepBytes(const plan::Step& step) {
  std::size_t bytes = sizeof(FlatStep) + 128;
  if (const auto* file = std::get_if<plan::MakeFile>(&step)) bytes += file->content.size() + kMarkedBytes;
  if (const auto* file = std::get_if<plan::CoverFile>(&step)) bytes += file->content.size() + kMarkedBytes;
  if (const auto* proc = std::get_if<plan::MountProc>(&step)) bytes += textBytes(proc->shown);
  if (const auto* root = std::get_if<plan::MountRoot>(&step)) bytes += textBytes(root->hidden) + kLowerNames;
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

std::string lowerNames(const plan::MountOverlay& step) {
  std::string names;
  for (const std::string& name : step.frozen) names += name + ":";
  // A session always has a mask layer, since it may have to hide more names later.
  const bool mask = !step.whiteouts.empty() || !step.replaced.empty() || !step.upper.empty() || step.read_only;
  return names + (mask ? "mask:lower" : "lower");
}

void compileSteps(const plan::Plan& plan, Arena& arena, Block& block) {
  FlatStep* steps = arena.array<FlatStep>(plan.steps.size());
  std::vector<std::string> on_disk;
  std::size_t layers = 0, above = 0;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    steps[i].mount_fd = -1;
    // An image may have a link at any path.
    const bool ours = plan.own_root && !plan.host_view && !plan.layered_root && !isBelow(plan.steps[i], on_disk);
    std::visit(Flatten{arena, steps[i], ours, plan.namespaces.time, plan.layered_root, layers, above}, plan.steps[i]);
    if (const auto* layer = std::get_if<plan::RootLayer>(&plan.steps[i])) {
      ++layers;
      above += layer->above ? 1 : 0;
    }
    const auto* directory = std::get_if<plan::MountTmpfs>(&plan.steps[i]);
    if (directory != nullptr && directory->on_disk) on_disk.push_back(directory->target + "/");
  }
  block.steps = steps;
  block.step_count = static_cast<std::uint32_t>(plan.steps.size());
}

}  // namespace caisson::isolation
