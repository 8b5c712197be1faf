// Starts caisson-unpack in a sandbox: no network, no workspace, read-only root, its input and output descriptors only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "image_store/layer_stream.h"
#include "sys/fd.h"
#include "sys/host_program.h"

namespace caisson::image {

enum class DecodeMode : std::uint8_t { names, data };

/// The hidden first argument with which this program starts itself; its process builds the sandbox.
inline constexpr std::string_view kDecoderArgument = "__decode";

class Decoder {
 public:
  /// `blob`: the archive, read from its current offset. `max_bytes`: of the uncompressed archive.
  static Result<Decoder> start(int blob, DecodeMode mode, std::uint64_t max_bytes);

  /// The next frame but `finished` and `failed`; nothing at the end, when diffId() and archiveBytes() are known.
  Result<std::optional<FrameReader::Frame>> next();

  [[nodiscard]] const std::string& diffId() const { return diff_id_; }
  [[nodiscard]] std::uint64_t archiveBytes() const { return archive_bytes_; }

 private:
  Decoder(sys::HostProgram program, sys::Fd frames, sys::Fd errors)
      : program_(std::move(program)), frames_(std::move(frames)), errors_(std::move(errors)), reader_(frames_.get()) {}
  /// Why the decoder ended without a result: what the sandbox printed.
  Error lateError(const Error& error);

  sys::HostProgram program_;
  sys::Fd frames_, errors_;
  FrameReader reader_;
  std::string diff_id_;
  std::uint64_t archive_bytes_ = 0;
};

/// `caisson-image __decode MODE MAX_BYTES`: runs caisson-unpack in a sandbox, with this process' streams.
int decoderMain(std::string_view mode, std::string_view max_bytes);

}  // namespace caisson::image
