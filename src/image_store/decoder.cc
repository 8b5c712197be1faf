#include "image_store/decoder.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>

#include "approval/owner.h"
#include "base/safe_text.h"
#include "base/text.h"
#include "caisson/run.h"
#include "sys/helper_process.h"
#include "sys/pipe.h"

namespace caisson::image {
namespace {

constexpr auto kExitTimeout = std::chrono::seconds(10);
constexpr double kDecodeSeconds = 600;  // the largest that a policy may have
constexpr int kPipeBytes = 1 << 20;

/// Beside this program, as it is built and as it is installed.
Result<std::string> unpackProgram() {
  std::error_code problem;
  const std::filesystem::path own = std::filesystem::read_symlink(sys::kOwnProgram, problem);
  if (problem)
    return fail(plainError(Stage::state, "unpack", "caisson-unpack", "cannot be located", "is /proc mounted?"));
  std::string path = (own.parent_path() / "caisson-unpack").string();
  if (::access(path.c_str(), X_OK) == 0) return path;
  return fail(
      sysError(Stage::state, "unpack", path, errno, "install caisson-unpack beside caisson-image; in a clone: make"));
}

/// The profile `strict`, with time for large archives, and the program itself.
Result<Policy> decoderPolicy(const std::string& program) {
  auto policy = Policy::profile("strict");
  if (!policy) return policy;
  // Within what the owner allows to any policy.
  const auto owner = approval::loadOwner();
  if (!owner) return fail(owner.error());
  const double seconds = std::min(kDecodeSeconds, owner->ceilings.wall_seconds.value_or(kDecodeSeconds));
  const std::string time = std::to_string(static_cast<long>(seconds));
  const std::pair<std::string_view, std::string> settings[] = {
      {"resources.cpu_seconds", time}, {"resources.wall_seconds", time + "s"}, {"resources.memory", "200M"}};
  for (const auto& [key, value] : settings)
    if (auto set = policy->set(key, value); !set) return fail(set.error());
  if (auto shown = policy->append("filesystem.read_only", program); !shown) return fail(shown.error());
  return policy;
}

}  // namespace

Result<Decoder> Decoder::start(int blob, DecodeMode mode, std::uint64_t max_bytes) {
  auto frames = sys::makePipe(Stage::state, "decoder");
  if (!frames) return fail(frames.error());
  auto errors = sys::makePipe(Stage::state, "decoder");
  if (!errors) return fail(errors.error());
  sys::Fd from = std::move(frames->read), to = std::move(frames->write);
  sys::Fd errors_from = std::move(errors->read), errors_to = std::move(errors->write);
  (void)::fcntl(to.get(), F_SETPIPE_SZ, kPipeBytes);  // fewer switches between the two; may fail
  auto program =
      sys::HostProgram::start({.arguments = {sys::kOwnProgram, std::string(kDecoderArgument),
                                             mode == DecodeMode::data ? "data" : "names", std::to_string(max_bytes)},
                               .inherit_environment = true,
                               .descriptors = {{blob, 0}, {to.get(), 1}, {errors_to.get(), 2}}});
  if (!program) return fail(program.error());
  return Decoder(std::move(*program), std::move(from), std::move(errors_from));
}

Error Decoder::lateError(const Error& error) {
  (void)program_.wait(kExitTimeout);
  char text[2048];
  pollfd ready{.fd = errors_.get(), .events = POLLIN, .revents = 0};
  const ssize_t got = ::poll(&ready, 1, 0) == 1 ? ::read(errors_.get(), text, sizeof(text)) : 0;
  if (got <= 0) return error;
  const std::string_view said = trimmed({text, static_cast<std::size_t>(got)}, "\n ");
  // The message of Error: its hint is in a second line.
  constexpr std::string_view kHint = "\n  try: ";
  const std::size_t hint = said.find(kHint);
  return plainError(
      Stage::state, "unpack", "image layer", printable(said.substr(0, hint), 1000),
      hint == std::string_view::npos ? "caisson doctor" : printable(said.substr(hint + kHint.size()), 1000));
}

Result<std::optional<FrameReader::Frame>> Decoder::next() {
  auto frame = reader_.next();
  if (!frame) return fail(lateError(frame.error()));
  if (frame->type == FrameType::failed) {
    return fail(plainError(Stage::state, "unpack", "archive", printable(frame->body, 1000)));
  }
  if (frame->type != FrameType::finished) return *frame;
  diff_id_ = frame->body.substr(0, 80);
  archive_bytes_ = frame->value;
  (void)program_.wait(kExitTimeout);
  return std::nullopt;
}

int decoderMain(std::string_view mode, std::string_view max_bytes) {
  const auto printError = [](const Error& error) {
    const std::string text = safeLine(error.message()) + "\n";
    (void)!::write(STDERR_FILENO, text.data(), text.size());
    return 125;
  };
  const auto program = unpackProgram();
  if (!program) return printError(program.error());
  auto policy = decoderPolicy(*program);
  if (!policy) return printError(policy.error());
  const auto result = run({.policy = std::move(*policy),
                           .command = {*program, std::string(mode), std::string(max_bytes)},
                           .out = StreamMode::relay,
                           .err = StreamMode::relay,
                           .relay_stdin = true,
                           .program = sys::kOwnProgram});
  if (!result) return printError(result.error());
  if (result->error) return printError(*result->error);
  return exitStatus(*result);
}

}  // namespace caisson::image
