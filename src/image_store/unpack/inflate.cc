#include "image_store/unpack/inflate.h"

#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace caisson::image {
namespace {

constexpr std::size_t kInput = 256U << 10;
constexpr std::size_t kOutput = 256U << 10;
constexpr int kMaxWindowLog = 27;  // 128 MiB: what zstd itself accepts by default

}  // namespace

/// Consumes input and produces output; sets `problem` for data that it cannot decode.
struct Inflater::Codec {
  virtual ~Codec() = default;
  /// Advances `in` and returns how many bytes of `out` it filled. `in` is empty at the end of the file.
  virtual std::size_t step(std::span<const char>& in, std::span<char> out, std::string& problem) = 0;
  /// Whether the input may end here.
  [[nodiscard]] virtual bool complete() const { return true; }
};

struct Inflater::Plain : Codec {
  std::size_t step(std::span<const char>& in, std::span<char> out, std::string&) override {
    const std::size_t count = std::min(in.size(), out.size());
    std::memcpy(out.data(), in.data(), count);
    in = in.subspan(count);
    return count;
  }
};

constexpr const char* kDataAfterEnd = "data after the end of the gzip stream";

struct Inflater::Gzip : Codec {
  Gzip() { ready = ::inflateInit2(&stream, 15 + 16) == Z_OK; }
  ~Gzip() override { ::inflateEnd(&stream); }

  std::size_t step(std::span<const char>& in, std::span<char> out, std::string& problem) override {
    if (ended && !in.empty()) {
      // Several members are one file. Zeros after the last member are padding.
      if (in[0] == 0) {
        padding = true;
        if (std::ranges::any_of(in, [](char byte) { return byte != 0; })) problem = kDataAfterEnd;
        in = {};
        return 0;
      }
      ended = padding || ::inflateReset(&stream) != Z_OK;
      if (ended) problem = kDataAfterEnd;
    }
    if (!ready || ended) return 0;
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
    stream.avail_in = static_cast<uInt>(in.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    const int status = ::inflate(&stream, Z_NO_FLUSH);
    in = in.last(stream.avail_in);
    if (status == Z_STREAM_END) ended = true;
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) problem = "the gzip data is damaged";
    return out.size() - stream.avail_out;
  }
  [[nodiscard]] bool complete() const override { return ended; }

  z_stream stream{};
  bool ready = false, ended = false, padding = false;
};

struct Inflater::Zstd : Codec {
  Zstd() : context(::ZSTD_createDCtx()) { ::ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, kMaxWindowLog); }
  ~Zstd() override { ::ZSTD_freeDCtx(context); }

  std::size_t step(std::span<const char>& in, std::span<char> out, std::string& problem) override {
    if (in.empty() && at_end) return 0;  // the library would begin a new frame
    ZSTD_inBuffer input{in.data(), in.size(), 0};
    ZSTD_outBuffer output{out.data(), out.size(), 0};
    const std::size_t status = ::ZSTD_decompressStream(context, &output, &input);
    in = in.subspan(input.pos);
    if (::ZSTD_isError(status) != 0) problem = std::string("the zstd data is damaged: ") + ::ZSTD_getErrorName(status);
    at_end = status == 0;
    return output.pos;
  }
  [[nodiscard]] bool complete() const override { return at_end; }

  ZSTD_DCtx* context;
  bool at_end = false;
};

Inflater::Inflater(int input, InflateLimits limits)
    : input_(input), limits_(limits), in_(std::make_unique<char[]>(kInput)), out_(std::make_unique<char[]>(kOutput)) {}

Inflater::~Inflater() = default;

bool Inflater::fill() {
  if (in_begin_ < in_end_) return true;
  in_begin_ = in_end_ = 0;
  while (true) {
    const ssize_t got = ::read(input_, in_.get(), kInput);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refuse(std::string("read: ") + std::strerror(errno));
    if (got <= 0) return false;
    in_end_ = static_cast<std::size_t>(got);
    consumed_ += in_end_;
    return true;
  }
}

void Inflater::chooseCodec() {
  constexpr unsigned char kGzip[] = {0x1f, 0x8b};
  constexpr unsigned char kZstd[] = {0x28, 0xb5, 0x2f, 0xfd};
  constexpr unsigned char kXz[] = {0xfd, '7', 'z', 'X', 'Z'};
  const auto begins = [this](std::span<const unsigned char> magic) {
    return in_end_ >= magic.size() && std::memcmp(in_.get(), magic.data(), magic.size()) == 0;
  };
  if (begins(kGzip)) {
    codec_ = std::make_unique<Gzip>();
  } else if (begins(kZstd)) {
    codec_ = std::make_unique<Zstd>();
  } else {
    if (begins(kXz)) refuse("compressed with xz: gzip, zstd and no compression are supported");
    if (in_end_ >= 3 && std::memcmp(in_.get(), "BZh", 3) == 0)
      refuse("compressed with bzip2: gzip, zstd and no compression are supported");
    codec_ = std::make_unique<Plain>();
  }
}

std::span<const char> Inflater::next() {
  while (problem_.empty()) {
    const bool more = fill();
    if (!codec_) chooseCodec();
    std::span<const char> in(in_.get() + in_begin_, in_end_ - in_begin_);
    const std::size_t before = in.size();
    const std::size_t got = problem_.empty() ? codec_->step(in, {out_.get(), kOutput}, problem_) : 0;
    in_begin_ = in_end_ - in.size();
    if (got == 0) {
      if (more && in.size() < before) continue;
      if (problem_.empty() && (more || !codec_->complete())) refuse("the compressed data ends early");
      return {};
    }
    produced_ += got;
    if (produced_ > limits_.bytes) refuse("decompression bomb: the archive is larger than the limit");
    if (produced_ > limits_.ratio_from && produced_ / limits_.ratio > consumed_) {
      refuse("decompression bomb: the archive expands more than " + std::to_string(limits_.ratio) + " times");
    }
    if (!problem_.empty()) return {};
    hash_.add(out_.get(), got);
    return {out_.get(), got};
  }
  return {};
}

}  // namespace caisson::image
